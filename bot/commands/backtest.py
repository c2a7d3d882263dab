"""``rules backtest``: when rules would have fired in the past, and how two versions differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from bot.answer import (
    Align,
    Answer,
    Block,
    Heading,
    Line,
    Span,
    Table,
    Text,
    Tone,
    bullets,
    code,
    line,
    muted,
    strong,
)
from bot.commands import parts
from bot.phrases import count, some
from bot.times import utc
from engine.model import to_json
from engine.units import duration

if TYPE_CHECKING:
    from engine.catalogue.types import Catalogue
    from engine.history.replaymodel import Backtest, Change, Ended, Firing, RuleHistory, Version
    from engine.samples import Matcher
    from engine.sources.port import Source

# Rows of a table that are read; all are in the document.
_SHOWN = 50
_ENDED = {
    "over": "",
    "unknown": "a reading went missing",
    "gone": "the entity was gone",
    "unread": "could not be read",
    "goes_on": "goes on",
}


async def run(
    rules: Sequence[str],
    *,
    catalogue: Catalogue,
    source: Source,
    since_s: float,
    until: float | None,
    step_s: float,
    other: Catalogue | None = None,
    where: Sequence[Matcher] = (),
    on_progress: Callable[[int, int], None] | None = None,
) -> Answer:
    """Replay rules over the history of a source (see `engine.history.backtest.backtest`).

    Raises:
        UsageError: no such rule, or a span that cannot be replayed.
        SourceError: the source does not answer.
    """
    from engine.history.backtest import backtest  # noqa: PLC0415 - so that --help starts fast

    found = await backtest(
        source,
        catalogue,
        rules,
        since_s=since_s,
        until=until,
        step_s=step_s,
        other=other,
        where=where,
        on_progress=on_progress,
    )
    return answer(found)


def answer(found: Backtest) -> Answer:
    """Return a backtest as an answer."""
    span = f" from {utc(found.start)} to {utc(found.end)}, every {duration(found.step_s)}"
    return Answer(
        title=line(_head(found), span),
        blocks=tuple(_blocks(found)),
        data=to_json(found),
    )


def _head(found: Backtest) -> Span:
    rules = found.now.rules
    fired = sum(bool(rule.firings) for rule in rules)
    if not found.moments_read and not fired:
        return strong("No reading to judge", Tone.WARNING)
    if found.other is not None:
        return strong(f"{count(len(found.changes), 'difference')}, {found.same} the same")
    if not any(rule.firings or rule.looks > rule.unknown for rule in rules):
        return strong(f"None of {count(len(rules), 'rule')} could be decided", Tone.WARNING)
    return strong(f"{count(fired, 'rule')} of {len(rules)} would have fired")


def _read(found: Backtest) -> str:
    """Return how many moments had readings, and where not all had, when there are some."""
    if found.moments_read == found.moments:
        said = f"{count(found.moments, 'moment')} of {found.source} judged, all with readings"
    else:
        said = f"{found.moments_read} of {count(found.moments, 'moment')} had readings"
        if found.readings_from is not None and found.readings_to is not None:
            told = f"from {utc(found.readings_from)} to {utc(found.readings_to)}"
            where = ", in this span" if found.moments_read else ""
            said += f": {found.source} has them {told}{where}"
    return f"{said}."


def _blocks(found: Backtest) -> Iterator[Block]:
    yield Text(line(_read(found)))
    if found.other is None:
        yield from _rules(found.now.rules)
        yield from _firings(found.now, found.step_s)
    else:
        yield from _changes(found.changes)
        yield Heading(line("As the rules are"), 2)
        yield from _rules(found.now.rules)
        yield Heading(line("With the overlay"), 2)
        yield from _rules(found.other.rules)
    yield from _undecided(found.now.rules)
    if found.gaps:
        yield Heading(line("Could not be read"), 2)
        yield bullets(
            line(f"{utc(g.start)} to {utc(g.end)}: {g.what}: {g.why}") for g in found.gaps[:_SHOWN]
        )
    yield Heading(line("Swept every minute"), 2)
    yield Text(_load(found.now))
    if found.other is not None:
        yield Text(line("With the overlay: ", *_load(found.other)))
    yield from parts.warning_blocks(found.warnings)


def _rules(rules: Sequence[RuleHistory]) -> Iterator[Block]:
    """Yield the rules that fired, the longest first; the others by name."""
    fired = sorted((r for r in rules if r.firings), key=lambda r: (-r.lasted_s, r.rule))
    if fired:
        yield Table(
            columns=("rule", "fired", "on", "in all", "longest", "title"),
            rows=tuple(
                (
                    line(code(r.rule)),
                    line(count(r.firings, "time")),
                    line(count(r.entities, "entity", "entities")),
                    line(duration(r.lasted_s)),
                    line(duration(r.longest_s)),
                    line(r.title),
                )
                for r in fired
            ),
            align=(Align.LEFT, *[Align.RIGHT] * 4, Align.LEFT),
        )
    quiet = [r.rule for r in rules if not r.firings and r.looks > r.unknown]
    if quiet:
        yield Text(line(f"Never: {some(quiet)}."))


def _undecided(rules: Sequence[RuleHistory]) -> Iterator[Block]:
    """Say which rules could not be decided, all the time or part of it: unknown is not quiet."""
    never = [r.rule for r in rules if r.looks and r.unknown == r.looks]
    partly = [r for r in rules if 0 < r.unknown < r.looks]
    nobody = [r.rule for r in rules if not r.looks]
    if never:
        said = f"Never decided, for lack of readings (see rules why-not): {some(never)}."
        yield Text(line(said))
    if partly:
        shares = [f"{r.rule} {100 * r.unknown / r.looks:.3g} %" for r in partly]
        yield Text(line(f"Not decided part of the time: {some(shares)}."))
    if nobody:
        yield Text(line(f"Nothing was there that they are about: {some(nobody)}."))


def _firings(version: Version, step_s: float) -> Iterator[Block]:
    shown = version.firings[:_SHOWN]
    if not shown:
        return
    yield Heading(line("When"), 2)
    yield Text(line(f"First and last moment; a moment counts for one step, {duration(step_s)}."))
    yield Table(
        columns=("from", "to", "lasted", "rule", "on", "confidence", "ended"),
        rows=tuple(
            (
                line(("before " if f.from_before else "") + utc(f.start)),
                line(utc(f.end)),
                line(duration(f.lasted_s), muted(f" ({count(_moments(f, step_s), 'moment')})")),
                line(code(f.rule)),
                line(f.entity.name),
                line(str(f.confidence or "")),
                line(_end(f.ended)),
            )
            for f in shown
        ),
        align=(Align.LEFT, Align.LEFT, Align.RIGHT, *[Align.LEFT] * 4),
    )
    more = len(version.firings) - len(shown)
    if more:
        yield Text(line(f"{more} more: see --json."))
    if version.left_out:
        yield Text(line(f"{version.left_out} beyond those are counted, not listed."))


def _moments(firing: Firing, step_s: float) -> int:
    return round(firing.lasted_s / step_s)


def _changes(changes: Sequence[Change]) -> Iterator[Block]:
    if not changes:
        yield Text(line("Both versions fire at the same moments on the same entities."))
        return
    yield Table(
        columns=("with the overlay", "rule", "on", "as it is", "then"),
        rows=tuple(
            (
                line(strong(str(c.difference))),
                line(code(c.rule)),
                line(c.entity.name),
                line(_spans(c.before)),
                line(_spans(c.after)),
            )
            for c in changes[:_SHOWN]
        ),
        align=(Align.LEFT,) * 5,
    )
    if len(changes) > _SHOWN:
        yield Text(line(f"{len(changes) - _SHOWN} more: see --json."))


def _spans(firings: Sequence[Firing]) -> str:
    if not firings:
        return "never"
    lasted = duration(sum(f.lasted_s for f in firings))
    return f"{lasted} from {utc(firings[0].start)}"


def _end(ended: Ended) -> str:
    return _ENDED[str(ended)]


def _load(version: Version) -> Line:
    load = version.load
    return line(
        f"{load.queries_a_day:,} queries and {load.samples_a_day:,} samples a day, "
        f"from {count(load.series, 'series', 'series')}",
        muted(f" ({count(load.queries_a_sweep, 'query', 'queries')} a sweep)"),
    )
