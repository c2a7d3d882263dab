"""What dumps of one or several processes show together: who waits, and for whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from engine.model import Finding, Severity
from engine.readers.base import Result
from engine.traces.pyspy.frames import Activities, Frame, own_frame

if TYPE_CHECKING:
    from engine.traces.pyspy.dump import Process

SOURCES: Final = ("benfred/py-spy README (dump)",)
_MOMENT: Final = (
    "A dump is one moment: take three, some seconds apart; what stays the same in all is where the "
    "process hangs."
)
_SHOWN: Final = 8


class _Seen:
    """One process and what its main thread does."""

    def __init__(self, process: Process, activities: Activities) -> None:
        self.process = process
        main = process.main
        self.frames: Sequence[Frame] = main.frames if main else ()
        self.entry = activities.of(self.frames)
        self.worker = any("_worker_loop" in f.function for f in self.frames)
        self.own = own_frame(self.frames)

    @property
    def role(self) -> str:
        return str(self.entry["role"]) if self.entry else "none"

    @property
    def name(self) -> str:
        pid = self.process.pid
        return f"process {pid}" if pid is not None else f"the dump in line {self.process.line}"

    @property
    def says(self) -> str:
        at = f", at {self.own.shown}" if self.own else ""
        if self.entry is None:
            top = f"is in {self.frames[0].shown}" if self.frames else "shows no frames"
            return f"{top}{at if self.frames and self.own != self.frames[0] else ''}"
        return f"{self.entry['says']}{at}"


def judge(processes: Sequence[Process], activities: Activities, result: Result, kind: str) -> None:
    """Add to a result what the dumps show, the process that the others wait for first."""
    seen = [_Seen(p, activities) for p in processes]
    ranks = [s for s in seen if not s.worker]
    waiting = [s for s in ranks if s.role in {"collective", "gpu"}]
    elsewhere = [s for s in ranks if s.role not in {"collective", "gpu"}]
    moments = len({s.process.pid for s in ranks}) == 1 and len(ranks) > 1
    if waiting and elsewhere and not moments:
        _culprits(waiting, elsewhere, result, kind)
    elif len(waiting) > 1 and not moments:
        _all_wait(waiting, result, kind)
    else:
        _each(ranks or seen, result, kind, moments=moments)
    workers = [s for s in seen if s.worker]
    if workers and ranks:
        busy = sum(s.role != "usual" for s in workers)
        result.notes.append(f"{busy} of {len(workers)} data loader worker(s) are at work.")
    if not moments:
        result.notes.append(_MOMENT)
    result.causes = list(dict.fromkeys(f.cause for f in result.findings if f.cause))


def _culprits(waiting: list[_Seen], others: list[_Seen], result: Result, kind: str) -> None:
    """Say who is elsewhere while the rest waits."""
    for one in others[:_SHOWN]:
        entry = one.entry or {}
        result.findings.append(
            _finding(
                one,
                kind,
                id_="elsewhere",
                severity=Severity.HIGH,
                cause=entry.get("cause") or "collective_hang",
                says=f"{_capital(one.name)} {one.says}, while {len(waiting)} other(s) wait for it"
                f" ({_most(waiting)}).",
                action=str(entry.get("action") or "See why it is not in the collective."),
            )
        )
    if len(others) > _SHOWN:
        result.notes.append(f"{len(others) - _SHOWN} more process(es) are not in the collective.")


def _all_wait(waiting: list[_Seen], result: Result, kind: str) -> None:
    """Say whether all wait at the same place."""
    places = Counter(s.own.shown if s.own else "" for s in waiting)
    if len(places) > 1 and all(places):
        usual, count = places.most_common(1)[0]
        odd = [s for s in waiting if s.own and s.own.shown != usual]
        result.findings.append(
            _finding(
                odd[0],
                kind,
                id_="different_places",
                severity=Severity.HIGH,
                cause="collective_mismatch",
                says=f"{count} process(es) wait at {usual}, {len(odd)} elsewhere "
                f"({', '.join(f'{s.name} at {s.own.shown}' for s in odd[:4] if s.own)}): the ranks "
                "may be in different collectives, which then wait for each other for ever.",
                action="Compare the two places: a branch on rank or data, or an uneven last batch. "
                "The Flight Recorder (TORCH_FR_BUFFER_SIZE=2000) shows each rank's collective.",
            )
        )
        return
    result.findings.append(
        _finding(
            waiting[0],
            kind,
            id_="all_wait",
            severity=Severity.MEDIUM,
            cause="collective_hang",
            says=f"All {len(waiting)} processes wait ({_most(waiting)}) at the same place: none of "
            "these is the one that the others wait for. Either a rank is missing from the dumps, "
            "or the transport or a GPU hangs.",
            action="Dump the ranks of the other hosts too; then the NCCL log (NCCL_DEBUG=WARN) and "
            "`dmesg` for Xid.",
        )
    )


def _each(seen: Sequence[_Seen], result: Result, kind: str, *, moments: bool) -> None:
    """Say what each process does."""
    if moments:
        stacks = {tuple(f.text for f in s.frames) for s in seen}
        same = len(stacks) == 1 and all(s.frames for s in seen)
        word = "the same stack: it hangs there" if same else "different stacks: it moves"
        result.notes.append(f"{len(seen)} dumps of {seen[0].name} show {word}.")
        seen = seen[-1:]
    for one in seen[:_SHOWN]:
        entry: Mapping[str, Any] = one.entry or {}
        result.findings.append(
            _finding(
                one,
                kind,
                id_=str(entry.get("id", "stack")),
                severity=Severity(entry.get("severity", "info")),
                cause=entry.get("cause"),
                says=f"{_capital(one.name)} {one.says}.",
                action=str(entry.get("action") or "Nothing known fits its frames."),
            )
        )
    if len(seen) > _SHOWN:
        result.notes.append(f"{len(seen) - _SHOWN} more process(es) are not shown.")


def _finding(
    one: _Seen,
    kind: str,
    *,
    id_: str,
    severity: Severity,
    cause: str | None,
    says: str,
    action: str,
) -> Finding:
    main = one.process.main
    return Finding(
        kind=kind,
        id=id_,
        severity=severity,
        says=says,
        action=action,
        entity=None,
        line=one.process.line,
        cause=cause,
        data={
            "pid": one.process.pid,
            "activity": one.entry["id"] if one.entry else None,
            "function": one.frames[0].function[:80] if one.frames else None,
            "own_frame": one.own.shown if one.own else None,
            "threads": len(one.process.threads),
            "holds_gil": bool(main and main.gil),
        },
        sources=tuple(one.entry["source"]) if one.entry else SOURCES,
    )


def _most(waiting: Sequence[_Seen]) -> str:
    """Return what most of those that wait do."""
    return Counter(str(s.entry["says"]) for s in waiting if s.entry).most_common(1)[0][0]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
