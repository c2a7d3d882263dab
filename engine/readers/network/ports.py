"""The judge of RDMA ports: states, and rates against their siblings on the same host.

Several tools print the same facts (``ibstat``, ``ibstatus``, ``ibv_devinfo``, ``rdma link``); their
readers turn them into ports, and here is what ports show. A port is only called slow against others
of the same make: what a port "should" reach depends on how it is cabled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from engine.model import Finding, Severity
from engine.readers.listing import at, finding, node
from engine.readers.network.port import SOURCES, Port
from engine.readers.network.port_rates import judge_rates
from engine.readers.network.port_states import PHYSICAL_MEANS
from engine.readers.quantities import listed, plural
from engine.units import number

# Where so many ports of a kind are up, others that are down beside them are most likely unused.
_RAILS: Final = frozenset({8, 16})


def judge_ports(kind: str, ports: Sequence[Port]) -> list[Finding]:
    """Say what ports show, host by host.

    Args:
        kind: the reader's kind.
        ports: at least one; a port that is listed twice counts as it was last.
    """
    hosts: dict[str | None, dict[tuple[str, int], Port]] = {}
    for port in ports:
        hosts.setdefault(port.host, {})[port.device, port.port] = port
    found: list[Finding] = []
    for host, of_host in hosts.items():
        found += _host(kind, host, list(of_host.values()))
    return found


def _host(kind: str, host: str | None, ports: Sequence[Port]) -> list[Finding]:
    found = [
        *_down(kind, host, ports),
        *_unconfigured(kind, host, ports),
        *judge_rates(kind, host, ports),
    ]
    if not any(f.severity is not Severity.INFO for f in found):
        found += _healthy(kind, host, ports)
    return found


def _down(kind: str, host: str | None, ports: Sequence[Port]) -> Iterable[Finding]:
    groups: dict[tuple[str | None, bool | None], list[Port]] = {}
    for port in ports:
        if port.state == "Down" or (
            port.state is None and port.physical in ("Polling", "Disabled")
        ):
            groups.setdefault((port.physical, _wanted(port, ports)), []).append(port)
    for (physical, wanted), down in groups.items():
        names = listed(p.name for p in down)
        active = sum(p.up for p in ports)
        state = f"{plural(len(down), 'port')} down ({names}"
        state += (
            f", physical state {physical}: {PHYSICAL_MEANS.get(physical, 'not up')})"
            if physical
            else ")"
        )
        data = {
            "device": down[0].device,
            "port": down[0].port,
            "state": "Down",
            "physical_state": physical,
            "ports_down": [p.name for p in down],
            "ports_active": active,
        }
        if wanted is False:
            yield finding(
                kind,
                "port_unused",
                Severity.INFO,
                f"{at(host)}{state}. This looks like unused ports: no port of this make and place "
                f"is up. Active on the host: {plural(active, 'port')}.",
                "Nothing to do if nothing is plugged in there; if something is, check the cable.",
                line=down[0].line,
                data=data,
                entity=node(host),
                sources=SOURCES,
            )
            continue
        yield finding(
            kind,
            "port_down",
            Severity.HIGH,
            f"{at(host)}{state}. {_beside(active, len(ports))}",
            f"Check cable, transceiver and the switch port of {names}: mlxlink -d {down[0].device} "
            "-m -c shows the module and why the link does not come up, dmesg -T | grep -i mlx5 "
            "when it went down. NCCL jobs on this host run without these rails, or fail.",
            line=down[0].line,
            cause="ib_link_down",
            data=data,
            entity=node(host),
            sources=SOURCES,
        )


def _beside(active: int, total: int) -> str:
    if active:
        return f"{plural(active, 'port')} of {total} {'is' if active == 1 else 'are'} Active."
    return "No port of this listing is Active." if total > 1 else "It cannot carry traffic."


def _wanted(port: Port, ports: Sequence[Port]) -> bool:
    """Tell whether others of a down port's kind are in use, so that it should be too."""
    active = [p for p in ports if p.up]
    if not active:
        return True
    if not any(p.kin == port.kin for p in active):
        return False
    kin = [p for p in ports if p.kin == port.kin]
    if sum(p.up for p in kin) in _RAILS and len(kin) not in _RAILS:
        return False
    # The second ports of two-port cards, all of them unplugged.
    return not port.place or any(p.place == port.place for p in active)


def _unconfigured(kind: str, host: str | None, ports: Sequence[Port]) -> Iterable[Finding]:
    waiting = [p for p in ports if p.state in ("Initializing", "Armed")]
    if not waiting:
        return
    names = listed(p.name for p in waiting)
    every = len(waiting) == sum(p.layer != "Ethernet" for p in ports)
    yield finding(
        kind,
        "port_not_active",
        Severity.HIGH,
        f"{at(host)}{names} {'has' if len(waiting) == 1 else 'have'} a physical link but "
        f"{'is' if len(waiting) == 1 else 'are'} {waiting[0].state}: no subnet manager has brought "
        f"{'it' if len(waiting) == 1 else 'them'} to Active"
        + (", on any InfiniBand port of this host." if every and len(waiting) > 1 else "."),
        "Run sminfo: no answer means that no subnet manager reaches this port (opensm, UFM or the "
        "switch's). If the other ports are Active, look at this port's switch and partition.",
        line=waiting[0].line,
        cause="ib_link_down",
        data={
            "device": waiting[0].device,
            "port": waiting[0].port,
            "state": waiting[0].state,
            "physical_state": waiting[0].physical,
            "sm_lid": waiting[0].sm_lid,
        },
        entity=node(host),
        sources=SOURCES,
    )


def _healthy(kind: str, host: str | None, ports: Sequence[Port]) -> Iterable[Finding]:
    up = [p for p in ports if p.up]
    if not up:
        return
    rates = Counter(f"{number(p.rate_gbps)} Gb/s" for p in up if p.rate_gbps)
    layers = sorted({p.layer for p in up if p.layer})
    rate = " and ".join(f"{count} at {rate}" for rate, count in rates.items())
    yield finding(
        kind,
        "ports",
        Severity.INFO,
        f"{at(host)}{plural(len(up), 'port')} Active"
        + (f" ({rate})" if rate else "")
        + (f", {'/'.join(layers)}" if layers else "")
        + ". State and rate say nothing on errors or congestion: those are in the counters.",
        "Compare the number of ports and the rate with the other nodes of the job; for errors take "
        "perfquery -x or rdma statistic twice, a minute apart.",
        line=up[0].line,
        data={
            "ports_active": len(up),
            "ports": len(ports),
            "rate_gbps": up[0].rate_gbps if len(rates) == 1 else None,
        },
        entity=node(host),
        sources=SOURCES,
    )
