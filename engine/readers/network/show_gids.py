"""Reader of ``show_gids`` (Mellanox OFED): which GID entries a RoCE port has.

Addresses are not kept.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from engine.model import Finding, Severity
from engine.readers.base import Result
from engine.readers.listing import Listing, at, finding, node, result_of
from engine.readers.quantities import listed, plural

_HEADER = re.compile(
    r"^\s{0,4}DEV\s{1,20}PORT\s{1,20}INDEX\s{1,20}GID\s{1,60}IPv4\s{1,20}VER\s{1,20}DEV\s*$"
)
_ROW = re.compile(
    r"^\s{0,4}([\w.-]{1,63})\s{1,20}([0-9]{1,3})\s{1,20}([0-9]{1,3})\s{1,20}("
    r"(?:[0-9a-f]{4}:){7}[0-9a-f]{4})\s{1,60}"
    r"(?:([0-9]{1,3}(?:\.[0-9]{1,3}){3})\s{1,20})?(v[12])(?:\s{1,20}([\w.@-]{1,32}))?\s*$"
)


@dataclass(frozen=True, slots=True)
class Gid:
    """One entry; ``ipv4`` tells only whether it has an IPv4 address."""

    line: int
    host: str | None
    device: str
    index: int
    ipv4: bool
    version: str
    netdev: str | None


class ShowGidsReader(Listing[Gid]):
    """Reads the table."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"INDEX\tGID", b"INDEX   GID", b"INDEX  GID")

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``show_gids``."""
        if _HEADER.match(text.expandtabs()):
            self.inside = True
            return True
        if not self.inside:
            return False
        row = _ROW.match(text.expandtabs())
        if row is None:
            return bool(
                re.match(r"^\s{0,4}(?:-{2,8}[\s-]{1,200}|n_gids_found=[0-9]{1,6}\s*)$", text)
            )
        self.kept.add(Gid(number, self.host, row[1], int(row[3]), bool(row[5]), row[6], row[7]))
        return True

    def judge(self, records: Sequence[Gid]) -> Result:
        """Say which index carries RoCE v2 over IPv4, and where there is none."""
        hosts = dict.fromkeys(g.host for g in records)
        return result_of(
            ["show_gids"],
            [f for host in hosts for f in _host(host, [g for g in records if g.host == host])],
        )


def _host(host: str | None, gids: Sequence[Gid]) -> Iterable[Finding]:
    usable: dict[str, list[int]] = {g.device: [] for g in gids}
    for gid in gids:
        if gid.version == "v2" and gid.ipv4:
            usable[gid.device].append(gid.index)
    without = [device for device, indices in usable.items() if not indices]
    firsts = {device: indices[0] for device, indices in usable.items() if indices}
    common = Counter(firsts.values()).most_common(1)
    if without and firsts:
        yield finding(
            "show_gids",
            "no_roce_v2_gid",
            Severity.MEDIUM,
            f"{at(host)}{listed(without)} {'has' if len(without) == 1 else 'have'} no RoCE v2 "
            f"entry with an IPv4 address; {plural(len(firsts), 'other device')} "
            f"{'has' if len(firsts) == 1 else 'have'} one. Peers cannot reach it over RoCE v2.",
            "Give its interface an IPv4 address of the fabric (ip addr), then list again.",
            line=next(g.line for g in gids if g.device in without),
            cause="rdma_unreachable",
            data={"device": without[0], "devices_without": without, "gid_index": firsts},
            entity=node(host),
            sources=("Mellanox OFED, show_gids",),
        )
    if not firsts:
        return
    differ = len(set(firsts.values())) > 1
    yield finding(
        "show_gids",
        "gid_index_differs" if differ else "gid_index",
        Severity.LOW if differ else Severity.INFO,
        (
            f"{at(host)}RoCE v2 over IPv4 has a different index on different devices ("
            f"{listed(f'{d}: {i}' for d, i in firsts.items())}): no fixed NCCL_IB_GID_INDEX "
            "fits all."
            if differ
            else f"{at(host)}RoCE v2 over IPv4 is index {common[0][0]} on {listed(firsts)}."
        ),
        "NCCL 2.21 and newer choose the index: leave NCCL_IB_GID_INDEX unset. perftest takes it as "
        "-x INDEX.",
        line=gids[0].line,
        data={"gid_index": firsts},
        entity=node(host),
        sources=("Mellanox OFED, show_gids", "NVIDIA/nccl v2.30.7 docs/userguide/source/env.rst"),
    )
