"""The router: from what people type to a command with its arguments, by fixed rules.

`parse_words` reads the words of a slash command; `understand` reads plain language and returns None
for what is no question. Both take text as Slack sends it.
"""

from bot.router.arguments import COMMANDS
from bot.router.understand import understand
from bot.router.words import parse_words

__all__ = ["COMMANDS", "parse_words", "understand"]
