"""Fields of events in Chrome's JSON as values of one type, whatever stands in the file."""

from __future__ import annotations

import re
from operator import itemgetter
from typing import Any

import numpy as np

from engine.traces.jsonevents import Event

_DIRECTION = re.compile(r"(?:Memcpy )?(HtoD|DtoH|DtoD|HtoH|HtoA|AtoH|PtoP|Peer)", re.IGNORECASE)
_MEMORY = re.compile(r"\b(Pageable|Pinned|Managed|Unified)\b", re.IGNORECASE)


def integers(columns: list[list[Any]], kept: Any) -> list[Any]:
    """Return columns as int64, -1 for what is no whole number; ``kept`` picks rows, None all."""
    out = []
    for column in columns:
        try:
            array = np.array(column, dtype=np.int64)
        except (TypeError, ValueError, OverflowError):
            array = np.array([whole(value) for value in column], dtype=np.int64)
        out.append(array if kept is None else array[kept])
    return out


phase_of = itemgetter("ph")
"""The phase of an event that has one."""


def args_of(event: Event) -> dict[str, Any]:
    """Return the arguments of an event; empty if they are no object."""
    args = event.get("args")
    return args if isinstance(args, dict) else {}


def text_of(value: Any) -> str:
    """Return a text; empty if it is none."""
    return value if isinstance(value, str) else ""


def is_text(value: Any) -> bool:
    """Return whether a value can be a key: text, number or nothing."""
    return value is None or isinstance(value, str | int | float)


def whole(*values: Any) -> int:
    """Return the first that is a whole number in 62 bits, also as text; -1 if none is."""
    for value in values:
        number = value
        if isinstance(value, str) and 0 < len(value) < 20 and value.isascii() and value.isdigit():
            number = int(value)
        if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 1 << 62:
            return number
    return -1


def direction_of(name: str, args: dict[str, Any]) -> tuple[str, str | None]:
    """Return a copy's direction (other if it is not known), and the kind of host memory."""
    found = _DIRECTION.search(name) or _DIRECTION.search(text_of(args.get("kind")))
    memory = _MEMORY.search(name)
    direction = "other"
    if found:
        direction = found[1] if found[1].lower() not in {"ptop", "peer"} else "peer"
    return direction, memory[1].lower() if memory else None
