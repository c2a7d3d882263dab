"""What the map of the site says of a target: the hosts of a rack, those that a job should have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engine.catalogue.nearest import did_you_mean
from engine.errors import UsageError
from engine.model import Kind, Unknown, Verdict, Why
from engine.signals.normalise import Readings
from engine.sitemap import Gpus, SiteMap
from engine.topology import Target

_NAMED = 4
_WELL = frozenset({Verdict.HEALTHY, Verdict.IDLE})


def resolved(target: Target, site: SiteMap) -> Target:
    """Return a target with the hosts that only the map tells: those of a rack.

    Raises:
        UsageError: the map knows no such rack.
    """
    if target.kind is not Kind.RACK:
        return target
    hosts = tuple(host for host, rack in site.racks.items() if rack == target.rack)
    if not hosts:
        known = sorted(set(site.racks.values()))
        otherwise = "which hosts a rack holds is told by the map of the site (setting sitemap)"
        if known:
            more = f" and {len(known) - _NAMED} more" if len(known) > _NAMED else ""
            otherwise = f"it has {', '.join(known[:_NAMED])}{more}"
        raise UsageError(
            f"no rack {target.rack!r} in the map of the site",
            hint=did_you_mean(target.rack or "", known, otherwise=otherwise),
            code="no_such_target",
        )
    return replace(target, hosts=hosts)


def with_absent(
    why: Why, target: Target, site: SiteMap, readings: Readings, chosen: Sequence[int]
) -> Why:
    """Return an answer that tells of hosts which the map gives a target and nothing was read of.

    Who was not seen is not healthy: without a diagnosis the verdict is unknown.
    """
    if target.kind not in {Kind.RACK, Kind.JOB}:
        return why
    expected: Mapping[str, Gpus] = dict.fromkeys(target.hosts) or site.jobs.get(
        target.job or "", {}
    )
    there: dict[str | None, set[int | None]] = {}
    for i in chosen:
        entity = readings.frame.entities[i]
        there.setdefault(entity.host, set()).add(entity.gpu)
    away = [
        name
        for host, gpus in sorted(expected.items())
        for name in (
            [host]
            if host not in there
            else [f"{host}:{gpu}" for gpu in sorted(gpus or ()) if gpu not in there[host]]
        )
    ]
    if not away:
        return why
    more = f" and {len(away) - _NAMED} more" if len(away) > _NAMED else ""
    names = ", ".join(away[:_NAMED]) + more
    missing = Unknown(
        cause="stale_data",
        needs="gpu_util",
        why=f"the map of the site gives {why.target.name} what no GPU reading came from: {names}",
        fix="see whether it is up and scraped, or works for another job; else correct the map",
    )
    verdict = Verdict.UNKNOWN if why.verdict in _WELL else why.verdict
    return replace(why, verdict=verdict, unknown=(missing, *why.unknown))
