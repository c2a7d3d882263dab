"""What a server holds of the GPUs of a roster, and how it lies there."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from engine.condition import LabelProfile
from engine.condition.prune import JOBS
from engine.diagnosis.sweepchecks import several_names, several_series
from engine.diagnosis.sweephosts import Roster, Row, Where, odd_hosts, rows_of
from engine.diagnosis.sweepqueries import (
    SLACK,
    Compile,
    Known,
    known,
    over,
    spelled,
)
from engine.errors import SourceError
from engine.samples import Matcher
from engine.signals.labels import IDENTITY_LABELS, JOB_LABELS, MODEL_LABELS
from engine.sources.port import Element, Evaluator, Source

if TYPE_CHECKING:
    from engine.diagnosis.engine import Engine

# What a query has around its list of metric names.
_AROUND = 600


class Server(Source, Evaluator, Protocol):
    """A source that evaluates PromQL."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """What there is of a roster.

    Attributes:
        profile: how its series are labelled.
        known: the catalogue cut down to it.
        core: metric names of the core readings that are there.
        partial: metric names that some of its hosts lack.
        odd: hosts with series that are labelled otherwise.
        waves: how often was asked, one wave after the other.
    """

    profile: LabelProfile
    known: Known
    core: tuple[str, ...]
    partial: tuple[str, ...]
    odd: frozenset[Where]
    waves: int


async def holdings(
    engine: Engine,
    source: Server,
    roster: Roster,
    rows: Sequence[Row],
    *,
    at: float,
    window_s: int,
    where: tuple[Matcher, ...],
    also: Collection[str],
) -> Holdings | None:
    """Ask what a server holds of a roster.

    Args:
        engine: the rules and their signals.
        source: the server.
        roster: the GPUs.
        rows: all GPUs, those of other rosters too.
        at: the moment judged (Unix s).
        window_s: how far back readings count (s).
        where: what the sweep is narrowed to.
        also: signals that are there, but not of GPUs.

    Returns:
        None if there is no core reading, or if its series tell GPU models or jobs by several
        labels: then nothing is sure.

    Raises:
        SourceError: the server does not answer.
    """
    names, core = engine.fetcher.names.gpu, engine.fetcher.core_names()
    profile = LabelProfile(
        entity=roster.entity,
        host=roster.host,
        selector=(*roster.matchers, *where),
        one_series=True,
        closed=True,
        slack=SLACK,
    )
    job_labels = (*JOB_LABELS, *engine.site.job_labels)
    counts, models, jobs = await asyncio.gather(
        _hosts_with(source, names, profile, at, window_s),
        _labelled(source, core, MODEL_LABELS, profile, at, window_s),
        _labelled(source, core, job_labels, profile, at, window_s),
    )
    labels, of_job = {label for label, _ in models}, {label for label, _ in jobs}
    here = [name for name in core if name in counts]
    if len(labels) > 1 or len(of_job) > 1 or not here:
        return None
    if of_job:
        profile = replace(profile, job=of_job.pop())
        also = (*also, JOBS)
    if labels:
        profile = replace(profile, model=labels.pop())
    life = tuple(dict.fromkeys(n for n in engine.fetcher.sign_of_life() if n in counts))
    profile = replace(profile, everywhere=life)
    odd = await _labelled_otherwise(
        source, names, profile, rows, at=at, window_s=window_s, where=where, model=bool(models)
    )
    odd |= await _without_core(source, sorted(counts), here, profile, at, window_s)
    there = known(engine.catalogue, set(counts), [m for _, m in models], also, window_s)
    in_several = await several(source, there, here, profile, at)
    most = max(counts.values(), default=0)
    return Holdings(
        profile,
        replace(there, several=in_several),
        tuple(dict.fromkeys(here)),
        tuple(sorted(name for name, count in counts.items() if count < most)),
        frozenset(odd),
        waves=4,
    )


async def _hosts_with(
    source: Server, names: Sequence[str], profile: LabelProfile, at: float, window_s: int
) -> dict[str, int]:
    """Return the metric names that the roster has, and how many hosts have each."""
    by = profile.host
    queries = [
        f"count by (__name__) (count by (__name__, {by})"
        f" ({over('last_over_time', some, profile, window_s)}))"
        for some in _packed(names, source.longest_query - _AROUND)
    ]
    found = await _vectors(source, queries, at)
    return {labels["__name__"]: int(count) for labels, count in found if "__name__" in labels}


async def _labelled(
    source: Server,
    names: Sequence[str],
    labels: Sequence[str],
    profile: LabelProfile,
    at: float,
    window_s: int,
) -> list[tuple[str, str]]:
    """Return which of some labels there are, with all values that they have."""
    by = ", ".join(labels)
    query = f"group by ({by}) ({over('last_over_time', names, profile, window_s)})"
    found = await _vectors(source, [query], at)
    told = {(k, v) for metric, _ in found for k, v in metric.items() if k in labels and v}
    return sorted(told)


async def _labelled_otherwise(
    source: Server,
    names: Sequence[str],
    profile: LabelProfile,
    rows: Sequence[Row],
    *,
    at: float,
    window_s: int,
    where: tuple[Matcher, ...],
    model: bool,
) -> set[Where]:
    """Return the hosts with series that the profile's selectors miss."""
    labels = dict.fromkeys((*profile.entity, profile.host, *((profile.model,) if model else ())))
    found = await asyncio.gather(
        *(
            source.label_sets(
                names,
                IDENTITY_LABELS,
                at=at,
                window_s=window_s,
                matchers=(Matcher(label, "=", ""), *where),
            )
            for label in labels
        )
    )
    missed = rows_of(one for some in found for one in some)
    odd = odd_hosts([*rows, *missed])
    if model:  # without the label the place may look as it should
        odd |= {row.where for row in rows_of(found[-1]) if row.where}
    return odd


