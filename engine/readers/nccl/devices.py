"""The devices that hosts use for the network: missing ports, interfaces that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.nccl.messages import printable
from engine.readers.nccl.told import ORDER, Told

_INNER: Final = ("lo", "docker", "veth", "virbr", "cni", "flannel", "cali")
_SOURCES: Final = (
    "NVIDIA/nccl v2.30.7 src/plugin/net.cc, src/transport/net_ib, src/transport/net_socket.cc",
)

Host = str | None


def inner_interface(
    bootstrap: Mapping[Host, tuple[str, int]], *, nodes: bool | None
) -> Iterator[Told]:
    """Tell of a start-up over an interface that other hosts cannot reach.

    Args:
        bootstrap: interface and line, by host.
        nodes: whether the job spans nodes, None if nobody says.
    """
    bad = {
        h: (name, number)
        for h, (name, number) in bootstrap.items()
        if name == "lo" or name.startswith(_INNER[1:])
    }
    if not bad or nodes is False or (nodes is None and not any(n != "lo" for n, _ in bad.values())):
        return
    host, (name, number) = next(iter(bad.items()))
    yield Told(
        ORDER["setup"],
        number,
        Finding(
            kind="nccl",
            id="inner_interface",
            severity=Severity.HIGH if nodes else Severity.MEDIUM,
            says=(
                f"NCCL's start-up (bootstrap) uses {name}"
                + (f" on {host}" if host else "")
                + ", an interface inside the host: other hosts cannot reach it."
            ),
            action=(
                "Set NCCL_SOCKET_IFNAME to the interface that all nodes share (ip -br addr);"
                " for example =eth0."
            ),
            entity=Entity(Kind.NODE, host, host=host) if host else None,
            line=number,
            cause="launch_misconfigured",
            data={"interface": name},
            sources=_SOURCES,
        ),
    )


def fewer_ports(nics: Mapping[Host, Mapping[str, str]]) -> Iterator[Told]:
    """Tell of hosts that use fewer ports than the others; ``nics``: link layer by port, by host."""
    counts = {h: len(n) for h, n in nics.items() if h is not None and n}
    if len(counts) < 2 or len(set(counts.values())) == 1:
        return
    most = max(counts.values())
    fewer = sorted(h for h, n in counts.items() if n < most)
    full = {nic for h, n in nics.items() if counts.get(h or "") == most for nic in n}
    missing = sorted(full - set(nics[fewer[0]]))
    says = (
        f"{few(fewer)} {have(fewer)} {counts[fewer[0]]} RDMA ports in use, other hosts {most}"
        + (f" (missing: {', '.join(missing[:8])})" if missing else "")
        + ": a port is down, or filtered by NCCL_IB_HCA there. That host slows all others down."
    )
    yield Told(
        ORDER["root"],
        0,
        Finding(
            kind="nccl",
            id="nic_counts_differ",
            severity=Severity.HIGH,
            says=says,
            action=(
                f"ibstat and rdma link on {fewer[0]}: which port is not ACTIVE? Then dmesg |"
                " grep mlx5."
            ),
            entity=Entity(Kind.NODE, fewer[0], host=fewer[0]),
            line=None,
            cause="ib_link_down",
            data={"ports": dict(sorted(counts.items())[:1_024]), "missing": missing[:64]},
            sources=_SOURCES,
        ),
    )


def summary(
    names: Sequence[str],
    number: int,
    nics: Mapping[Host, Mapping[str, str]],
    interfaces: Sequence[str],
) -> Iterator[Told]:
    """Tell what is in use: networks by name, since a line, with their ports and interfaces."""
    ports = sorted({nic for n in nics.values() for nic in n})
    layers = sorted({layer for n in nics.values() for layer in n.values()})
    if not (names or ports or interfaces):
        return
    parts = [f"network {', '.join(names[:4])}"] if names else []
    if ports:
        parts.append(f"{len(ports)} RDMA ports ({'/'.join(layers)}): {', '.join(ports[:8])}")
    if interfaces:
        parts.append(f"interface {', '.join(interfaces[:4])}")
    data: dict[str, Any] = {
        "network": names[0] if len(names) == 1 else None,
        "transport": names[0] if len(names) == 1 else None,
        "ports": ports[:64] or None,
        "link_layers": layers or None,
        "interface": interfaces[0] if interfaces else None,
    }
    yield Told(
        ORDER["note"],
        number,
        Finding(
            kind="nccl",
            id="network",
            severity=Severity.INFO,
            says=f"In use: {printable('; '.join(parts), 400)}.",
            action="Nothing by itself; the lists should be the same on every host.",
            entity=None,
            line=number or None,
            cause=None,
            data={k: v for k, v in data.items() if v is not None},
            sources=_SOURCES,
        ),
    )


def few(hosts: list[str]) -> str:
    """Return the first names, and how many more there are."""
    shown = sorted(hosts)[:3]
    return ", ".join(shown) + (f" and {len(hosts) - 3} more" if len(hosts) > 3 else "")


def have(hosts: list[str]) -> str:
    """Return the verb for one or more of them."""
    return "have" if len(hosts) > 1 else "has"
