"""Asking a server many questions about every GPU, in few queries, and bearing with its limits.

A query that fails (too many samples, too slow) is split: first its questions, then its hosts. The
hosts of a part that fails even so are left to the raw samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from engine.condition import LabelProfile
from engine.diagnosis.observe import Bools
from engine.diagnosis.sweephosts import Roster
from engine.diagnosis.sweepqueries import Bit, together
from engine.errors import SourceError
from engine.samples import Matcher
from engine.sources.port import Element, Evaluator

# Questions a query: their sum must be exact in a float, and a server evaluates a query on one core.
_MOST_BITS = 8
# After so many failures a server is not asked for more; a query may fail after its whole time-out.
_MOST_FAILURES = 8
_SPECIAL = frozenset("\\.+*?()|[]{}^$")


@dataclass(frozen=True, slots=True)
class _Part:
    """One query to be: some questions, about all hosts of a roster or some."""

    bits: tuple[Bit, ...]
    hosts: tuple[str, ...] | None = None


@dataclass(slots=True)
class Asked:
    """What a server told about the GPUs of a roster.

    Attributes:
        roster: the GPUs, by number.
        may_be: question to where the answer is yes, bool[n].
        untold: GPUs about which some question was not answered, bool[n].
        failures: what went wrong, in order.
        waves: how often was asked, one wave after the other.
    """

    roster: Roster
    may_be: dict[str, Bools]
    untold: Bools
    failures: list[SourceError] = field(default_factory=list)
    waves: int = 0


async def ask(
    source: Evaluator, roster: Roster, bits: Sequence[Bit], profile: LabelProfile, *, at: float
) -> Asked:
    """Ask all questions about all GPUs of a roster.

    Args:
        source: the server.
        roster: the GPUs.
        bits: the questions, names different from each other.
        profile: how the roster's series are labelled.
        at: the moment judged (Unix s).
    """
    n = len(roster)
    got = Asked(
        roster, {bit.name: np.zeros(n, dtype=np.bool_) for bit in bits}, np.zeros(n, dtype=np.bool_)
    )
    waiting = list(_parts(bits, profile, source.longest_query))
    while waiting:
        queries = [together(part.bits, _narrowed(profile, part.hosts)) for part in waiting]
        found = await source.evaluate(queries, at=at)
        got.waves += 1
        left: list[_Part] = []
        for part, answer in zip(waiting, found.answers, strict=True):
            if isinstance(answer, SourceError):
                got.failures.append(answer)
                left += _smaller(part, got, profile, source.longest_query)
            else:
                _take(part, answer, got)
        waiting = left
        if len(got.failures) > _MOST_FAILURES:
            for part in waiting:
                _give_up(part, got)
            break
    return got


def _parts(bits: Iterable[Bit], profile: LabelProfile, longest: int) -> Iterator[_Part]:
    """Put questions together as long as their query is not too long."""
    chosen: list[Bit] = []
    length = 0
    for bit in bits:
        cost = len(together([bit], profile))
        if chosen and (len(chosen) == _MOST_BITS or length + cost > longest):
            yield _Part(tuple(chosen))
            chosen, length = [], 0
        chosen.append(bit)
        length += cost
    if chosen:
        yield _Part(tuple(chosen))


def _smaller(part: _Part, got: Asked, profile: LabelProfile, longest: int) -> list[_Part]:
    """Return the parts that a failed one is split into; none if it is as small as it gets."""
    if len(part.bits) > 1:
        half = len(part.bits) // 2
        return [_Part(part.bits[:half], part.hosts), _Part(part.bits[half:], part.hosts)]
    if part.hosts is not None:
        _give_up(part, got)
        return []
    return [_Part(part.bits, hosts) for hosts in _some_hosts(part, got, profile, longest)]


def _some_hosts(
    part: _Part, got: Asked, profile: LabelProfile, longest: int
) -> Iterator[tuple[str, ...]]:
    """Divide the hosts so that their names fit into the query, in at least two parts."""
    hosts = sorted(got.roster.hosts)
    bare = together(part.bits, profile)
    selectors = max(
        1, together(part.bits, _narrowed(profile, ("",))).count("=~") - bare.count("=~")
    )
    room = max(0, longest - len(bare)) // selectors - len(profile.host) - 8
    chosen: list[str] = []
    left = room
    for host in hosts:
        cost = len(_escaped(host)) + 1
        if chosen and (cost > left or len(chosen) * 2 >= len(hosts)):
            yield tuple(chosen)
            chosen, left = [], room
        chosen.append(host)
        left -= cost
    if chosen:
        yield tuple(chosen)


def _narrowed(profile: LabelProfile, hosts: tuple[str, ...] | None) -> LabelProfile:
    if hosts is None:
        return profile
    only = Matcher(profile.host, "=~", "|".join(map(_escaped, hosts)))
    return replace(profile, selector=(*profile.selector, only))


def _escaped(text: str) -> str:
    return "".join(f"\\{c}" if c in _SPECIAL else c for c in text)


def _give_up(part: _Part, got: Asked) -> None:
    if part.hosts is None:
        got.untold[:] = True
        return
    for host in part.hosts:
        got.untold[got.roster.hosts[host]] = True


def _take(part: _Part, answer: Iterable[Element], got: Asked) -> None:
    labels, keys = got.roster.entity, got.roster.keys
    numbers: list[int] = []
    sums: list[float] = []
    for metric, value in answer:
        number = keys.get(tuple(metric.get(label, "") for label in labels))
        if number is not None:  # of an odd host, or one that came this moment
            numbers.append(number)
            sums.append(value)
    which = np.array(numbers, dtype=np.int64)
    told = np.array(sums, dtype=np.float64).astype(np.int64)
    for k, bit in enumerate(part.bits):
        got.may_be[bit.name][which[(told >> k) & 1 == 1]] = True
