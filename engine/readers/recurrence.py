"""The same Xid on the same GPU again: an application's bug, or the board.

One program fails the same way wherever it runs; a bad board fails the same way whatever runs on it.
So what came on several days or in several boots, on one GPU only and with different programs, is
put down to the GPU. Source: the NVIDIA Xid catalog's workflow for Xids 13 and 31, and the published
rates (Delta, arXiv 2503.11901: one GPU had 99 percent of all Xid 95).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from engine.model import Severity
from engine.readers.bursts import XidBurst
from engine.readers.chain import ECHOES
from engine.readers.facts import Facts

# Classes of entries in which a program is the usual reason.
_PROGRAM_FIRST = "user-app-first"
# Names that say nothing of the program: interpreters, launchers, what the driver does not know.
_ANY_PROGRAM = ("python", "pt_main_thread", "bash", "sh", "java", "ray::")
# So many processes of such a name are taken for different programs.
_MANY_PROCESSES = 3
# Notices and requests: that they come again says nothing.
_NOTICES = frozenset({14, 63, 106, 107, 154, 160, 162, *ECHOES})


@dataclass(frozen=True, slots=True)
class Recurrence:
    """What the repetition of an Xid says. ``cause`` replaces the code's own where it is sure."""

    says: str
    action: str
    severity: Severity
    cause: str | None = None


def recurrences(bursts: Iterable[XidBurst], facts: Facts) -> dict[int, Recurrence]:
    """Return what is said of the Xids that came again, by the ``id`` of their burst."""
    listed = list(bursts)
    gpus: dict[int, set[object]] = {}
    for burst in listed:
        gpus.setdefault(burst.code, set()).add(burst.gpu)
    found: dict[int, Recurrence] = {}
    for burst in listed:
        if burst.period.spread and burst.code not in _NOTICES:
            entry = facts.xid(burst.code)
            class_ = None if entry is None else entry.get("class")
            found[id(burst)] = _of(burst, class_ == _PROGRAM_FIRST, len(gpus[burst.code]))
    return found


def _of(burst: XidBurst, program_first: bool, gpus: int) -> Recurrence:
    when = _over(burst)
    if not program_first:
        return Recurrence(
            f"It came back on the same GPU {when}: what was done about it did not cure it.",
            "Do not just reset once more: take the GPU out of service, run dcgmi diag -r 3 and "
            "have "
            "it replaced if that fails or the Xid comes again.",
            Severity.HIGH,
        )
    if gpus > 1:
        return Recurrence(
            f"It came {when} and on {gpus} GPUs: that speaks for a program, not for one board.",
            "",
            Severity.INFO,
        )
    if not _different_programs(burst):
        return Recurrence(
            f"It came on this one GPU {when}. If different, known-good programs ran then, that "
            "points to the GPU's hardware; if it was one program, to that program.",
            "Run a known-good program (dcgmi diag -r 3) on this GPU, and the failing one on "
            "another.",
            Severity.MEDIUM,
        )
    return Recurrence(
        f"It came on this one GPU {when}, with different processes ({_processes(burst)}), and on "
        f"no "
        "other GPU of this log: that points to the GPU's hardware, not to one application.",
        "Drain this GPU, reset it and run dcgmi diag -r 3; if that fails or the Xid comes again, "
        "have the GPU replaced.",
        Severity.HIGH,
        "gpu_needs_reset",
    )


def _different_programs(burst: XidBurst) -> bool:
    names = {name for name in burst.processes if not name.startswith(_ANY_PROGRAM)}
    return len(names) > 1 or (not names and len(burst.pids) >= _MANY_PROCESSES)


def _over(burst: XidBurst) -> str:
    period = burst.period
    parts = []
    if len(period.days) > 1:
        parts.append(f"on {len(period.days)} days")
    if len(period.boots) > 1:
        parts.append(f"in {len(period.boots)} boots")
    return " and ".join(parts)


def _processes(burst: XidBurst) -> str:
    names = [name[:40] for name in burst.processes]
    if len(names) > 1:
        return ", ".join(names[:4])
    return ", ".join(f"pid {pid}" for pid in list(burst.pids)[:4])
