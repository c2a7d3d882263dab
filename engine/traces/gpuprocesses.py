"""Chrome traces of JAX and TensorFlow: they name a process for each GPU and give no categories."""

from __future__ import annotations

import re
from typing import Any

from engine.traces.eventfields import args_of, is_text, text_of
from engine.traces.jsonevents import Event

_GPU = re.compile(r"/device:(?:GPU|gpu):(\d{1,3})\b")
_MOST = 4_096


class GpuProcesses:
    """Remembers which processes are GPUs and which of their threads are streams."""

    def __init__(self) -> None:
        self._gpus: dict[Any, int] = {}
        self._streams: set[tuple[Any, Any]] = set()

    def work(self, events: list[Event]) -> tuple[list[Event], list[Event], list[Event]]:
        """Return kernels, copies and memsets of these events, their device added to them."""
        for event in events:
            if event.get("ph") == "M":
                self._name(event)
        kernels: list[Event] = []
        copies: list[Event] = []
        memsets: list[Event] = []
        for event in events if self._gpus else ():
            if event.get("ph") != "X" or _place(event) not in self._streams:
                continue
            args = dict(args_of(event))
            args["device"] = self._gpus.get(event.get("pid"), 0)
            event["args"] = args
            name = text_of(event.get("name"))
            if name.startswith("Memcpy"):
                copies.append(event)
            elif name.startswith("Memset"):
                memsets.append(event)
            else:
                kernels.append(event)
        return kernels, copies, memsets

    def _name(self, event: Event) -> None:
        place = _place(event)
        name = text_of(args_of(event).get("name"))
        if place is None or len(self._streams) + len(self._gpus) >= _MOST:
            return
        if event.get("name") == "process_name" and (found := _GPU.search(name)):
            self._gpus[place[0]] = int(found[1])
        elif event.get("name") == "thread_name" and name.startswith("Stream"):
            self._streams.add(place)


def _place(event: Event) -> tuple[Any, Any] | None:
    """Return process and thread of an event, None if they cannot be keys."""
    pid, tid = event.get("pid"), event.get("tid")
    return (pid, tid) if is_text(pid) and is_text(tid) else None
