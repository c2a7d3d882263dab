"""From lines of a log to events: the same recognition as for pasted logs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from engine.readers.logline import LogLine
from engine.readers.xid_line import LostGpu, XidEvent, uuid_of, xid_events
from engine.sources.logs.port import LogEvent

# Events kept of one question; a GPU that floods its log has said enough by then.
MOST_EVENTS = 20_000
_MOST_BOARDS = 16_384
MARKS = ("Xid", "NVRM:")


@dataclass(slots=True)
class EventParser:
    """Collects the events of one source.

    Attributes:
        where: what the events say of their origin.
        start, end: the window (Unix s).
        default_host: the machine of lines that name none.
        unplaced: events whose line has no time that can be placed.
        local: events whose time has no zone; it is taken as UTC.
        overflow: events beyond the most that are kept.
    """

    where: str
    start: float
    end: float
    default_host: str | None = None
    unplaced: int = 0
    local: int = 0
    overflow: int = 0
    events: list[LogEvent] = field(default_factory=list)
    _lost: dict[str | None, LostGpu] = field(default_factory=dict)
    _boards: dict[tuple[str | None, str], str] = field(default_factory=dict)

    def feed(self, lines: Iterable[LogLine]) -> None:
        """Take records."""
        for line in lines:
            if not any(mark in line.text for mark in MARKS):
                continue
            board = uuid_of(line.text)
            host = line.host or self.default_host
            if board is not None:
                if len(self._boards) < _MOST_BOARDS:
                    self._boards[host, board[0]] = board[1]
                continue
            found = list(xid_events(line.text, line.number))
            if not found and len(self._lost) < _MOST_BOARDS:
                lost = self._lost.setdefault(host, LostGpu()).feed(line.number, line.text)
                found = [lost] if lost is not None else []
            for event in found:
                self._add(event, line, host)

    def done(self) -> list[LogEvent]:
        """Return the events in order of time, each once."""
        return sorted(set(self.events), key=lambda event: event.order)

    def _add(self, event: XidEvent, line: LogLine, host: str | None) -> None:
        stamp = line.stamp
        if stamp is None or stamp.form not in {"zoned", "local"}:
            self.unplaced += 1
            return
        if not self.start <= stamp.order <= self.end:
            return
        if len(self.events) >= MOST_EVENTS:
            self.overflow += 1
            return
        self.local += stamp.form == "local"
        uuid = event.uuid or (self._boards.get((host, event.pci)) if event.pci else None)
        self.events.append(
            LogEvent(round(stamp.order, 3), event.xid, host, event.pci, uuid, self.where)
        )