async def _without_core(
    source: Server,
    names: Sequence[str],
    core: Sequence[str],
    profile: LabelProfile,
    at: float,
    window_s: int,
) -> set[Where]:
    """Return the hosts with a GPU that has readings, but none of the core ones."""
    gpu = ", ".join(profile.entity)
    by = ", ".join(dict.fromkeys((*profile.entity, profile.host)))
    others = [name for name in names if name not in core]
    seen = over("last_over_time", core, profile, window_s)
    queries = [
        f"group by ({by}) ({over('last_over_time', some, profile, window_s)})"
        f" unless on({gpu}) group by ({gpu}) ({seen})"
        for some in _packed(others, source.longest_query - 2 * _AROUND)
    ]
    found = await _vectors(source, queries, at)
    return {(profile.host, labels.get(profile.host, "")) for labels, _ in found}


async def several(
    source: Server, there: Known, core: Sequence[str], profile: LabelProfile, at: float
) -> frozenset[str]:
    """Return the signals of which a GPU may have several series at once."""
    signals = {name: spelled(there, [name]) for name in there.catalogue.signals}
    names = sorted({name for spellings in signals.values() for name in spellings})
    made: list[Compile] = [
        several_series(there, some, core)
        for some in _packed(names, source.longest_query - 3 * _AROUND)
    ]
    twice = {signal: some for signal, some in signals.items() if len(some) > 1}
    made += [several_names(there, {signal: some}) for signal, some in sorted(twice.items())]
    found = await _vectors(source, [compile_(profile) for compile_ in made], at)
    told = {labels.get("__name__", "") for labels, _ in found}
    by_name = {signal for signal, some in signals.items() if not told.isdisjoint(some)}
    return frozenset(by_name | {labels["signal"] for labels, _ in found if "signal" in labels})


async def _vectors(source: Server, queries: Sequence[str], at: float) -> list[Element]:
    """Return the elements of all answers.

    Raises:
        SourceError: one of the queries failed.
    """
    found = await source.evaluate(queries, at=at)
    out: list[Element] = []
    for answer in found.answers:
        if isinstance(answer, SourceError):
            raise answer
        out += answer
    return out


def _packed(names: Sequence[str], room: int) -> Iterator[list[str]]:
    """Divide names so that those of each part, with a separator each, fit into so many letters."""
    chosen: list[str] = []
    left = room
    for name in names:
        if chosen and len(name) + 1 > left:
            yield chosen
            chosen, left = [], room
        chosen.append(name)
        left -= len(name) + 1
    if chosen:
        yield chosen
