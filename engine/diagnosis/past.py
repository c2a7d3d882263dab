"""One more wave that a degraded or noted answer is worth: what the last day of a source tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.diagnosis.fetch import Fetched, Fetcher
from engine.diagnosis.history import LOOKBACK_HISTORY_S, date_xid, of_gauge
from engine.diagnosis.judge import Judgement
from engine.diagnosis.lookback import LOOKBACK_DAY_S, MOST_GPUS, SETTINGS, changes, repeated
from engine.errors import SourceError
from engine.model import Verdict, Why
from engine.samples import Selection
from engine.signals.normalise import Readings
from engine.sources.port import Source


async def with_past(
    fetcher: Fetcher, found: Why, source: Source, got: Fetched, readings: Readings
) -> Why:
    """Add what changed in the last day about what is sick, and whether it came before."""
    if found.verdict is not Verdict.DEGRADED or not readings.frame.timed or got.at is None:
        return found
    sick = {e.key for d in found.diagnoses for e in (d.entity, *(x.entity for x in d.evidence))}
    frame = readings.frame
    chosen = [i for i, e in enumerate(frame.entities) if e.key in sick][:MOST_GPUS]
    if not chosen:
        return found
    wanted = [*SETTINGS, *(("xid", "xid_count") if "app_fault_xid" in found.causes else ())]
    names = fetcher.spelled(wanted) + fetcher.sign_of_life()
    places = [p for i in chosen for p in readings.places[i]]
    past = fetcher.start(got.at, LOOKBACK_DAY_S)
    past.window_s = LOOKBACK_DAY_S
    asked = fetcher.history_of(places, names)
    boot = fetcher.spelled(["node_boot_time"])
    hosts = sorted({p.host for p in places if p.host})
    asked += fetcher.hosts_own(hosts, LOOKBACK_DAY_S, boot)
    try:
        await fetcher.ask(source, past, asked)
    except SourceError as error:
        lost = f"what changed in the last day is not known: {error.one_line()}"
        return replace(found, warnings=(*found.warnings, lost))
    history = fetcher.frame(past)
    series, entities = past.batch.series, [frame.entities[i] for i in chosen]
    return replace(
        found,
        diagnoses=repeated(found.diagnoses, history, series, fetcher.catalogue, got.at),
        changes=changes(series, history, entities, fetcher.catalogue, got.at),
        queries=found.queries + past.batch.queries,
        waves=found.waves + past.waves,
    )


async def dated(
    fetcher: Fetcher,
    source: Source,
    got: Fetched,
    readings: Readings,
    chosen: Sequence[int],
    answers: list[Judgement],
) -> list[Judgement]:
    """Say when an old, sticky Xid appeared, if the last day of the source tells."""
    old = [k for k, a in enumerate(answers) if any(of_gauge(n) for n in a.notes)]
    if not old or not readings.frame.timed:
        return answers
    signal = fetcher.catalogue.signals["xid"]
    names = tuple(s.name for s in signal.spellings)
    selections = [
        Selection(names, origin.matchers, LOOKBACK_HISTORY_S)
        for k in old
        if (origin := readings.frame.origins.get(("xid", chosen[k])))
    ]
    past = fetcher.start(got.at, LOOKBACK_HISTORY_S)
    past.window_s = LOOKBACK_HISTORY_S
    await fetcher.ask(source, past, selections)
    got.waves += past.waves
    got.batch.queries += past.batch.queries
    history = fetcher.frame(past)
    out = list(answers)
    for k in old:
        out[k] = date_xid(out[k], history, got.at or 0.0)
    return out
