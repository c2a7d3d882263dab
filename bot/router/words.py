"""The words of a slash command: ``why node-3:5 --window 5m``, ``capture nsys node-3:5 10s``."""

from __future__ import annotations

import re
from collections.abc import Callable

from bot.request import Json, Request
from bot.router.slacktext import plain, tidy
from bot.router.vocabulary import PROFILERS
from bot.times import parse_moment, parse_span
from engine.catalogue.nearest import did_you_mean
from engine.errors import UsageError
from engine.topology import parse_target

COMMANDS = ("why", "sweep", "decode", "read", "capture", "rules", "help")
