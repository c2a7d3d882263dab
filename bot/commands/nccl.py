"""``nccl``: how long collectives took, from what NCCL's profiler plugins write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from bot.answer import (
    Align,
    Answer,
    Block,
    Bullet,
    Bullets,
    Heading,
    Level,
    Line,
    Note,
    NoteKind,
    Span,
    Steps,
    Table,
    Text,
    Tone,
    line,
    muted,
    strong,
)
from bot.commands import parts
from bot.phrases import count, some
from engine.errors import GpuwhyError
from engine.model import Confidence, Entity, to_json
from engine.nccl import NcclStats, Tally, summary
from engine.nccl.files import Given, tally_of
from engine.nccl.model import CommFigures, GroupFigures, RankFigures, Straggler
from engine.nccl.say import size_class, time

# Rows that people read; the JSON document has all of them.
_MOST_GROUPS = 24
_MOST_RANKS = 16
_MOST_STRAGGLERS = 8

_Progress = Callable[[int, int | None], None]


def run(inputs: Sequence[Given], *, on_progress: _Progress | None = None) -> Answer:
    """Read files and say how long collectives took; one that cannot be read stops no other.

    Args:
        inputs: what to read.
        on_progress: told how many bytes of how many of the current file were read.

    Raises:
        InputError: no file holds a record.
    """
    tally = Tally()
    files = tally_of(inputs, tally, on_progress)
    stats = summary(
        tally,
        files=files.files,
        sources=files.sources,
        unread_lines=files.unread_lines,
        warnings=files.warnings,
    )
    return answer(stats, errors=files.errors)


def answer(stats: NcclStats, *, errors: Sequence[GpuwhyError] = ()) -> Answer:
    """Return the figures as an answer.

    Args:
        stats: what was counted.
        errors: files that could not be read.
    """
    return Answer(
        title=_title(stats),
        blocks=tuple(_blocks(stats)),
        data=to_json(stats),
        level=_level(stats),
        errors=tuple(errors),
    )


def _level(stats: NcclStats) -> Level:
    if not stats.records:
        return Level.UNKNOWN
    likely = any(s.confidence is not Confidence.POSSIBLE for s in stats.stragglers)
    return Level.MEDIUM if likely else Level.LOW if stats.stragglers else Level.CLEAR


def _title(stats: NcclStats) -> Line:
    if not stats.records:
        return line(strong("No collective was recorded", Tone.WARNING))
    seen = f"{count(stats.records, 'record')} in {count(stats.files, 'file')}"
    late = stats.stragglers
    if late:
        names = some((_where(s.entity) for s in late), 4)
        word = "straggler" if len(late) == 1 else "stragglers"
        return line(strong(f"{count(len(late), word, word)}: ", Tone.BAD), names, f" ({seen})")
    if not any(c.compared for c in stats.communicators):
        why = "no operation was seen on two ranks, so nobody can be compared"
        if any(g.averages for g in stats.groups):
            why = "averages alone, in which a rank that is now and then late does not show"
        return line(strong("Durations of collectives"), f": {seen}; {why}")
    return line(strong("No straggler", Tone.GOOD), f": {seen}")


def _where(entity: Entity) -> str:
    if entity.rank is not None and entity.host:
        return f"{entity.name} on {entity.host}"
    return entity.name


def _blocks(stats: NcclStats) -> Iterator[Block]:
    yield from _stragglers(stats.stragglers)
    if stats.groups:
        yield Heading(line("Durations, most time first"), 2)
        yield _durations(stats.groups[:_MOST_GROUPS])
        if len(stats.groups) > _MOST_GROUPS:
            more = count(len(stats.groups) - _MOST_GROUPS, "more group")
            yield Text(line(muted(f"{more}; --json has all")))
    yield from _ranks(stats)
    if stats.communicators:
        yield Heading(line("Communicators"), 2)
        yield Bullets(tuple(Bullet(line(*_comm(c))) for c in stats.communicators[:_MOST_GROUPS]))
        if len(stats.communicators) > _MOST_GROUPS:
            more = f"{len(stats.communicators) - _MOST_GROUPS} more; --json has all"
            yield Text(line(muted(more)))
    for note in stats.notes:
        yield Note(NoteKind.INFO, line(note))
    if stats.unread_lines:
        said = f"{count(stats.unread_lines, 'record')} cut off or damaged, left out"
        yield Note(NoteKind.WARNING, line(said))
    yield from parts.warning_blocks(stats.warnings)


def _stragglers(found: Sequence[Straggler]) -> Iterator[Block]:
    if not found:
        return
    yield Heading(line("Stragglers"), 2)
    yield Bullets(
        tuple(Bullet(line(s.says, f" ({s.confidence})")) for s in found[:_MOST_STRAGGLERS])
    )
    if len(found) > _MOST_STRAGGLERS:
        yield Text(line(muted(f"{len(found) - _MOST_STRAGGLERS} more; --json has all")))
    yield Heading(line("Next"), 2)
    steps = [step for one in found[:_MOST_STRAGGLERS] for step in one.next]
    yield Steps(tuple(dict.fromkeys(steps)))


def _durations(groups: Sequence[GroupFigures]) -> Table:
    several = len({g.comm for g in groups}) > 1
    columns = ["collective", "size", "ranks", "count", "p50", "p99", "max", "busbw GB/s"]
    rows = []
    for one in groups:
        spread = one.duration_us
        cells = [
            one.collective,
            size_class(one),
            str(one.ranks or "?"),
            f"{one.count}{' avg' if one.averages else ''}",
            time(spread.p50),
            time(spread.p99),
            time(spread.max),
            _bandwidth(one),
        ]
        if several:
            cells.append(one.comm_name or one.comm)
        rows.append(tuple(line(cell) for cell in cells))
    align = [Align.LEFT, *[Align.RIGHT] * (len(columns) - 1)]
    if several:
        columns.append("communicator")
        align.append(Align.LEFT)
    return Table(tuple(columns), tuple(rows), tuple(align))


def _bandwidth(one: GroupFigures) -> str:
    if one.busbw_gbs is None:
        return "-"
    best = one.busbw_moving_gbs
    if best is None or best <= 1.05 * one.busbw_gbs:
        return f"{one.busbw_gbs:.4g}"
    return f"{one.busbw_gbs:.4g} (best {best:.4g})"


def _ranks(stats: NcclStats) -> Iterator[Block]:
    """Yield the ranks of the group with most time, where somebody is late."""
    late = {s.comm for s in stats.stragglers}
    group = next((g for g in stats.groups if g.comm in late and len(g.by_rank) > 1), None)
    if group is None:
        return
    shown = sorted(group.by_rank, key=lambda r: r.ratio)[:_MOST_RANKS]
    yield Heading(line(f"Ranks in {group.collective} of {size_class(group)}, latest first"), 2)
    yield Table(
        ("rank", "count", "p50", "p99", "of the median"),
        tuple(_rank(one) for one in shown),
        (Align.LEFT, Align.RIGHT, Align.RIGHT, Align.RIGHT, Align.RIGHT),
    )
    hidden = len(group.by_rank) + group.left_out - len(shown)
    if hidden > 0:
        yield Text(line(muted(f"{count(hidden, 'more rank')}")))


def _rank(one: RankFigures) -> tuple[Line, ...]:
    who = one.where if one.rank is None else str(one.rank)
    return (
        line(who or "?"),
        line(str(one.count)),
        line(time(one.p50_us)),
        line(time(one.p99_us)),
        line(f"{one.ratio:.2f}"),
    )


def _comm(one: CommFigures) -> Iterator[Span | str]:
    yield strong(one.name or one.comm)
    if one.name and one.name != one.comm:
        yield f" ({one.comm})"
    if one.ranks:
        nodes = f" on {count(one.nodes, 'node')}" if one.nodes else ""
        yield f": {count(one.ranks, 'rank')}{nodes}"
        if one.seen:
            yield f", {one.seen} seen"
    if one.wait_share is not None:
        yield f"; {100 * one.wait_share:.0f} % of the time in {count(one.compared, 'operation')}"
        yield " compared was waiting"
