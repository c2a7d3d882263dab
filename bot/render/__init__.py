"""Renderers: pure functions from an `bot.answer.Answer` to what a surface shows."""
