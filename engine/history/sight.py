"""Looking once: a sweep, and which of the known incidents it could not see.

A sweep says what it found, and lists whom it could not judge; an entity that has vanished is in
neither. Before the absence of an incident counts, its entity must have been read (see
`engine.history.readable`); that takes one to three more requests, and only while something that was
there is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from engine.diagnosis import Engine
from engine.errors import SourceError
from engine.history.incidents import Sight
from engine.history.readable import LABELS, Asked, Rows, scope_of, unread
from engine.history.tracked import EntityKey, IncidentKey, Tracked
from engine.model import Sweep
from engine.samples import Matcher
from engine.sources.logs.port import LogSource
from engine.sources.port import Source
from engine.sources.selector import quote
from engine.units import duration

# An entity counts as read if one of its readings is at most so old (s): several scrapes.
FRESH_S = 300.0


async def look(
    engine: Engine,
    source: Source,
    known: Sequence[Tracked],
    *,
    window_s: float,
    where: Sequence[Matcher] = (),
    logs: LogSource | None = None,
) -> Sight:
    """Sweep a source, and say which of the entities of known incidents could not be read.

    Args:
        engine: judges.
        source: where readings come from.
        known: the incidents whose absence would mean something.
        window_s: how far back to look (s).
        where: label matchers that every series must fit.
        logs: where events of kernel logs come from.

    Raises:
        SourceError: the source does not answer, or holds nothing that could be checked.
    """
    sweep = await engine.sweep(source, window_s=window_s, where=where, logs=logs)
    if not any(sweep.checked.values()) and not sweep.incidents:
        raise _nothing(source.name, where, window_s)
    asked = absent(known, sweep, engine)
    if not asked:
        return Sight(sweep)
    names = engine.fetcher.names

    async def rows(of: Sequence[str]) -> Sequence[Mapping[str, str]]:
        if not of:
            return ()
        return await source.label_sets(
            of, LABELS, at=sweep.at, window_s=min(window_s, FRESH_S), matchers=tuple(where)
        )

    scopes = sorted({scope for one in asked if (scope := scope_of(one.entity))})
    fresh = Rows(
        gpus=await rows(engine.fetcher.core_names()),
        nodes=await rows(names.node) if any(one.by_node for one in asked) else (),
        others={scope: await rows(names.others[scope]) for scope in scopes},
    )
    return Sight(sweep, unread(asked, sweep, fresh))


def _nothing(name: str, where: Sequence[Matcher], window_s: float) -> SourceError:
    """Return what is said of a look that could check nothing: no incident is no news then."""
    span = duration(window_s)
    if where:
        fits = ",".join(f"{one.label}{one.op}{quote(one.value)}" for one in where)
        said = f"nothing could be checked: no series that fits {fits} has readings in {span}"
        hint = "check the selector against the labels of the exporter"
    else:
        said = f"nothing could be checked: no readings of a GPU or a host in {span}"
        hint = "check that it holds what an exporter of GPUs gives"
    return SourceError(f"{name}: {said}", hint=hint, code="nothing_read")


def absent(known: Iterable[Tracked], sweep: Sweep, engine: Engine) -> list[Asked]:
    """Return the entities and members of the known incidents that a sweep did not find.

    Those of found incidents that some member has left are among them: it may not have been read.
    """
    found: Mapping[IncidentKey, set[EntityKey]] = {
        (one.diagnosis.cause, one.diagnosis.entity.key): {m.key for m in one.members}
        for one in sweep.incidents
    }
    out: dict[EntityKey, Asked] = {}
    for one in known:
        here = found.get(one.key)
        for member in one.members:
            if member.told and member.entity.key not in (here or ()):
                out.setdefault(member.entity.key, Asked(member.entity))
        if here is None:
            entity = one.diagnosis.entity
            before = out.get(entity.key, Asked(entity))
            out[entity.key] = Asked(entity, before.by_node or _by_node(one, engine))
    return list(out.values())


def _by_node(one: Tracked, engine: Engine) -> bool:
    """Return whether a reading of the host itself, not of its GPUs, was among what decided."""
    signals = (engine.catalogue.signals.get(e.signal) for e in one.diagnosis.evidence)
    return any(signal is not None and signal.scope == "node" for signal in signals)
