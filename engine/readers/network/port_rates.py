"""What the rates of RDMA ports show: against their siblings, in lanes, in bytes of a packet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from engine.model import Finding, Severity
from engine.readers.listing import at, finding, node
from engine.readers.network.port import SOURCES, Port
from engine.readers.quantities import listed, plural
from engine.units import number

# GPU servers have a rail for each GPU: where so many ports have the higher rate, the slower ones
# beside them belong to another network (storage, management).
_FULL_SETS: Final = frozenset({4, 8, 16})


def judge_rates(kind: str, host: str | None, ports: Sequence[Port]) -> Iterable[Finding]:
    """Say which ports of a host are slower than they can be."""
    yield from _slower(kind, host, ports)
    yield from _one_lane(kind, host, ports)
    yield from _mtu(kind, host, ports)


def _slower(kind: str, host: str | None, ports: Sequence[Port]) -> Iterable[Finding]:
    kin: dict[tuple[str | None, str | None], list[Port]] = {}
    for port in ports:
        if port.up and port.rate_gbps:
            kin.setdefault(port.kin, []).append(port)
    for group in kin.values():
        best = max(p.rate_gbps or 0 for p in group)
        slow = [p for p in group if (p.rate_gbps or 0) < best]
        fast = len(group) - len(slow)
        if not slow:
            continue
        rates = Counter(p.rate_gbps for p in slow)
        names = listed(f"{p.name} ({number(p.rate_gbps or 0)} Gb/s{_lanes(p)})" for p in slow)
        data = {
            "device": slow[0].device,
            "port": slow[0].port,
            "rate_gbps": slow[0].rate_gbps,
            "sibling_rate_gbps": best,
            "width": slow[0].width,
            "speed": slow[0].speed,
            "ports_slower": [p.name for p in slow],
        }
        says = (
            f"{at(host)}{names} {'runs' if len(slow) == 1 else 'run'} below {plural(fast, 'port')} "
            f"of the same make at {number(best)} Gb/s"
        )
        by_design = fast in _FULL_SETS and len(group) not in _FULL_SETS and len(rates) == 1
        if by_design or fast < len(slow):
            yield finding(
                kind,
                "rates_differ",
                Severity.INFO,
                says + ". That fits a second network (storage, management) by design.",
                "Compare with another node of the same build: the same ports should have the same "
                "rates there.",
                line=slow[0].line,
                data=data,
                entity=node(host),
                sources=SOURCES,
            )
            continue
        yield finding(
            kind,
            "port_slow",
            Severity.HIGH,
            says + ": the link trained down (cable, transceiver or switch port). A job that uses "
            "all rails runs at the pace of the slowest.",
            f"mlxlink -d {slow[0].device} -m -c: width, speed, what the cable supports, errors. "
            "Reseat or swap the cable, then compare with a node of the same build.",
            line=slow[0].line,
            cause="ib_link_degraded",
            data=data,
            entity=node(host),
            sources=SOURCES,
        )


def _lanes(port: Port) -> str:
    if port.width and port.speed:
        return f", {port.width}X {port.speed}"
    return f", {port.width}X" if port.width else ""


def _one_lane(kind: str, host: str | None, ports: Sequence[Port]) -> Iterable[Finding]:
    """Name ports on one lane where no sibling shows that they are slow."""
    up = [p for p in ports if p.up and p.width]
    single = [p for p in up if p.width == 1 and p.layer != "Ethernet"]
    if not single or any((p.width or 0) > 1 for p in up):
        return
    names = listed(f"{p.name}{_lanes(p)}" for p in single)
    yield finding(
        kind,
        "one_lane",
        Severity.MEDIUM,
        f"{at(host)}{names}: the InfiniBand link runs on one lane of four.",
        f"mlxlink -d {single[0].device} -m -c; reseat or swap the cable.",
        line=single[0].line,
        cause="ib_link_degraded",
        data={
            "device": single[0].device,
            "port": single[0].port,
            "width": 1,
            "rate_gbps": single[0].rate_gbps,
        },
        entity=node(host),
        sources=SOURCES,
    )


def _mtu(kind: str, host: str | None, ports: Sequence[Port]) -> Iterable[Finding]:
    small = [p for p in ports if p.up and p.mtu and p.max_mtu and p.mtu < p.max_mtu]
    if not small:
        return
    names = listed(f"{p.name} ({p.mtu} of {p.max_mtu} bytes)" for p in small)
    mixed = len(small) < sum(p.up for p in ports)
    yield finding(
        kind,
        "small_mtu",
        Severity.LOW if mixed else Severity.INFO,
        f"{at(host)}active MTU below the maximum on {names}"
        + (": other ports of the host have the maximum." if mixed else ".")
        + (
            " On RoCE it follows the MTU of the interface: 1500 bytes give 1024."
            if any(p.layer == "Ethernet" for p in small)
            else ""
        ),
        "Raise the MTU of the interface and of the switch ports alike (RoCE: 4200 or more), if "
        "the fabric is meant to have it.",
        line=small[0].line,
        data={
            "device": small[0].device,
            "active_mtu_bytes": small[0].mtu,
            "max_mtu_bytes": small[0].max_mtu,
        },
        entity=node(host),
        sources=SOURCES,
    )
