"""When a target has no readings in the window: say what the source does hold.

Either the target has readings further back (then it is stale, not unknown to us), or its exporter
is down, or nothing of that name exists: then the nearest names are offered.
"""

from __future__ import annotations

import re

import numpy as np
from rapidfuzz import fuzz, process

from engine.diagnosis.byhost import host_matchers
from engine.diagnosis.fetch import Fetched, Fetcher, matches
from engine.diagnosis.present import silent
from engine.diagnosis.selecting import LOOKBACK_LOST_S
from engine.errors import UsageError
from engine.model import Entity, Kind
from engine.samples import Column, Frame, Selection
from engine.signals.entities import MODEL_LABELS, MOUNT_LABELS, RUN_LABELS
from engine.signals.labels import IDENTITY_LABELS, JOB_LABELS, Place, first, locate, node_entity
from engine.signals.normalise import Readings
from engine.sources.port import Source
from engine.topology import Target

_CLOSE = 60.0
_SHOWN = 8
# By which labels of which series a target is named that is no GPU and no host.
_NAMED_BY = {
    Kind.SERVICE: ("service", MODEL_LABELS),
    Kind.FILESYSTEM: ("filesystem", MOUNT_LABELS),
    Kind.RANK: ("rank", RUN_LABELS),
}
# No exporter is scraped below it: such a number was meant as the index of a GPU.
_FIRST_USUAL_PORT = 1024


async def lost(
    fetcher: Fetcher, source: Source, got: Fetched, target: Target
) -> tuple[Readings, list[int]]:
    """Look for a target under rarer labels, further back, and at the exporters of its host.

    Returns:
        The readings (of the last day, if the window has none) and the entities that are the
        target; none if there is nothing but the state of the exporter, or no GPU reading at all.

    Raises:
        UsageError: the source holds GPUs, but none of this name.
    """
    selections = fetcher.wave_one(target, LOOKBACK_LOST_S)
    core = tuple(dict.fromkeys(fetcher.core_names()))
    wider = [Selection(core, s.matchers, LOOKBACK_LOST_S) for s in selections]
    if target.host:
        wider += fetcher.rarer(target, got.window_s)
        wider += [
            Selection(("up",), matchers, got.window_s) for matchers in host_matchers([target.host])
        ]
    await fetcher.ask(source, got, wider)
    readings = fetcher.frame(got)
    chosen = _found(target, readings)
    if chosen and not all(silent(readings.frame, i) for i in chosen):
        return readings, chosen
    got.window_s = LOOKBACK_LOST_S
    readings = fetcher.frame(got)
    chosen = _found(target, readings)
    if chosen:
        more = fetcher.exporters_of(readings, chosen)
        if target.host is None:
            more += fetcher.siblings_of([p for i in chosen for p in readings.places[i]])
        if not more:
            return readings, chosen
        await fetcher.ask(source, got, more)
        readings = fetcher.frame(got)
        return readings, _found(target, readings)
    here = [p for group in readings.places for p in group if p.host == target.host]
    if target.gpu is not None and target.uuid is None and any(p.gpu is not None for p in here):
        raise _no_such(target, here)
    if target.host in readings.nodes:
        return readings, []
    if target.kind is Kind.RACK:  # there is one: the map of the site says so
        return readings, []
    labels = (*IDENTITY_LABELS, *(JOB_LABELS if target.job else ()))
    rows = await source.label_sets(core, labels, at=got.at, window_s=LOOKBACK_LOST_S)
    got.batch.queries += 0 if source.rereads else 1
    got.waves += 1
    known = [locate(row) for row in rows]
    if any(p.key[1] for p in known):
        raise _no_such(target, known)
    return readings, []


def _found(target: Target, readings: Readings) -> list[int]:
    return [i for i, group in enumerate(readings.places) if any(matches(target, p) for p in group)]


def _no_such(target: Target, places: list[Place]) -> UsageError:
    clusters = sorted({p.cluster for p in places if p.cluster})
    if target.cluster and target.cluster not in clusters:
        return UsageError(
            f"no cluster {target.cluster!r} in this source",
            hint=_offer(target.cluster, clusters),
            code="no_such_target",
        )
    places = [p for p in places if target.cluster in {None, p.cluster}]
    hosts = sorted({p.host for p in places if p.host})
    if target.uuid:
        uuids = sorted({p.uuid for p in places if p.uuid})
        return UsageError(
            f"no GPU {target.uuid} in this source",
            hint=_offer(target.uuid, uuids),
            code="no_such_target",
        )
    if target.host in hosts and target.gpu is not None:
        gpus = sorted({p.gpu for p in places if p.host == target.host and p.gpu is not None})
        if target.gpu in gpus:
            return UsageError(
                f"{target.host} has a GPU {target.gpu}, but no reading of it could be fetched",
                hint="try a wider --window, or another moment with --at",
                code="no_such_target",
            )
        return UsageError(
            f"no GPU {target.gpu} on {target.host}",
            hint=f"it has GPU {', '.join(map(str, gpus[:64]))}"
            if gpus
            else "it names no GPU index",
            code="no_such_target",
        )
    if target.host:
        return UsageError(
            f"no host {target.host!r} in this source",
            hint=_offer(target.host, hosts) + _or_index(target.host),
            code="no_such_target",
        )
    known = f"known hosts: {', '.join(hosts[:_SHOWN])}" if hosts else "no host is named"
    blanks = "; a name with blanks goes in quotation marks" if target.job else ""
    if target.job:
        jobs = sorted({p.job for p in places if p.job})
        return UsageError(
            f"no GPU here works for job {target.job!r}",
            hint=_offer(target.job, jobs)
            if jobs
            else "no label names a job; a map of the site may (docs/configuration.md)",
            code="no_such_target",
        )
    return UsageError(
        f"nothing here is called {target.text!r}",
        hint=known + blanks,
        code="no_such_target",
    )


