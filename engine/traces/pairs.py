"""Begin and end events of Chrome traces, joined into events with a duration."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.traces.jsonevents import Event

_THREADS = 4_096
_DEPTH = 1_024


class Pairs:
    """Joins ``B`` and ``E`` events of a thread, the last begun first."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str], list[Event]] = {}

    def join(self, events: Iterable[Event]) -> list[Event]:
        """Return the events that end here."""
        out = []
        for event in events:
            thread = (str(event.get("pid"))[:64], str(event.get("tid"))[:64])
            stack = self._open.get(thread)
            if event.get("ph") == "B":
                if stack is None:
                    if len(self._open) >= _THREADS:
                        continue
                    stack = self._open[thread] = []
                if len(stack) < _DEPTH:
                    stack.append(event)
            elif stack:
                began = stack.pop()
                start, end = _number(began.get("ts")), _number(event.get("ts"))
                if start is not None and end is not None:
                    out.append({**event, **began, "ph": "X", "dur": end - start})
        return out


def _number(value: Any) -> float | int | None:
    return value if isinstance(value, int | float) else None
