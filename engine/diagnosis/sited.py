"""What the map of the site says of a target: the hosts of a rack, those that a job should have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.catalogue.nearest import did_you_mean
from engine.errors import UsageError
from engine.model import Kind, Unknown, Verdict, Why
from engine.signals.normalise import Readings
from engine.sitemap import SiteMap
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
    expected = target.hosts or tuple(site.jobs.get(target.job or "", ()))
    if target.kind not in {Kind.RACK, Kind.JOB} or not expected:
        return why
    there = {readings.frame.entities[i].host for i in chosen}
    away = sorted(set(expected) - there)
    if not away:
        return why
    more = f" and {len(away) - _NAMED} more" if len(away) > _NAMED else ""
    names = ", ".join(away[:_NAMED]) + more
    missing = Unknown(
        cause="stale_data",
        needs="gpu_util",
        why=f"the map of the site gives {why.target.name} hosts without any reading: {names}",
        fix="see whether they are up and scraped, or correct the map (docs/configuration.md)",
    )
    verdict = Verdict.UNKNOWN if why.verdict in _WELL else why.verdict
    return replace(why, verdict=verdict, unknown=(missing, *why.unknown))
