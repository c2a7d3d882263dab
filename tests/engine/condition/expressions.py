"""Random conditions over the test catalogue."""

from __future__ import annotations

import random

import numpy as np

from engine.condition import Memo, fleet
from engine.condition.parse import Parser
from engine.samples import Frame
from tests.engine.condition.world import BITS, CATALOGUE, PLACE

GAUGES = (
    "gpu_util",
    "sm_active",
    "sm_clock",
    "max_sm_clock",
    "gpu_temp",
    "power_usage",
    "hw_slowdown_events",
)
COUNTERS = ("pcie_replay", "power_violation")
ATTRS = ("tdp_w", "max_op_temp_c", "max_sm_clock_mhz")
WINDOWS = ("5m", "10m", "15m", "3m")
OFFSETS = ("10m", "20m", "7m")


class Maker:
    """Makes conditions whose thresholds lie among the values that a frame really has."""

    def __init__(self, rng: random.Random, frame: Frame) -> None:
        self.rng = rng
        self.frame = frame

    def window(self) -> str:
        return self.rng.choice(WINDOWS)

    def reading(self) -> str:
        rng = self.rng
        kind = rng.choice(
            ["last", "avg", "min", "max", "quantile", "stddev", "changes", "rate", "increase"]
        )
        if kind in {"rate", "increase"}:
            return f'{kind}({rng.choice(COUNTERS)}, "{self.window()}")'
        signal = rng.choice(GAUGES)
        if kind == "last":
            return signal
        if kind == "quantile":
            return (
                f'quantile({rng.choice(["0.5", "0.9", "0.13", "1"])}, {signal}, "{self.window()}")'
            )
        return f'{kind}({signal}, "{self.window()}")'

    def number(self, depth: int) -> str:
        rng = self.rng
        if depth == 0:
            return self.reading()
        pick = rng.random()
        inner = depth - 1
        if pick < 0.25:
            return self.reading()
        if pick < 0.32:
            return f"gpu.{rng.choice(ATTRS)}"
        if pick < 0.37:
            return f"age({rng.choice(GAUGES)})"
        if pick < 0.43:
            return f'share(throttle_reasons, "{rng.choice(list(BITS))}", "{self.window()}")'
        if pick < 0.58:
            factor = rng.choice(["0.8", "3", "1e-3", "(-2)", "limit.slow", "(-limit.ahead)"])
            return rng.choice(
                [f"{factor} * {self.number(inner)}", f"({self.number(inner)}) / {factor}"]
            )
        if pick < 0.7:
            op = rng.choice("+-*/")
            return f"({self.number(inner)}) {op} ({self.number(inner)})"
        if pick < 0.78:
            last = rng.choice([f"gpu.{rng.choice(ATTRS)}", "87.5", "limit.hot", self.reading()])
            return f"coalesce({self.number(0)}, {last})"
        if pick < 0.82:
            return f"abs({self.number(inner)})"
        if pick < 0.9:
            return f"siblings.{rng.choice(['median', 'mad', 'min', 'max'])}({self.plain(inner)})"
        if pick < 0.94:
            return f"siblings.{rng.choice(['count', 'share'])}({self.plain_condition()})"
        return f'past({self.plain(inner)}, "{rng.choice(OFFSETS)}")'

    def plain(self, depth: int) -> str:
        """Return a number without siblings in it."""
        while "siblings" in (text := self.number(depth)) or not _reads(text):
            pass
        return text

    def plain_condition(self) -> str:
        while "siblings" in (text := self.comparison(0)) or not _reads(text):
            pass
        return text

    def comparison(self, depth: int) -> str:
        left = self.number(depth)
        op = self.rng.choice(["<", "<=", ">", ">="])
        right = self.number(0) if self.rng.random() < 0.25 else self.threshold(left)
        return f"{left} {op} {right}" if self.rng.random() < 0.9 else f"{right} {op} {left}"

    def threshold(self, text: str) -> str:
        """Return a number strictly between two of the values that an expression has."""
        import ast

        parser = Parser(text, CATALOGUE, PLACE)
        node = parser.number(ast.parse(text, mode="eval").body)
        with np.errstate(all="ignore"):
            values = fleet.number(node)(Memo(self.frame).fleet(self.frame.at))
        known = sorted({v for v in values.tolist() if abs(v) < 1e12})
        if len(known) < 2:
            return repr(round((known or [1.0])[0] + 0.377, 6))
        k = self.rng.randrange(len(known) - 1)
        between = (known[k] + known[k + 1]) / 2
        return f"({between!r})" if between < 0 else repr(between)

    def leaf(self, depth: int) -> str:
        rng = self.rng
        pick = rng.random()
        if pick < 0.65:
            return self.comparison(depth)
        if pick < 0.75:
            bits = rng.sample(list(BITS), rng.randint(1, 2))
            return f"has(throttle_reasons, {', '.join(map(repr, bits))})"
        if pick < 0.83:
            return f"{rng.choice(['known', 'missing', 'blank'])}({rng.choice(GAUGES)})"
        if pick < 0.91:
            codes = rng.choice(["{79, 119}", "{48}", 'xids("ecc")', "{0, 13}"])
            return f'changed_to(xid, {codes}, "{self.window()}")'
        return f"is_code(xid, {rng.choice(['{79, 119}', '{0}', '{13, 48}'])})"

    def condition(self, depth: int = 2) -> str:
        rng = self.rng
        pick = rng.random()
        if depth == 0 or pick < 0.45:
            return self.leaf(2)
        if pick < 0.75:
            word = rng.choice([" and ", " or "])
            return word.join(f"({self.condition(depth - 1)})" for _ in range(rng.randint(2, 3)))
        if pick < 0.93:
            return f"not ({self.condition(depth - 1)})"
        while "blank" in (text := self.condition(depth - 1)) or not _reads(text):
            pass
        return f'past({text}, "{rng.choice(OFFSETS)}")'


def _reads(text: str) -> bool:
    return any(signal in text.replace("gpu.max_sm_clock_mhz", "") for signal in CATALOGUE.signals)
