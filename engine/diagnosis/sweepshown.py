"""Which hosts a sweep looks at to tell what exporters do not export."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from engine.condition import LabelProfile
from engine.diagnosis.sweepask import ask
from engine.diagnosis.sweepholds import Holdings, Server
from engine.diagnosis.sweephosts import Roster
from engine.diagnosis.sweepqueries import Bit, Compile, over

# So many hosts are looked at to say which readings are missing, one of each set-up of exporters.
_MOST_SIGNATURES = 32


async def signatures(
    source: Server, roster: Roster, here: Holdings, quiet: Collection[str], *, at: float
) -> list[str]:
    """Return one host of each set-up of exporters: what it lacks, all hosts like it lack.

    Args:
        source: the server.
        roster: the GPUs.
        here: what there is of them.
        quiet: hosts that nothing was found of; the others are looked at in any case.
        at: the moment judged (Unix s).
    """
    hosts = Roster((roster.host,), roster.host, roster.absent)
    for host in roster.hosts:
        hosts.keys[host,] = len(hosts.keys)
        hosts.hosts[host] = [hosts.keys[host,]]
    bits = [Bit(name, _without(name, here)) for name in here.partial]
    profile = replace(here.profile, entity=(roster.host,))
    told = await ask(source, hosts, bits, profile, at=at)
    shown: dict[tuple[bool, ...], str] = {}
    for host in sorted(roster.hosts, key=lambda host: (host in quiet, host)):
        number = hosts.keys[host,]
        shown.setdefault(tuple(bool(told.may_be[bit.name][number]) for bit in bits), host)
    return sorted(host for host in shown.values() if host in quiet)[:_MOST_SIGNATURES]


def _without(name: str, here: Holdings) -> Compile:
    def compile_(profile: LabelProfile) -> str:
        by, window_s = profile.host, here.known.window_s
        everybody = over("last_over_time", here.core, profile, window_s)
        own = over("last_over_time", [name], profile, window_s)
        return f"group by ({by}) ({everybody}) unless on({by}) group by ({by}) ({own})"

    return compile_
