"""Readers of what people tell with figures: clocks over time, bandwidth of one node and of two."""

from __future__ import annotations

from engine.readers.base import MakesReader
from engine.readers.stories.clocks import ClockReader
from engine.readers.stories.internode import InterNodeReader

STORY_READERS: tuple[MakesReader, ...] = (ClockReader, InterNodeReader)

__all__ = ["STORY_READERS"]
