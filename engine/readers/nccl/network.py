"""Which network a job uses between nodes, over which devices, and whether all hosts agree.

``Using network IB`` (or Socket, AWS Libfabric, the name of a plugin) is what was chosen; ``NET/IB :
Using [0]mlx5_0:1/IB …`` and ``NET/Socket : Using [0]eth0:10.0.0.1<0>`` are the devices. Source:
NVIDIA/nccl v2.4 to v2.30.7 src/transport/net_ib, net_socket.cc, src/plugin/net.cc.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.nccl import devices
from engine.readers.nccl.devices import Host, few, have
from engine.readers.nccl.told import ORDER, Told

_USING = re.compile(r"^Using network (?P<name>[\w ./+-]{1,60}?)\s*$")
_LISTED = re.compile(r"^NET/(?P<kind>[\w -]{1,24}?) ?: Using (?P<devices>\[\d.{0,900})")
_NIC = re.compile(
    r"\[\d{1,3}\]\{?(?:\[\d{1,3}\] ?)?(?P<name>[\w.-]{1,40}):(?P<port>\d{1,3})/(?P<layer>IB|RoCE)"
)
_INTERFACE = re.compile(r"\[\d{1,3}\](?P<name>[\w.@-]{1,40}):(?P<address>[^\s<]{1,60})")
_BOOTSTRAP = re.compile(
    r"(?:^Bootstrap ?: Using |OOB )(?:\[0\])?(?P<name>[\w.@-]{1,40}):(?P<address>[^\s<]{1,60})"
)
_NO_DEVICE = re.compile(r"^NET/IB ?: No device found")
_PLUGIN = re.compile(r"^NET/OFI (?:Selected|Initializing|Using|No eligible|Unable)")
_SOCKET: Final = "Socket"
_MOST: Final = 4_096
_SOURCES: Final = (
    "NVIDIA/nccl v2.30.7 src/plugin/net.cc, src/transport/net_ib, src/transport/net_socket.cc",
)


class Network:
    """What a log says of networks, bounded."""

    def __init__(self) -> None:
        self.used: dict[Host, dict[str, int]] = {}
        self.nics: dict[Host, dict[str, str]] = {}
        self._interfaces: dict[Host, dict[str, int]] = {}
        self.bootstrap: dict[Host, tuple[str, int]] = {}
        self._without: dict[Host, int] = {}

    def info(self, host: Host, text: str, number: int) -> bool:
        """Take a set-up line; return whether it is about a network."""
        found = _USING.match(text)
        if found is not None:
            if host in self.used or len(self.used) < _MOST:
                names = self.used.setdefault(host, {})
                if len(names) < 16:
                    names.setdefault(found["name"], number)
            return True
        if _NO_DEVICE.match(text):
            if len(self._without) < _MOST:
                self._without.setdefault(host, number)
            return True
        bootstrap = _BOOTSTRAP.search(text)
        if bootstrap is not None and len(self.bootstrap) < _MOST:
            self.bootstrap.setdefault(host, (bootstrap["name"], number))
        listed = _LISTED.match(text)
        if listed is not None:
            self._devices(host, listed["kind"], listed["devices"], number)
            return True
        return bootstrap is not None or _PLUGIN.match(text) is not None

    def tell(
        self, transports: Mapping[str, int], line: int, *, nodes: bool | None
    ) -> Iterator[Told]:
        """Yield what network is used and where hosts differ.

        Args:
            transports: network channels by transport, as printed.
            line: where the first channel over sockets stands, 0 if there is none.
            nodes: whether the job spans nodes, None if nobody says.
        """
        sockets = {h: n[_SOCKET] for h, n in self.used.items() if _SOCKET in n}
        others = {h: n for h, n in self.used.items() if _SOCKET not in n}
        channels = sum(n for name, n in transports.items() if name.startswith("NET/Socket"))
        rdma = sum(n for name, n in transports.items() if not name.startswith("NET/Socket"))
        if self._names() and len(self._names()) > 1:
            yield self._mixed()
        elif (sockets and not others) or (channels and not rdma):
            if nodes is not False or channels:
                start = min(sockets.values(), default=0) or line
                yield self._fallback(start, channels, nodes=nodes)
        elif self._without and not self.used and nodes is not False:
            yield self._no_device()
        yield from devices.inner_interface(self.bootstrap, nodes=nodes)
        yield from devices.fewer_ports(self.nics)
        names = list(dict.fromkeys(n for used in self.used.values() for n in used))
        number = min((n for used in self.used.values() for n in used.values()), default=0)
        yield from devices.summary(names, number, self.nics, self._named_interfaces())

    def _devices(self, host: Host, kind: str, devices: str, number: int) -> None:
        if kind == "IB":
            nics = self.nics.setdefault(host, {}) if len(self.nics) < _MOST else {}
            for nic in _NIC.finditer(devices):
                if len(nics) < 64:
                    nics[f"{nic['name']}:{nic['port']}"] = nic["layer"]
            return
        names = self._interfaces.setdefault(host, {}) if len(self._interfaces) < _MOST else {}
        for one in _INTERFACE.finditer(devices):
            if len(names) < 64:
                names.setdefault(one["name"], number)

    def _names(self) -> dict[str, list[str]]:
        """Networks with their hosts, of hosts that are known by name."""
        found: dict[str, list[str]] = {}
        for host, names in self.used.items():
            if host is not None:
                for name in names:
                    found.setdefault(name, []).append(host)
        return found if len({h for hosts in found.values() for h in hosts}) > 1 else {}

    def _mixed(self) -> Told:
        names = self._names()
        networks = {h: next(iter(n)) for h, n in self.used.items() if h is not None}
        said = "; ".join(f"{name} on {few(hosts)}" for name, hosts in names.items())
        odd = min(names, key=lambda name: len(names[name]))
        sockets = _SOCKET in names
        suspects = names[_SOCKET] if sockets else names[odd]
        says = (
            f"The hosts do not use the same network: {said}. They cannot talk to each other that"
            " way."
        )
        if sockets:
            says += (
                f" {few(suspects)} {have(suspects)} no usable RDMA device or plugin and took TCP"
                " sockets."
            )
            if any(h in self._without for h in suspects):
                says += " NET/IB: No device found stands there."
        number = min(n for h in suspects for n in self.used[h].values())
        return Told(
            ORDER["root"],
            number,
            Finding(
                kind="nccl",
                id="networks_differ",
                severity=Severity.HIGH,
                says=says,
                action=(
                    f"On {suspects[0]}: ibv_devinfo and ls /dev/infiniband inside the container,"
                    " NCCL_IB_DISABLE, NCCL_NET and NCCL_IB_HCA in the environment, the plugin in"
                    " LD_LIBRARY_PATH; the same image on all hosts."
                ),
                entity=Entity(Kind.NODE, suspects[0], host=suspects[0]),
                line=number,
                cause="nccl_socket_fallback" if sockets else "launch_misconfigured",
                data={
                    "networks": dict(sorted(networks.items())[:1_024]),
                    "hosts": sorted(suspects)[:64],
                },
                sources=_SOURCES,
            ),
        )

    def _fallback(self, number: int, channels: int, *, nodes: bool | None) -> Told:
        interfaces = self._named_interfaces()
        over = f" over {', '.join(interfaces[:4])}" if interfaces else ""
        says = f"NCCL uses TCP sockets{over} (Using network Socket, NET/Socket), not RDMA."
        if self._without:
            says += (
                " NET/IB found no device: no RDMA NIC is up, or /dev/infiniband or the verbs"
                " library is missing in the container."
            )
        if channels:
            says += f" {channels} channel{'s go' if channels > 1 else ' goes'} that way."
        if nodes is None and not channels:
            says += " This matters between nodes only; within a node GPUs do not use it."
        else:
            says += " Between nodes that is several times slower than InfiniBand, RoCE or EFA."
        host = self._host(_SOCKET)
        data: dict[str, Any] = {
            "transport": _SOCKET if channels else f"NET/{_SOCKET}",
            "interface": interfaces[0] if interfaces else None,
            "interfaces": interfaces[:16] or None,
            "channels": channels or None,
        }
        return Told(
            ORDER["setup"],
            number,
            Finding(
                kind="nccl",
                id="socket_fallback",
                severity=Severity.HIGH if nodes or channels else Severity.MEDIUM,
                says=says,
                action=(
                    "ibv_devinfo (or fi_info -p efa) on the node and inside the container; give"
                    " it /dev/infiniband, rdma-core and memlock unlimited; unset NCCL_IB_DISABLE"
                    " and NCCL_NET=Socket, check NCCL_IB_HCA; on clouds use the vendor's plugin."
                    " Where no RDMA network exists, this is all there is."
                ),
                entity=Entity(Kind.NODE, host, host=host) if host else None,
                line=number,
                cause="nccl_socket_fallback",
                data={k: v for k, v in data.items() if v is not None},
                sources=_SOURCES,
            ),
        )

    def _no_device(self) -> Told:
        hosts = sorted(h for h in self._without if h)
        number = min(self._without.values())
        where = f" on {few(hosts)}" if hosts else ""
        return Told(
            ORDER["setup"],
            number,
            Finding(
                kind="nccl",
                id="no_rdma_device",
                severity=Severity.MEDIUM,
                says=(
                    f"NCCL found no RDMA device{where} (NET/IB : No device found): unless a plugin"
                    " takes over, traffic between nodes goes over TCP sockets."
                ),
                action=(
                    "ibv_devinfo and ls /dev/infiniband inside the container; rdma-core in the"
                    " image; NCCL_IB_HCA must not exclude all; ports must be ACTIVE (ibstat)."
                    " Harmless on one node."
                ),
                entity=Entity(Kind.NODE, hosts[0], host=hosts[0]) if len(hosts) == 1 else None,
                line=number,
                cause="nccl_socket_fallback",
                data={"hosts": hosts[:64]},
                sources=_SOURCES,
            ),
        )

    def _named_interfaces(self) -> list[str]:
        found = [name for names in self._interfaces.values() for name in names]
        found += [name for name, _ in self.bootstrap.values()]
        return list(dict.fromkeys(found))

    def _host(self, network: str) -> str | None:
        hosts = [h for h, n in self.used.items() if network in n and h]
        return hosts[0] if len(hosts) == 1 else None
