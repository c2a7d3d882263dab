"""Find who the others wait for.

A collective ends for all ranks at about the same time, so what differs between their durations is
when they came: the last one has the shortest. Of an operation, what each rank spent beyond that
shortest time is waiting, and the last rank caused it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from engine.model import Confidence, Entity, Kind, Step
from engine.nccl.model import Straggler
from engine.nccl.say import time
from engine.nccl.tally import Comm, Group, Tally

# Site defaults. Waiting below this share of the time in collectives, or below so many microseconds
# a rank and operation, is the noise of starting kernels.
_WAIT_SHARE = 0.10
_WAIT_US = 20.0
# A rank has to cause this share of all waiting: far more than its part if all took turns.
_CAUSED, _CAUSED_OF_TWO = 0.5, 0.8
_FEW, _MANY = 5, 20


@dataclass(slots=True)
class _Rank:
    last: int = 0
    caused_us: float = 0.0
    ratios: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)


@dataclass(slots=True)
class Waiting:
    """What the operations of a communicator show, microseconds.

    Attributes:
        operations: compared, those of which two or more ranks were seen.
        total_us, waited_us: time of all ranks in them, and what of it was waiting.
    """

    operations: int = 0
    total_us: float = 0.0
    waited_us: float = 0.0
    by_rank: dict[int, _Rank] = field(default_factory=dict)

    @property
    def share(self) -> float:
        """Share of the time that was waiting."""
        return self.waited_us / self.total_us if self.total_us else 0.0


def waiting(tally: Tally) -> dict[str, Waiting]:
    """Return what is known of waiting, by communicator."""
    found: dict[str, Waiting] = {}
    for (comm, _, _), one in tally.matches.together():
        _add(found.setdefault(comm, Waiting()), one.by_rank)
    return found


def stragglers(tally: Tally, found: Mapping[str, Waiting]) -> list[Straggler]:
    """Return ranks and hosts for which others wait, the worst first."""
    made = []
    for comm, one in found.items():
        known = tally.comms.get(comm)
        if known is not None and _matters(one):
            made += _ranks(comm, known, one) or _hosts(comm, known, one)
    made += _by_average(tally, {s.comm for s in made} | set(found))
    return sorted(made, key=lambda s: (-s.wait_share * s.caused_share, s.comm, s.entity.name))


def _add(one: Waiting, by_rank: Mapping[int, float]) -> None:
    ordered = sorted(by_rank.items(), key=lambda item: (item[1], item[0]))
    values = [duration for _, duration in ordered]
    last, shortest = ordered[0]
    waited = sum(values) - shortest * len(values)
    one.operations += 1
    one.total_us += sum(values)
    one.waited_us += waited
    for place, (rank, duration) in enumerate(ordered):
        known = one.by_rank.setdefault(rank, _Rank())
        others = _median_without(values, place)
        if others > 0:
            known.ratios.append(duration / others)
        if rank == last:
            known.last += 1
            known.caused_us += waited
            known.waits.append(max(0.0, others - shortest))


def _median_without(values: Sequence[float], place: int) -> float:
    """Return the median of sorted values without one of them."""
    left = len(values) - 1
    low, high = (left - 1) // 2, left // 2
    pick = [values[i + (i >= place)] for i in (low, high)]
    return sum(pick) / 2


def _matters(one: Waiting) -> bool:
    waits = one.operations * max(1, len(one.by_rank) - 1)
    return one.share >= _WAIT_SHARE and one.waited_us / waits >= _WAIT_US


def _needed(ranks: int) -> float:
    """Return the share of all waiting that one of so many has to cause to be named."""
    return _CAUSED_OF_TWO if ranks == 2 else min(_CAUSED_OF_TWO, max(_CAUSED, 3.0 / ranks))


def _ranks(comm: str, known: Comm, one: Waiting) -> list[Straggler]:
    found = []
    for rank, figures in sorted(one.by_rank.items()):
        caused = figures.caused_us / one.waited_us
        if caused < _needed(len(one.by_rank)):
            continue
        where = known.where.get(rank)
        entity = Entity(
            Kind.RANK, f"rank {rank}", host=(where or "").partition(":")[0] or None, rank=rank
        )
        found.append(_straggler(entity, comm, known, one, figures, caused))
    return found


def _hosts(comm: str, known: Comm, one: Waiting) -> list[Straggler]:
    """Name a host whose ranks together cause the waiting, where no single rank does."""
    by_host: dict[str, list[_Rank]] = {}
    for rank, figures in one.by_rank.items():
        host = (known.where.get(rank) or "").partition(":")[0]
        if host:
            by_host.setdefault(host, []).append(figures)
    if len(by_host) < 2:
        return []
    found = []
    for host, members in sorted(by_host.items()):
        caused = sum(m.caused_us for m in members) / one.waited_us
        if caused >= _CAUSED_OF_TWO and 2 * len(members) <= len(one.by_rank):
            together = _Rank(
                last=sum(m.last for m in members),
                caused_us=caused,
                ratios=[r for m in members for r in m.ratios],
                waits=[w for m in members for w in m.waits],
            )
            entity = Entity(Kind.NODE, host, host=host)
            found.append(_straggler(entity, comm, known, one, together, caused))
    return found


def _straggler(
    entity: Entity, comm: str, known: Comm, one: Waiting, figures: _Rank, caused: float
) -> Straggler:
    likely = one.operations >= _MANY and caused >= _CAUSED_OF_TWO
    last, ratio = figures.last / one.operations, median(figures.ratios or [1.0])
    wait = median(figures.waits or [0.0])
    on = f" on {entity.host}" if entity.kind is Kind.RANK and entity.host else ""
    few = f" Only {one.operations} operation(s) could be compared." if one.operations < _FEW else ""
    says = (
        f"{entity.name}{on} arrives last in {100 * last:.0f} % of {one.operations} operations of "
        f"communicator {known.name or comm} compared: its time in them is {ratio:.2f} of the "
        f"others' (the shortest is the late one), and they wait about {time(wait)} for it. "
        f"{100 * one.share:.0f} % of all time in these collectives is waiting, "
        f"{100 * caused:.0f} % of that for it.{few}"
    )
    return Straggler(
        entity=entity,
        comm=comm,
        comm_name=known.name,
        confidence=Confidence.LIKELY if likely else Confidence.POSSIBLE,
        says=says[0].upper() + says[1:],
        operations=one.operations,
        last_share=round(last, 4),
        ratio=round(ratio, 4),
        caused_share=round(caused, 4),
        wait_share=round(one.share, 4),
        wait_us=round(wait, 1),
        next=_next(entity, None if entity.rank is None else known.pids.get(entity.rank)),
    )


def _next(entity: Entity, pid: int | None = None) -> tuple[Step, ...]:
    host = entity.host
    steps = [
        Step("Why it comes late is not in these times: look at its GPU's clocks, power and heat.")
    ]
    there = f", on {host}" if host else ""
    if host:
        steps[0] = Step(steps[0].do, command=f"gpuwhy why {host}")
    steps.append(
        Step(
            f"See what its process does before the collective{there} (data loading, checkpoints).",
            command=f"py-spy dump --pid {pid or 'PID'}",
        )
    )
    return tuple(steps)


def _by_average(tally: Tally, done: set[str]) -> list[Straggler]:
    """Compare averages of GPUs, where operations cannot be matched: less sure by far.

    In each group the shortest average has to be below half of the others' median.
    """
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    seen: dict[str, int] = {}
    for (comm, _, _), group in tally.groups.items():
        if comm in done or not group.averages or not _one_communicator(tally, comm, group):
            continue
        seen[comm] = seen.get(comm, 0) + 1
        means = sorted((m.mean, str(who)) for who, m in group.members.items())
        others = median(mean for mean, _ in means[1:])
        shortest, who = means[0]
        if shortest < 0.5 * others and others - shortest >= _WAIT_US:
            found.setdefault((comm, who), []).append((shortest / others, others - shortest))
    made = []
    for (comm, who), hits in sorted(found.items()):
        if len(hits) * 2 <= seen[comm]:
            continue
        host, _, gpu = who.partition(":")
        ratio, wait = median(h[0] for h in hits), median(h[1] for h in hits)
        index = int(gpu) if gpu.isascii() and gpu.isdigit() and len(gpu) < 4 else None
        kind = Kind.GPU if index is not None else Kind.NODE
        entity = Entity(kind, who, host=host, gpu=index)
        known = tally.comms.get(comm)
        made.append(
            Straggler(
                entity=entity,
                comm=comm,
                comm_name=known.name if known else None,
                confidence=Confidence.POSSIBLE,
                says=(
                    f"{who} has the shortest average time in {len(hits)} of {seen[comm]} groups of "
                    f"communicator {comm}, {ratio:.2f} of the others' ({time(wait)} less): it "
                    "probably arrives last. These are averages of one interval; single operations "
                    "cannot be compared."
                ),
                operations=0,
                last_share=round(len(hits) / seen[comm], 4),
                ratio=round(ratio, 4),
                caused_share=0.0,
                wait_share=0.0,
                wait_us=round(wait, 1),
                next=_next(entity),
            )
        )
    return made


def _one_communicator(tally: Tally, comm: str, group: Group) -> bool:
    """Whether averages are of one communicator: names are all that tells, and may be shared."""
    known = tally.comms.get(comm)
    named = known is not None and known.name is not None
    return named and 3 <= len(group.members) <= (group.ranks or 0)
