"""Network ports that go down and come back: InfiniBand, RoCE and plain Ethernet.

Lines of mlx5 (``mlx5_core 0000:0c:00.0 ib0: Link down``), of other drivers (``igb … NIC Link is
Down``), of the bonding driver, and of RDMA devices (``Port: 1 Link DOWN``). A port that has never
been up in the log, while the machine starts, is one without a cable.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.base import Result
from engine.readers.host.devices import ADDRESS, Devices, bdf
from engine.readers.host.part import MOST_EVENTS
from engine.readers.logline import LogLine
from engine.readers.period import Boots, Period
from engine.readers.stamp import Stamp

_NETDEV = re.compile(
    rf"(?P<driver>[a-z][\w-]{{1,24}}) (?P<pci>{ADDRESS}) (?P<port>[\w.@-]{{2,32}})(?: "
    rf"\(\w{{4,16}}\))?: "
    r"(?:\w{2,16}: [\w.@-]{2,32} )?(?:NIC )?"
    r"[Ll]ink(?: is)? (?P<state>[Uu]p|[Dd]own|DOWN|UP)\b"
)
_BARE = re.compile(
    r"(?:^|[\s:\]])(?P<driver>e1000e?|igb|igc|ixgbe|i40e|ice|tg3|bnxt_en|mlx4_en|mlx5_core|r8169|"
    r"atlantic|"
    rf"qede?|cxgb4|sfc|ena)(?: (?P<pci>{ADDRESS}))?:? (?P<port>(?!NIC\b)[\w.@-]{{2,32}}): "
    r"(?:NIC )?[Ll]ink(?: is)? (?P<state>[Uu]p|[Dd]own|DOWN|UP)\b"
)
# Not "mlx5_0 port 1 ==> ib0 (Down)": a listing of ibdev2netdev, and no event.
_RDMA = re.compile(
    r"(?P<port>(?:mlx[45]|hfi1|bnxt_re|irdma|qedr)_?\w{0,8})(?:: |\b.{0,32}? )"
    r"[Pp]ort:? ?(?P<number>\d{1,3})\b(?! ==>).{0,24}?"
    r"(?:[Ll]ink|state|is)?:? ?(?P<state>DOWN|Down|ACTIVE|Active|INIT|down|active)\b"
)
_HFI1 = re.compile(
    r"(?P<port>hfi1_\d{1,3}): .{0,60}?(?:current|logical) \S{2,12}, new (?P<state>\w{2,16})"
)
_READY = re.compile(
    r"ADDRCONF\(NETDEV_(?:CHANGE|UP)\): (?P<port>[\w.@-]{2,32}): link (?P<state>becomes ready|is "
    r"not ready)"
)
_BOND = re.compile(
    r"(?P<bond>bond[\w.-]{0,24}): (?:\(slave (?P<slave>[\w.@-]{2,32})\): )?"
    r"(?:link status (?:definitely )?(?P<state>down|up)(?: for (?:active )?(?:interface|backup "
    r"interface) (?P<slave2>[\w.@-]{2,32}))?"
    r"|now running without any active interface|(?P<none>no active interface))"
)
# While a machine starts, ports go down and up as their drivers take them over (s).
_START_S = 180.0
_RDMA_DRIVERS = frozenset({"mlx5_core", "mlx4_core", "mlx4_en", "hfi1", "irdma"})
_FLAPS = 3
_SOURCE = "Linux drivers/net/ethernet (mlx5 en_main.c and others)"
# Not ports of the machine: of containers and virtual machines.
_VIRTUAL = (
    "cali",
    "veth",
    "docker",
    "br-",
    "vnet",
    "tap",
    "cni",
    "flannel",
    "cilium",
    "lxc",
    "virbr",
)


@dataclass(slots=True)
class _Port:
    name: str
    host: str | None
    line: int
    driver: str | None = None
    pci: str | None = None
    downs: int = 0
    ups: int = 0
    counted: int = 0
    up: bool | None = None
    first: Stamp | None = None
    down_line: int = 0
    period: Period = field(default_factory=Period)


class LinkPart:
    """Reads port states."""

    marks: ClassVar[tuple[str, ...]] = (
        "ink is Down",
        "ink is Up",
        "ink is down",
        "ink is up",
        "ink Down",
        "ink Up",
        "ink down",
        "ink up",
        "ink DOWN",
        "ink ACTIVE",
        "Port: ",
        "port 1 ",
        "port 2 ",
        "link status ",
        "without any active interface",
        "logical ",
    )
    pattern: ClassVar[bytes] = b""

    def __init__(self, devices: Devices, boots: Boots) -> None:
        self.open = False
        self._devices = devices
        self._boots = boots
        self._ports: dict[tuple[str | None, str], _Port] = {}
        self._bonds: dict[tuple[str | None, str], int] = {}

    def wants(self, text: str) -> bool:
        """Return whether a line may tell a port's state."""
        return any(mark in text for mark in self.marks)

    def take(self, line: LogLine) -> bool:
        """Take one record."""
        text = line.text
        for pattern in (_NETDEV, _BARE):
            found = pattern.search(text)
            if found is not None:
                groups = found.groupdict()
                self._state(line, groups["port"], groups["state"], groups["driver"], groups["pci"])
                return True
        found = _BOND.search(text)
        if found is not None:
            if found["state"] is None:
                key = (line.host, found["bond"])
                if len(self._bonds) < MOST_EVENTS:
                    self._bonds.setdefault(key, line.number)
            return True
        found = _RDMA.search(text) or _HFI1.search(text)
        if found is not None:
            self._state(
                line,
                found["port"],
                found["state"],
                "mlx5_core" if found["port"].startswith("mlx") else "hfi1",
                None,
            )
            return True
        return False

    def _state(
        self, line: LogLine, name: str, state: str, driver: str | None, pci: str | None
    ) -> None:
        if name.startswith(_VIRTUAL):
            return
        key = (line.host, name)
        port = self._ports.get(key)
        if port is None:
            if len(self._ports) >= MOST_EVENTS:
                return
            port = self._ports[key] = _Port(name, line.host, line.number)
            port.first = line.stamp
        port.driver = port.driver or driver
        port.pci = port.pci or (bdf(pci) if pci else None)
        up = state.lower() in {"up", "active"}
        if up == port.up:
            return  # the same said twice, by the driver and by another
        before, port.up = port.up, up
        if up:
            port.ups += 1
            return
        port.downs += 1
        port.down_line = line.number
        # Down before it was ever up: the driver takes the port over, or there is no cable.
        if before is None and self._starting(line):
            return
        port.counted += 1
        port.period.add(line.stamp, self._boots.of(line.host, line.stamp))

    def _starting(self, line: LogLine) -> bool:
        return (
            line.stamp is not None
            and line.stamp.boot_s is not None
            and line.stamp.boot_s < _START_S
        )

    def finish(self) -> Result:
        """Return a finding for each port that went down."""
        findings = [f for port in self._ports.values() if (f := self._finding(port)) is not None]
        findings += [self._bond(host, bond, line) for (host, bond), line in self._bonds.items()]
        return Result(kinds=["network_link"] if findings else [], findings=findings)

    def _finding(self, port: _Port) -> Finding | None:
        if not port.counted:
            return None
        rdma = port.driver in _RDMA_DRIVERS or port.name.startswith(("ib", "mlx", "hfi1"))
        severity, cause = self._judged(port, rdma)
        data: dict[str, Any] = {
            "interface": port.name,
            "driver": port.driver,
            "pci": port.pci,
            "state": "up" if port.up else "down",
            "times_down": port.counted,
        }
        return Finding(
            kind="network_link",
            id="link_flap" if port.up and port.counted > 1 else "link_down",
            severity=severity,
            says=self._says(port, rdma),
            action=_ACTION_RDMA if rdma else _ACTION,
            entity=Entity(Kind.NODE, port.host, host=port.host) if port.host else None,
            line=port.down_line,
            cause=cause,
            data={k: v for k, v in data.items() if v is not None} | port.period.data(),
            sources=(_SOURCE,),
        )

    def _judged(self, port: _Port, rdma: bool) -> tuple[Severity, str | None]:
        if not port.up:
            return (Severity.HIGH, "ib_link_down") if rdma else (Severity.MEDIUM, None)
        if port.counted >= _FLAPS:
            return (Severity.HIGH, "ib_link_degraded") if rdma else (Severity.MEDIUM, None)
        if rdma and port.counted > 1:
            return Severity.MEDIUM, "ib_link_degraded"
        return (Severity.MEDIUM, "ib_link_down") if rdma else (Severity.LOW, None)

    def _says(self, port: _Port, rdma: bool) -> str:
        on = f" on {port.host}" if port.host else ""
        pci = f" ({port.driver or 'device'} {port.pci})" if port.pci else ""
        what = "RDMA-capable port" if rdma else "network port"
        if not port.up:
            text = f"The {what} {port.name}{pci}{on} is down; nothing later says that it came back."
        elif port.counted == 1:
            text = f"The {what} {port.name}{pci}{on} went down once and came back."
        else:
            text = f"The {what} {port.name}{pci}{on} went down {port.counted} times and came back."
        if rdma:
            text += (
                " NCCL's connections over it break at that moment (completion errors, time-outs)."
            )
        times = port.period.says(port.counted)
        return f"{text} {times}".rstrip()

    def _bond(self, host: str | None, bond: str, line: int) -> Finding:
        on = f" on {host}" if host else ""
        return Finding(
            kind="network_link",
            id="bond_down",
            severity=Severity.HIGH,
            says=f"{bond}{on} has no active interface left: all its ports are down.",
            action=f"cat /proc/net/bonding/{bond}; check both cables and the switch ports.",
            entity=Entity(Kind.NODE, host, host=host) if host else None,
            line=line,
            cause=None,
            data={"interface": bond},
            sources=("Linux drivers/net/bonding",),
        )


_ACTION_RDMA = (
    "Check it: ibstat, mlxlink -d DEVICE -m -c (cable, error counters), rdma link; and the switch "
    "port at the other end. Reseat or replace cable and transceiver if it comes again."
)
_ACTION = "Check it: ip -s link, ethtool INTERFACE; and the cable and the switch port."
