"""Label matchers that select the series of hosts, however exporters spell where they are.

Many hosts are asked for together: a job of a hundred nodes takes as many requests as one node.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from engine.samples import Matcher
from engine.signals.labels import HOST_LABELS

# How many characters the hosts of one selection may take: metric names and other matchers must
# fit beside them into what servers and proxies take for a query (`engine.sources.selector`).
_MOST_CHARACTERS = 1000
_PORT = r"(:[0-9]+)?"


def portions(hosts: Iterable[str]) -> Iterator[list[str]]:
    """Yield hosts in order, as many together as one selection holds."""
    some: list[str] = []
    left = _MOST_CHARACTERS
    for host in hosts:
        cost = len(re.escape(host)) + 1
        if some and cost > left:
            yield some
            some, left = [], _MOST_CHARACTERS
        some.append(host)
        left -= cost
    if some:
        yield some


def named(label: str, hosts: Sequence[str]) -> Matcher:
    """Return the matcher of a label that has the name of one of the hosts."""
    if len(hosts) == 1:
        return Matcher(label, "=", hosts[0])
    return Matcher(label, "=~", "|".join(re.escape(host) for host in hosts))


def pattern(hosts: Sequence[str], tail: str = "") -> str:
    """Return a pattern of any of the hosts, each followed by ``tail``."""
    names = "|".join(re.escape(host) for host in hosts)
    return f"({names}){tail}" if len(hosts) > 1 else names + tail


def address(hosts: Sequence[str]) -> Matcher:
    """Return the matcher of a scrape address at one of the hosts, with or without a port."""
    return Matcher("instance", "=~", pattern(hosts, _PORT))


def host_matchers(hosts: Sequence[str]) -> list[tuple[Matcher, ...]]:
    """Return matchers that together select the hosts' series once each, however spelled.

    Clusters are told apart here, not by the server: their label has several spellings too.
    """
    out: list[tuple[Matcher, ...]] = []
    for k, label in enumerate(HOST_LABELS):
        absent = tuple(Matcher(other, "=", "") for other in HOST_LABELS[:k])
        out.append((named(label, hosts), *absent))
    absent = tuple(Matcher(other, "=", "") for other in HOST_LABELS)
    out.append((address(hosts), *absent))
    return out
