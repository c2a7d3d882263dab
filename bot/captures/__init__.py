"""Captures in the conversation: planned, approved by whoever may, run, and their file linked.

The engine plans and runs; here is who decides, what is kept where, and what people are told.
"""

from bot.captures.desk import Desk
from bot.captures.runner import Runner

__all__ = ["Desk", "Runner"]