def with_warnings(error: UsageError, warnings: list[str]) -> UsageError:
    """Return the error with what went wrong in reading: what is not found may stand there."""
    if error.code != "no_such_target" or not warnings:
        return error
    more = f" (and {len(warnings) - 1} more warnings)" if len(warnings) > 1 else ""
    hint = "; ".join(text for text in (error.hint, f"{warnings[0]}{more}") if text)
    return UsageError(error.message, hint=hint, code=error.code)


def no_such_port(target: Target, readings: Readings, chosen: list[int]) -> UsageError | None:
    """Return the error for ``HOST:NUMBER`` that can be neither a GPU nor the port of an exporter.

    A number too large for a GPU index is taken for a port; one that no exporter of the host is
    scraped at was meant as an index.
    """
    if target.port is None or target.port >= _FIRST_USUAL_PORT:
        return None
    addresses = [address for i in chosen for address in readings.instances[i]]
    if any(a.endswith(f":{target.port}") for a in addresses):
        return None
    places = [p for i in chosen for p in readings.places[i]]
    indexes = sorted({p.gpu for p in places if p.gpu is not None})
    if not indexes or not addresses:
        return None
    return UsageError(
        f"{target.host} has no GPU {target.port}, and no exporter of it is scraped at this port",
        hint=f"it has GPU {', '.join(map(str, indexes[:64]))}",
        code="no_such_target",
    )


async def no_such_entity(
    fetcher: Fetcher, source: Source, got: Fetched, target: Target, frame: Frame | None
) -> UsageError:
    """Return the error for a service, file system or rank that the source does not have.

    Raises:
        SourceError: the source does not answer.
    """
    scope, labels = _NAMED_BY[target.kind]
    rows = await source.label_sets(
        fetcher.names.others[scope], labels, at=got.at, window_s=got.window_s
    )
    found = {value for row in rows if (value := first(row, labels))}
    prefix = {"service": "svc/", "filesystem": "fs/", "rank": "job/"}[scope]
    names = sorted(
        {prefix + value.lstrip("/") for value in found}
        | {e.name for e in (frame.entities if frame else ()) if e.kind is Kind.RANK}
    )
    what = {Kind.SERVICE: "service", Kind.FILESYSTEM: "file system"}.get(target.kind, "rank")
    return UsageError(
        f"no {what} {target.text!r} in this source",
        hint=_offer(target.text, names) if names else f"it has no series of a {what}",
        code="no_such_target",
    )


def _or_index(host: str) -> str:
    """Return how to name a GPU by index or UUID alone, if that may have been meant."""
    if index := re.fullmatch(r"(?i:gpu)[-_]?(\d{1,2})", host):
        return f"; for a GPU index write 'gpu {index[1]}'"
    if re.fullmatch(r"(?i:gpu)-[0-9A-Fa-f-]{4,}", host):
        return f"; for a UUID write GPU-{host[4:]}"
    return ""


def _offer(name: str, known: list[str]) -> str:
    close = process.extract(name, known, scorer=fuzz.WRatio, limit=3, score_cutoff=_CLOSE)
    if close:
        return f"did you mean {', '.join(one for one, _, _ in close)}"
    shown = ", ".join(known[:_SHOWN])
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"known: {shown}{more}" if known else "the source names none"


def placeholder(target: Target, readings: Readings, got: Fetched) -> Readings:
    """Return readings with one entity for a target without any: only its host may be known."""
    host = target.host
    if target.kind is Kind.GPU:
        name = f"{host}:{target.gpu}" if host and target.gpu is not None else target.text
        entity = Entity(Kind.GPU, name, target.cluster, host, target.gpu, target.uuid)
    elif host:
        entity = node_entity(host, target.cluster)
    else:
        entity = Entity(target.kind, target.text, target.cluster)
    columns = {}
    for signal, (ts, values) in readings.nodes.get(host or "", {}).items():
        order = np.lexsort((values, ts))
        offsets = np.array([0, values.size], dtype=np.int64)
        columns[signal] = Column(ts[order], values[order], offsets)
    frame = Frame(
        entities=[entity],
        at=got.at or 0.0,
        timed=got.at is not None,
        columns=columns,
        attrs={},
        host=np.zeros(1, dtype=np.int64),
        window_s=got.window_s,
    )
    return Readings(frame, readings.warnings, [frozenset()], [[]], readings.nodes)
