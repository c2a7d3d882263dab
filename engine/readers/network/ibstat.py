"""Reader of ``ibstat`` (linux-rdma/rdma-core, infiniband-diags/ibstat.c)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from engine.readers.base import Result
from engine.readers.listing import Listing, result_of
from engine.readers.network.port import Port
from engine.readers.network.port_states import physical_of, state_of
from engine.readers.network.ports import judge_ports
from engine.readers.quantities import decimal, integer, short

_CA = re.compile(r"^\s{0,4}CA '([\w.:-]{1,63})'\s*$")
_PORT = re.compile(r"^\s{1,16}Port ([0-9]{1,3}):\s*$")
_PAIR = re.compile(r"^\s{1,24}([A-Z][A-Za-z ]{1,40}):\s{0,4}(\S.{0,80})?$")
_KEYS = frozenset(
    [
        "ca type",
        "number of ports",
        "firmware version",
        "hardware version",
        "node guid",
        "system image guid",
        "state",
        "physical state",
        "rate",
        "base lid",
        "lmc",
        "sm lid",
        "capability mask",
        "port guid",
        "link layer",
    ]
)


class IbstatReader(Listing[Port]):
    """Reads one block a channel adapter, and in it one a port."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"CA '",)

    _device = ""
    _model: str | None = None
    _firmware: str | None = None
    _port: Port | None = None

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``ibstat``."""
        start = _CA.match(text)
        if start:
            self._device, self._model, self._firmware, self._port = start[1], None, None, None
            self.inside = True
            return True
        if not self.inside:
            return False
        port = _PORT.match(text)
        if port:
            self._port = Port(
                number, self._device, int(port[1]), self.host, self._model, self._firmware
            )
            return self.kept.add(self._port)
        pair = _PAIR.match(text)
        if pair is None or pair[1].lower() not in _KEYS:
            return False
        self._pair(pair[1].lower(), (pair[2] or "").strip())
        return True

    def judge(self, records: Sequence[Port]) -> Result:
        """Say what the ports show."""
        return result_of(["ibstat"], judge_ports("ibstat", records))

    def _pair(self, key: str, value: str) -> None:
        port = self._port
        if key == "ca type":
            self._model = short(value, 40)
        elif key == "firmware version":
            self._firmware = short(value, 40)
        elif port is None:
            return
        elif key == "state":
            port.state = state_of(value)
        elif key == "physical state":
            port.physical = physical_of(value)
        elif key == "rate":
            port.rate_gbps = decimal(value.partition(" ")[0])
        elif key == "sm lid":
            port.sm_lid = integer(value)
        elif key == "link layer":
            port.layer = short(value, 16)
