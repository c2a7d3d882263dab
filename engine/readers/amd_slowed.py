"""Whether the clocks of an AMD GPU at work are cut, and whether heat does it.

For text whose readings the rules cannot judge: tools print no model, so nothing tells the limits
but the board's own words and AMD's hint of 95 °C. The shares of clock are those of the rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from engine.model import Severity
from engine.units import number

# AMD's hint for a thermal limit (Celsius), where the board's own is not shown.
HOT_C: Final = 95.0
_BUSY: Final = 80.0
_SLOW: Final = 0.9
_HALF: Final = 0.52
_AT_CAP: Final = 0.9


@dataclass(frozen=True, slots=True)
class Board:
    """Readings of one GPU: activity (%), temperatures (C), clock (MHz), power (W).

    Attributes:
        hot_limit: the board's own slowdown limit.
        throttled: what it says itself, where it says something.
    """

    label: str
    activity: float | None = None
    hot: float | None = None
    hot_limit: float | None = None
    clock: float | None = None
    clock_max: float | None = None
    power: float | None = None
    cap: float | None = None
    throttled: bool | None = None

    @property
    def busy(self) -> bool:
        """Whether work runs on it."""
        return (self.activity or 0.0) >= _BUSY


@dataclass(frozen=True, slots=True)
class Slowed:
    """What cuts the clocks: without a cause nothing shows which limit does."""

    severity: Severity
    says: str
    action: str
    cause: str | None
    data: dict[str, object] = field(default_factory=dict)


def is_throttled(status: str | None) -> bool | None:
    """Return what the word under THROTTLE_STATUS says, None if it says nothing."""
    if not status or "THROTTLED" not in status.upper():
        return None
    return not status.upper().startswith("UN")


def slowed(board: Board, others: Sequence[Board]) -> Slowed | None:
    """Say what cuts the clocks of a GPU at work.

    Args:
        board: the GPU.
        others: the other GPUs of its machine.
    """
    if not board.busy:
        return None
    fastest = max((o.clock for o in others if o.busy and o.clock), default=None)
    most = board.clock_max or fastest
    slow = bool(board.clock and most and board.clock < _SLOW * most)
    if not slow and not board.throttled:
        return None
    data: dict[str, object] = {
        "hotspot_c": board.hot,
        "gfx_clock_mhz": board.clock,
        "gfx_clock_best_mhz": most,
        "power_w": board.power,
        "throttled": board.throttled,
    }
    limit = board.hot_limit or HOT_C
    at_cap = bool(board.cap and board.power and board.power >= _AT_CAP * board.cap)
    if at_cap and not board.hot_limit:
        return None  # its power limit holds it
    if board.hot is not None and board.hot >= limit:
        half = bool(slow and board.clock and most and board.clock <= _HALF * most)
        of = (
            f"at or over the board's slowdown limit of {number(limit)} °C"
            if board.hot_limit
            else f"where boards of AMD slow down (from about {number(limit)} °C)"
        )
        return Slowed(
            Severity.CRITICAL if half else Severity.HIGH,
            f"{board.label} is at {number(board.hot)} °C, {of}, "
            f"and {_how(board, most)}: heat cuts its clocks.{_beside(board, others)} In "
            "synchronous training the others wait for it.",
            "Take load off, check fans or coolant flow, the heat sink and the inlet air. The "
            "limits of the board: amd-smi static --limit; what holds it: amd-smi monitor -V -t -p.",
            "thermal_slowdown_hw" if half else "thermal_slowdown_sw",
            data,
        )
    if not board.throttled or at_cap:
        return None
    return Slowed(
        Severity.MEDIUM,
        f"{board.label} says that it is throttled, and {_how(board, most)}; this text does not "
        f"show which limit holds it.{_beside(board, others)}",
        "amd-smi monitor -V -t -p shows which limit holds it, amd-smi static --limit the limits.",
        None,
        data,
    )


def _how(board: Board, most: float | None) -> str:
    parts = []
    if board.clock and most:
        what = f"{number(board.clock)} of {number(most)} MHz"
        parts.append(f"runs at {what}")
    elif board.throttled:
        parts.append("says that it is throttled" if board.clock is None else "is throttled")
    if board.power is not None:
        parts.append(f"draws {number(board.power)} W")
    return " and ".join(parts) + f" at {number(board.activity or 0.0)} % activity"


def _beside(board: Board, others: Sequence[Board]) -> str:
    """What a cooler one at the same work shows."""
    cooler = [
        o
        for o in others
        if o.busy and o.hot is not None and board.hot is not None and o.hot < board.hot - 5
    ]
    if not cooler:
        return ""
    best = max(cooler, key=lambda o: o.clock or 0.0)
    clock = f", {number(best.clock)} MHz" if best.clock else ""
    drawn = f", {number(best.power)} W" if best.power is not None else ""
    return f" {best.label} at the same work: {number(best.hot or 0.0)} °C{clock}{drawn}."
