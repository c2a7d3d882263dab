"""Small calculators: bus bandwidth, checkpoints, roofline, KV cache, MFU."""

from __future__ import annotations

from engine.lookup.calc.base import Calculator, Input
from engine.lookup.calc.run import CALCULATORS, calculate, from_words

__all__ = ["CALCULATORS", "Calculator", "Input", "calculate", "from_words"]
