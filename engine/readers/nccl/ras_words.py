"""Words about what a report of RAS shows: who is gone, who is behind, or that all is well."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.nccl.lines import listed
from engine.readers.nccl.told import ORDER, Told

_SOURCES: Final = (
    "NVIDIA/nccl v2.30.7 src/ras/client_support.cc",
    "NVIDIA NCCL user guide, RAS",
)


@dataclass(slots=True)
class Communicator:
    """How far the ranks of a communicator are, as a report has it."""

    line: int
    name: str
    operation: str = "collective"
    many: dict[int, int] = field(default_factory=dict)
    """How many ranks launched up to an operation, of the ranks that are only counted."""
    reach: dict[int, int] = field(default_factory=dict)
    """How far a rank is that is named."""
    places: dict[int, str] = field(default_factory=dict)
    last: int | None = None

    @property
    def behind(self) -> list[int]:
        """The named ranks that are behind; empty if these are ahead."""
        lowest = min((*self.many, *self.reach.values()), default=0)
        return sorted(r for r, n in self.reach.items() if n == lowest)

    @property
    def spread(self) -> int:
        """Operations between the first and the last rank."""
        counts = (*self.many, *self.reach.values())
        return max(counts) - min(counts) if counts else 0


@dataclass(slots=True)
class Lost:
    """Processes (by node and pid: line, GPUs) and ranks (line) that RAS misses.

    ``dead`` is the line that calls them dead, 0 without one.
    """

    processes: dict[tuple[str, str], tuple[int, str]] = field(default_factory=dict)
    missing: dict[int, int] = field(default_factory=dict)
    dead: int = 0


def well(line: int) -> Told:
    """Tell of a report in which all communicators run."""
    return _told(
        "ras_ok", Severity.INFO, line,
        "NCCL's RAS: all communicators are RUNNING and OK; every rank answers, and none is"
        " behind. No fault here.",
        "Nothing, if the job goes on. If it hangs: counts of a verbose report (ncclras -v) that"
        " stand still in all ranks mean network or GPU.",
        None, {"ras": "OK"}, None, None, ORDER["note"],
    )  # fmt: skip


def gone(lost: Lost) -> Told:
    """Tell of processes that are dead or do not answer."""
    first = next(iter(lost.processes.items()), None)
    line = first[1][0] if first else min(lost.missing.values())
    node = first[0][0] if first else None
    missing = sorted(lost.missing)
    verdict = (
        "counts as dead (it did not answer for 60 s)"
        if lost.dead
        else "does not answer (INCOMPLETE: stopped, hung or just dying; after 60 s RAS calls it"
        " dead)"
    )
    if first:
        who = [
            f"process {pid} on {host}" + (f" (GPU {gpus})" if gpus else "")
            for (host, pid), (_, gpus) in list(lost.processes.items())[:4]
        ]
        says = f"NCCL's RAS: {'; '.join(who)} {verdict}."
    else:
        says = "NCCL's RAS misses data of a communicator: somebody does not answer."
    if missing:
        says += f" Missing rank{'s' if len(missing) > 1 else ''}: {listed(missing)}."
    says += " The others wait for it."
    data: dict[str, Any] = {
        "missing_ranks": missing,
        "host": node,
        "dead": bool(lost.dead),
        "processes": [int(pid) for _, pid in lost.processes][:64],
    }
    rank = missing[0] if missing else None
    return _told(
        "ras_gone", Severity.HIGH, line, says,
        (f"On {node}: is" if node else "Is")
        + " the process alive? Its log first (an exception, out of memory, a signal), dmesg |"
        " grep -i -e oom -e xid there; py-spy dump --native --pid PID if it lives.",
        "collective_hang", data, rank, node, ORDER["root"],
    )  # fmt: skip


def apart(one: Communicator, *, hang: bool) -> Told:
    """Ranks that launched less than the others."""
    counts = dict(one.many)
    for reach in one.reach.values():
        counts.setdefault(reach, sum(1 for n in one.reach.values() if n == reach))
    low, high = min(counts), max(counts)
    behind = one.behind
    sure = hang or one.spread > 1
    who = f"rank{'s' if len(behind) > 1 else ''} {listed(behind)}" if behind else ""
    who = who or f"{counts[low]} ranks"
    nodes = list(dict.fromkeys(one.places[r] for r in behind if r in one.places))
    where = f" on {', '.join(nodes[:4])}" if nodes else ""
    says = (
        f"NCCL's RAS (communicator {one.name}): {who}{where} launched up to {one.operation}"
        f" operation {low}, others up to {high}: behind by {one.spread}."
    )
    if sure:
        says += " The others wait there." if hang else " If the gap stays, that is a straggler."
        action = (
            f"Look at {who} first: its log, py-spy dump --native --pid PID (the report has the"
            " process), clocks and Xid lines of its GPU, its data loader."
            " Ask RAS again after ten seconds: counts that stand still are a hang."
        )
    else:
        says += " While a job runs that is normal: counts are taken one after another."
        action = "Ask again after ten seconds, three times: counts that stand still are a hang."
    data = {
        "behind_ranks": behind,
        "operations": {str(n): c for n, c in sorted(counts.items())[:64]},
        "op": None if one.operation == "collective" else one.operation,
        "behind_by": one.spread,
    }
    return _told(
        "ras_mismatch", Severity.HIGH if sure else Severity.LOW, one.line, says, action,
        ("collective_hang" if hang else "straggler") if sure else None,
        data, behind[0] if behind else None, nodes[0] if len(nodes) == 1 else None,
        ORDER["root"] if sure else ORDER["note"],
    )  # fmt: skip


def _told(
    id_: str,
    severity: Severity,
    line: int,
    says: str,
    action: str,
    cause: str | None,
    data: dict[str, Any],
    rank: int | None,
    node: str | None,
    order: int,
) -> Told:
    entity = Entity(Kind.NODE, node, host=node) if node else None
    if rank is not None:
        entity = Entity(Kind.RANK, f"rank {rank}", host=node, rank=rank)
    kept = {k: v for k, v in data.items() if v is not None and v not in ([], {})}
    return Told(
        order,
        line,
        Finding("nccl", id_, severity, says, action, entity, line, cause, kept, (), _SOURCES),
    )
