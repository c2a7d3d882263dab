"""What a clause asks for: one rule a command, each certain or silent.

A rule returns the command's arguments, or None. Where a clause could mean two things, or speaks of
something that no word list knows, None is right: the bot then says how to ask, which costs less
than a wrong answer.
"""

from __future__ import annotations

from collections.abc import Callable

from bot.request import Json
from bot.router.clauses import Clause
from bot.router.intents.capture import capture
from bot.router.intents.decode import decode
from bot.router.intents.helping import help_, rules
from bot.router.intents.sweep import sweep
from bot.router.intents.why import why

# In this order a clause is offered to the rules; the first that understands it wins.
RULES: tuple[tuple[str, Callable[[Clause], dict[str, Json] | None]], ...] = (
    ("capture", capture),
    ("help", help_),
    ("rules", rules),
    ("decode", decode),
    ("why", why),
    ("sweep", sweep),
)

__all__ = ["RULES"]
