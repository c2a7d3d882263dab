"""Replaying rules over the past: when each would have fired, on what, and for how long.

Every moment is judged from the raw samples that a question about that moment would have got, by
the same code. Samples are read oldest first in pieces; memory is bounded by the rules' window, not
by the span. Kernel logs take no part.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine import __version__
from engine.catalogue.nearest import did_you_mean
from engine.catalogue.types import Catalogue
from engine.diagnosis.engine import DEFAULT_WINDOW_S
from engine.errors import UsageError
from engine.history.replay import Progress, Replay, Run, spellings
from engine.history.replaymodel import Backtest
from engine.history.versions import compare, differing
from engine.model import EngineInfo
from engine.samples import Matcher, Selection
from engine.sources.port import Source
from engine.units import duration

DEFAULT_SINCE_S = 7 * 86400.0
DEFAULT_STEP_S = 60.0
MIN_STEP_S = 5.0
# A week of a minute's steps is 10,080; beyond this a run takes a working day.
MOST_MOMENTS = 100_000
_SHOWN_GAPS = 200
_ALL_OF_A_FILE_S = 1e10


async def backtest(
    source: Source,
    catalogue: Catalogue,
    rules: Sequence[str] = (),
    *,
    since_s: float = DEFAULT_SINCE_S,
    until: float | None = None,
    step_s: float = DEFAULT_STEP_S,
    other: Catalogue | None = None,
    where: Sequence[Matcher] = (),
    on_progress: Progress | None = None,
) -> Backtest:
    """Replay rules over the history of a source.

    Args:
        source: where samples come from.
        catalogue: knowledge and rules.
        rules: ids of causes and symptoms; empty is all causes, or with ``other`` what differs.
        since_s: how far back from ``until`` to begin (s).
        until: the last moment (Unix s); None is now, or a file's newest sample.
        step_s: the time between two moments (s).
        other: another version of the rules, to compare with.
        where: matchers that all series must meet.
        on_progress: called with moments done and moments in all.

    Raises:
        UsageError: no such rule, a span or step out of range, or too many series at once.
        SourceError: the source does not answer.
        InputError: a file cannot be read.
    """
    if not MIN_STEP_S <= step_s <= since_s:
        hint = f"give {MIN_STEP_S:g}s up to the whole span"
        raise UsageError(f"step {step_s:g} s is out of range", hint=hint)
    names = _names(catalogue, rules, other)
    runs = [Run(c, names, step_s) for c in (catalogue, other) if c is not None]
    end = until if until is not None else await _newest(source, catalogue)
    count = int(since_s / step_s + 1e-9)
    if count > MOST_MOMENTS:
        hint = (
            f"give a shorter --since, or a --step of {duration(since_s / MOST_MOMENTS + 1)} or more"
        )
        raise UsageError(f"{count} moments are too many", hint=hint)
    replay = Replay(source, runs, tuple(where), end - count * step_s, end, step_s)
    await replay.run(on_progress)
    versions = [run.version(replay.judged, replay.requests) for run in runs]
    first, last = replay.readings
    if last is None:
        first, last = await _elsewhere(source, catalogue)
    changes, same = compare(*(v.firings for v in versions)) if other else ((), 0)
    return Backtest(
        source=source.name,
        start=replay.start,
        end=end,
        step_s=step_s,
        moments=replay.judged,
        now=versions[0],
        other=versions[1] if other else None,
        changes=changes,
        same=same,
        gaps=tuple(replay.gaps[:_SHOWN_GAPS]),
        engine=EngineInfo(__version__, catalogue.hash, runs[0].panel.inference),
        queries=replay.queries,
        warnings=tuple(dict.fromkeys([*catalogue.left_out, *replay.warnings])),
        moments_read=replay.read,
        readings_from=first,
        readings_to=last,
    )


def _names(catalogue: Catalogue, rules: Sequence[str], other: Catalogue | None) -> tuple[str, ...]:
    """Return the ids of the rules to replay.

    Raises:
        UsageError: there is no such rule, or it is switched off.
    """
    versions = [c for c in (catalogue, other) if c is not None]
    known = dict.fromkeys(n for c in versions for n in (*c.causes, *c.symptoms))
    if not rules:
        names = differing(catalogue, other) if other else tuple(catalogue.causes)
        if not names:
            hint = "name the rules to compare, or see that the overlay changes one"
            raise UsageError("no rule differs between the two versions", hint=hint)
        return names
    found = []
    for rule in rules:
        name = rule.partition("@")[0].removeprefix("cause/")
        if name not in known:
            off = catalogue.disabled.get(f"rule/{name}") or catalogue.disabled.get(
                f"symptom/{name}"
            )
            if off:
                raise UsageError(
                    f"rule {name!r} is switched off by {off}", hint="leave the overlay out"
                )
            hint = did_you_mean(name, known, otherwise="gpuwhy rules list names them all")
            raise UsageError(f"no rule {name!r}", hint=hint, code="unknown_rule")
        found.append(name)
    return tuple(dict.fromkeys(found))


async def _elsewhere(
    source: Source, catalogue: Catalogue
) -> tuple[float, float] | tuple[None, None]:
    """Return from when to when a file has readings (Unix s); a server is not asked for all."""
    if not source.rereads:
        return None, None
    selection = Selection(spellings(catalogue, ("gpu_temp",)), (), _ALL_OF_A_FILE_S)
    batch = await source.select([selection], at=None)
    found = [one.ts for one in batch.series if one.timed and one.ts.size]
    if not found:
        return None, None
    return min(float(ts[0]) for ts in found), max(float(ts[-1]) for ts in found)


async def _newest(source: Source, catalogue: Catalogue) -> float:
    """Return now as the source knows it, or the newest time of a file (Unix s)."""
    names = spellings(catalogue, ("gpu_temp",))
    batch = await source.select([Selection(names, (), DEFAULT_WINDOW_S)], at=None)
    if batch.at is None:
        raise UsageError(
            f"{source.name} has no times: there is no past to replay",
            hint="give a metrics server, or a file with a time on every sample",
        )
    return batch.at
