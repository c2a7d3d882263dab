"""Readers of ``rdma link`` (text and JSON, iproute2 rdma/link.c) and ``ibdev2netdev`` (OFED)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.model import Finding, Severity
from engine.readers.base import Context, Result
from engine.readers.documents import DocumentKind
from engine.readers.listing import Listing, at, finding, node, result_of
from engine.readers.network.port import Port
from engine.readers.network.port_states import physical_of, state_of
from engine.readers.network.ports import judge_ports
from engine.readers.quantities import integer, listed, short

# Newer: "link mlx5_0/1 state ACTIVE …"; older: "1/1: mlx5_0/1: state ACTIVE …".
_LINK = re.compile(
    r"^\s{0,4}(?:link |[0-9]{1,3}/[0-9]{1,3}: )([\w.-]{1,63})/([0-9]{1,3}):? (?:.{0,200} )?"
    r"state ([A-Z_]{2,16}) physical_state ([A-Z_]{2,32})(?: netdev ([\w.@-]{1,32}))?"
)
_MAP = re.compile(r"^\s{0,4}([\w.-]{1,63}) port ([0-9]{1,3}) ==> ([\w.-]{1,32}) \((Up|Down)\)\s*$")


class RdmaLinkReader(Listing[Port]):
    """Reads one line a link. ``rdma link`` prints no rate."""

    triggers: ClassVar[tuple[bytes, ...]] = (b" physical_state ",)
    pattern: ClassVar[bytes] = rb" port [0-9]+ ==> "

    def take(self, number: int, text: str) -> bool:
        """Take a line; the listing has no header."""
        link = _LINK.match(text)
        if link:
            self.kept.add(
                Port(
                    number,
                    link[1],
                    int(link[2]),
                    self.host,
                    state=state_of(link[3].replace("_", "")),
                    physical=physical_of(link[4].replace("_", "")),
                    netdev=link[5],
                )
            )
            return True
        pair = _MAP.match(text)
        if pair is None:
            return False
        state = "Active" if pair[4] == "Up" else None
        layer = "InfiniBand" if pair[3].startswith("ib") else "Ethernet"
        self.kept.add(
            Port(
                number,
                pair[1],
                int(pair[2]),
                self.host,
                layer=layer,
                state=state,
                netdev=pair[3],
            )
        )
        return True

    def judge(self, records: Sequence[Port]) -> Result:
        """Say what the links show."""
        down = [p for p in records if p.state is None and p.physical is None]
        # The state is that of the IP interface: without IPoIB it is down on a sound port. Where
        # most others of the kind are up, it is meant to be up too.
        for port in list(down):
            kin = [p for p in records if (p.host, p.kin) == (port.host, port.kin)]
            if 2 * sum(p.up for p in kin) > len(kin):
                port.state = "Down"
                down.remove(port)
        found = judge_ports("rdma_link", [p for p in records if p not in down])
        if down:
            found.append(_interfaces_down(down))
        return result_of(["rdma_link"], found)


def _interfaces_down(down: Sequence[Port]) -> Finding:
    names = listed(f"{p.name} ({p.netdev})" for p in down)
    return finding(
        "rdma_link",
        "interface_down",
        Severity.LOW,
        f"{at(down[0].host)}the network interface of {names} is down. That is the IP interface: on "
        "InfiniBand without IPoIB the port itself can be Active all the same; on RoCE the port "
        "cannot be used.",
        "ibstat shows the state of the ports themselves.",
        line=down[0].line,
        data={
            "device": down[0].device,
            "netdev": down[0].netdev,
            "interfaces_down": [p.netdev for p in down],
        },
        entity=node(down[0].host),
        sources=("Mellanox OFED, ibdev2netdev",),
    )


def _is_link(value: object) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) for one in value)
        and "physical_state" in value[0]
        and "ifname" in value[0]
    )


def _port(one: Mapping[str, Any], line: int) -> Port:
    return Port(
        line,
        short(str(one.get("ifname", ""))),
        integer(str(one.get("port", 1))) or 1,
        state=state_of(str(one.get("state", "")).replace("_", "")),
        physical=physical_of(str(one.get("physical_state", "")).replace("_", "")),
        netdev=short(str(one["netdev"]), 32) if one.get("netdev") else None,
    )


def _read(value: Sequence[Mapping[str, Any]], _context: Context, line: int) -> Result:
    return result_of(
        ["rdma_link"], judge_ports("rdma_link", [_port(one, line) for one in value[:4_096]])
    )


RDMA_LINK_JSON = DocumentKind("rdma_link", _is_link, _read)
