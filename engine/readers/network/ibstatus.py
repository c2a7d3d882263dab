"""Reader of ``ibstatus`` (linux-rdma/rdma-core, infiniband-diags/scripts/ibstatus)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from engine.readers.base import Result
from engine.readers.listing import Listing, result_of
from engine.readers.network.port import Port
from engine.readers.network.port_states import physical_of, state_of
from engine.readers.network.ports import judge_ports
from engine.readers.quantities import short

_START = re.compile(r"^\s{0,4}Infiniband device '([\w.:-]{1,63})' port ([0-9]{1,3}) status:\s*$")
_PAIR = re.compile(
    r"^\s{1,16}(default gid|base lid|sm lid|state|phys state|rate|link_layer):\s{0,16}(\S.{0,80})?$"
)
_RATE = re.compile(
    r"^([0-9]{1,4}(?:\.[0-9])?) Gb/sec(?: \(([0-9]{1,2})X ?([A-Z]{2,4}[0-9]{0,3})?\))?"
)
_HEX = re.compile(r"^0x([0-9a-fA-F]{1,4})$")


class IbstatusReader(Listing[Port]):
    """Reads one block a port."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"Infiniband device '",)

    _port: Port | None = None

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``ibstatus``."""
        start = _START.match(text)
        if start:
            self._port = Port(number, start[1], int(start[2]), self.host)
            self.inside = True
            self.kept.add(self._port)
            return True
        pair = _PAIR.match(text) if self.inside else None
        if pair is None or self._port is None:
            return False
        self._pair(self._port, pair[1], (pair[2] or "").strip())
        return True

    def judge(self, records: Sequence[Port]) -> Result:
        """Say what the ports show."""
        return result_of(["ibstatus"], judge_ports("ibstatus", records))

    @staticmethod
    def _pair(port: Port, key: str, value: str) -> None:
        if key == "state":
            port.state = state_of(value.partition(":")[2] or value)
        elif key == "phys state":
            port.physical = physical_of(value.partition(":")[2] or value)
        elif key == "link_layer":
            port.layer = short(value, 16)
        elif key == "sm lid":
            lid = _HEX.match(value)
            port.sm_lid = int(lid[1], 16) if lid else None
        elif key == "rate":
            rate = _RATE.match(value)
            if rate:
                port.rate_gbps = float(rate[1])
                port.width = int(rate[2]) if rate[2] else None
                port.speed = rate[3]
