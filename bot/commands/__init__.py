"""Commands: one module each, from parsed arguments to a neutral `bot.answer.Answer`."""
