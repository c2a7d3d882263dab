"""Communicators: which ranks started, which are complete, who never came, who is behind.

Every rank prints ``Init START`` and ``Init COMPLETE`` for each communicator (START since 2.18). The
``commId`` is the same on all ranks; a communicator made by a split has none and is known by its
parent, the number of the split and the colour. Collectives name a communicator by its address,
which is one process's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.nccl.lines import listed
from engine.readers.nccl.opcounts import OpCounts
from engine.readers.nccl.skim import Skim
from engine.readers.nccl.told import ORDER, Told

_INIT = re.compile(
    r"comm (?P<comm>0x[0-9a-f]{1,16}) rank (?P<rank>\d{1,7}) n[rR]anks (?P<nranks>\d{1,7})\b"
)
_ID = re.compile(r"commId 0x(?P<id>[0-9a-f]{1,16})")
_SPLIT = re.compile(
    r"parent (?P<parent>0x[0-9a-f]{1,16})(?: (?:splitCount|childCount) (?P<count>\d{1,9}))?"
    r" color (?P<color>-?\d{1,10})"
)
_TIMINGS = re.compile(
    r"rank (?P<rank>\d{1,7}) nranks \d{1,7} total (?P<total>[\d.]{1,12}) \((?P<parts>[^)]{1,300})\)"
)
_SLOW_INIT_S: Final = 60.0
_SOURCE: Final = "NVIDIA/nccl v2.30.7 src/init.cc"


@dataclass(slots=True)
class Communicator:
    """What the ranks of one communicator said about its start."""

    nranks: int
    line: int
    started: dict[int, str | None] = field(default_factory=dict)
    complete: set[int] = field(default_factory=set)

    @property
    def missing(self) -> list[int]:
        """Ranks that this log does not show at all."""
        return [r for r in range(min(self.nranks, 65_536)) if r not in self.started]

    @property
    def stuck(self) -> list[int]:
        """Ranks that started and are not complete."""
        return sorted(set(self.started) - self.complete)


class Ranks:
    """The communicators of a log, bounded."""

    LIMIT = 4_096

    def __init__(self) -> None:
        self.communicators: dict[str, Communicator] = {}
        self.addresses: dict[str, tuple[str, int] | None] = {}
        self.hosts: set[str] = set()
        self._slowest: tuple[float, int, str, int] | None = None

    def info(self, host: str | None, text: str, number: int) -> bool:
        """Take a set-up line; return whether it is about a communicator's start."""
        timings = _TIMINGS.search(text) if text.startswith("Init timings") else None
        if timings is not None:
            self._timings(timings, number)
            return True
        found = _INIT.search(text)
        if found is None:
            return text.startswith("Init timings")
        if text.endswith(("Init START", "Init COMPLETE")):
            self._init(host, text, found, number)
        return True

    def several_nodes(self, nodes: int) -> bool | None:
        """Whether the job spans nodes, as far as the log tells; ``nodes`` as NCCL counts them."""
        if nodes:
            return nodes > 1
        if len(self.hosts) > 1:
            return True
        for one in self.communicators.values():
            if one.nranks > 1 and not one.missing and len(self.hosts) == 1:
                return False
        return None

    def tell(self, skim: Skim, *, hang: bool, failed: bool) -> Iterator[Told]:
        """Yield who did not come, who is behind, and slow starts.

        Args:
            skim: the collectives.
            hang: whether a time-out or the poster says that the job hangs.
            failed: whether the log shows an error that explains an unfinished start.
        """
        open_ = [one for one in self.communicators.values() if one.stuck]
        suspects = [one for one in open_ if self._suspect(one)]
        if suspects:
            yield self._unfinished(suspects[0], hang=hang)
        elif open_ and not failed:
            yield self._unfinished(open_[0], hang=hang)
        yield from OpCounts(skim, self.addresses).tell(hang=hang)
        if self._slowest is not None and self._slowest[0] >= _SLOW_INIT_S:
            yield self._slow()

    def _timings(self, found: re.Match[str], number: int) -> None:
        try:
            total = float(found["total"])
        except ValueError:
            return
        if self._slowest is None or total > self._slowest[0]:
            self._slowest = (total, int(found["rank"]), found["parts"], number)

    def _init(self, host: str | None, text: str, found: re.Match[str], number: int) -> None:
        rank, nranks = int(found["rank"]), int(found["nranks"])
        key = self._key(text, nranks)
        one = self.communicators.get(key)
        if one is None:
            if len(self.communicators) >= self.LIMIT:
                return
            one = self.communicators[key] = Communicator(nranks, number)
        one.started.setdefault(rank, host)
        if host:
            self.hosts.add(host)
        if text.endswith("COMPLETE"):
            one.complete.add(rank)
        address = found["comm"]
        if address in self.addresses and self.addresses[address] != (key, rank):
            # Two processes use the same address: it names nobody.
            self.addresses[address] = None
        elif len(self.addresses) < 65_536:
            self.addresses[address] = (key, rank)

    def _key(self, text: str, nranks: int) -> str:
        found = _ID.search(text)
        if found is not None:
            return found["id"]
        split = _SPLIT.search(text)
        if split is None:
            return f"n{nranks}"
        parent = self.addresses.get(split["parent"])
        return f"{parent[0] if parent else '?'}/{split['count']}/{split['color']}/{nranks}"

    def _suspect(self, one: Communicator) -> bool:
        """Whether ranks are missing that cannot just be on nodes whose logs were not given.

        Where one rank has its communicator, all took part: the log is a part of itself.
        """
        if one.complete:
            return False
        missing = len(one.missing)
        per_host = max(self._per_host(one), default=0)
        return missing > 0 and not (per_host and missing % per_host == 0)

    def _unfinished(self, one: Communicator, *, hang: bool) -> Told:
        stuck, missing, suspect = one.stuck, one.missing, self._suspect(one)
        says = (
            f"{len(stuck)} of {one.nranks} ranks started to build a communicator and did not finish"
            f" (Init START without Init COMPLETE): rank{_s(stuck)} {listed(stuck)}."
        )
        if suspect:
            says += (
                f" Rank{_s(missing)} {listed(missing)} never"
                f" appear{'' if len(missing) > 1 else 's'} in this log: the others wait for"
                f" {'them' if len(missing) > 1 else 'it'}."
            )
        elif missing:
            says += f" The logs of the nodes with ranks {listed(missing)} are not here."
        elif not hang:
            says += " The log may simply end here."
        data: dict[str, object] = {
            "nranks": one.nranks,
            "started_ranks": len(one.started),
            "complete_ranks": len(one.complete),
            "stuck_ranks": stuck[:1_024],
        }
        if missing:
            data["missing_ranks"] = missing[:1_024]
        sure = suspect or hang
        return Told(
            ORDER["root"] if suspect else ORDER["symptom"] if hang else ORDER["note"],
            one.line,
            Finding(
                kind="nccl",
                id="init_unfinished",
                severity=Severity.HIGH if sure else Severity.LOW,
                says=says,
                action=(
                    "Look at the missing ranks first: their log, whether the process started on"
                    " that node, an exception or OOM before this point. If all started:"
                    " NCCL_SOCKET_IFNAME and firewalls between the nodes (bootstrap uses"
                    " ephemeral TCP ports)."
                ),
                entity=(
                    Entity(Kind.RANK, f"rank {missing[0]}", rank=missing[0]) if suspect else None
                ),
                line=one.line,
                cause="collective_hang" if sure else None,
                data=data,
                sources=(_SOURCE,),
            ),
        )

    @staticmethod
    def _per_host(one: Communicator) -> Iterator[int]:
        counts: dict[str, int] = {}
        for host in one.started.values():
            if host:
                counts[host] = counts.get(host, 0) + 1
        yield from counts.values()

    def _slow(self) -> Told:
        assert self._slowest is not None
        total, rank, parts, number = self._slowest
        longest = _longest(parts)
        return Told(
            ORDER["note"],
            number,
            Finding(
                kind="nccl",
                id="slow_init",
                severity=Severity.LOW,
                says=(
                    f"Building a communicator took {total:g} s on rank {rank}"
                    + (f", most of it in {longest}." if longest else ".")
                ),
                action=(
                    "Slow bootstrap: name lookup, late ranks or one TCP root for many ranks; slow"
                    " topo or graphs: a virtual PCI tree; slow connections: RDMA set-up. Compare"
                    " with a good run."
                ),
                entity=Entity(Kind.RANK, f"rank {rank}", rank=rank),
                line=number,
                cause=None,
                data={"init_s": total, "rank": rank},
                sources=(_SOURCE,),
            ),
        )


def _longest(parts: str) -> str:
    best, name = 0.0, ""
    for part in parts.split(", "):
        key, _, value = part.rpartition(" ")
        try:
            seconds = float(value)
        except ValueError:
            continue
        if seconds > best and key.isidentifier():
            best, name = seconds, f"{key} ({seconds:g} s)"
    return name


def _s(numbers: list[int]) -> str:
    return "s" if len(numbers) > 1 else ""
