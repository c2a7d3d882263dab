"""The router: from what people type to a command with its arguments, by fixed rules.

`parse_words` reads the words of a slash command; `understand` reads plain language and returns None
for what asks for no command; `free_question` then takes what is a question by its form. All take
text as Slack sends it.
"""

from bot.router.arguments import COMMANDS
from bot.router.questions import free_question
from bot.router.understand import understand
from bot.router.words import parse_words

__all__ = ["COMMANDS", "free_question", "parse_words", "understand"]
