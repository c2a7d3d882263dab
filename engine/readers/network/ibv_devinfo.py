"""Reader of ``ibv_devinfo``, short and ``-v`` (rdma-core, libibverbs/examples/devinfo.c)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from engine.readers.base import Result
from engine.readers.listing import Listing, result_of
from engine.readers.network.port import Port
from engine.readers.network.port_states import physical_of, state_of
from engine.readers.network.ports import judge_ports
from engine.readers.quantities import integer, short

_START = re.compile(r"^\s{0,4}hca_id:\s{1,8}([\w.:-]{1,63})\s*$")
_PAIR = re.compile(
    r"^\s{1,40}([a-z][\w ]{1,39}):?:\s{0,40}(\S.{0,120})?$|^"
    r"\s{1,40}(GID)\[ {0,3}[0-9]{1,3}\]:.{0,80}$"
)
_WIDTH = re.compile(r"^([0-9]{1,2})X \([0-9]{1,3}\)$")
_SPEED = re.compile(r"^([0-9]{1,4}(?:\.[0-9]{1,2})?) Gbps \([0-9]{1,4}\)$")
_SPEED_NAMES = {
    2.5: "SDR",
    5.0: "DDR",
    10.0: "QDR",
    14.0: "FDR",
    25.0: "EDR",
    50.0: "HDR",
    100.0: "NDR",
    200.0: "XDR",
}


class IbvDevinfoReader(Listing[Port]):
    """Reads one block a device; with ``-v`` also width and speed, which give the rate."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"hca_id:",)
    # -v prints flags under some keys, one a line.
    PATIENCE = 24

    _device = ""
    _model: str | None = None
    _firmware: str | None = None
    _port: Port | None = None
    _lane_gbps: float | None = None

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``ibv_devinfo``."""
        start = _START.match(text)
        if start:
            self._device, self._model, self._firmware, self._port = start[1], None, None, None
            self.inside = True
            return True
        pair = _PAIR.match(text) if self.inside else None
        if pair is None:
            return False
        if pair[1]:
            self._pair(number, pair[1].strip(), (pair[2] or "").strip())
        return True

    def judge(self, records: Sequence[Port]) -> Result:
        """Say what the ports show."""
        return result_of(["ibv_devinfo"], judge_ports("ibv_devinfo", records))

    def _pair(self, number: int, key: str, value: str) -> None:
        if key == "port" and (index := integer(value)) is not None:
            self._port = Port(number, self._device, index, self.host, self._model, self._firmware)
            self._lane_gbps = None
            self.kept.add(self._port)
            return
        if key == "fw_ver":
            self._firmware = short(value, 40)
        elif key == "vendor_part_id":
            self._model = short(value, 16)
        if self._port is not None:
            self._of_port(self._port, key, value)

    def _of_port(self, port: Port, key: str, value: str) -> None:
        if key == "state":
            port.state = state_of(value)
        elif key == "phys_state":
            port.physical = physical_of(value)
        elif key == "link_layer":
            port.layer = short(value, 16)
        elif key == "sm_lid":
            port.sm_lid = integer(value)
        elif key == "active_mtu":
            port.mtu = integer(value.partition(" ")[0])
        elif key == "max_mtu":
            port.max_mtu = integer(value.partition(" ")[0])
        elif key == "active_width" and (width := _WIDTH.match(value)):
            port.width = int(width[1])
        elif key == "active_speed" and (speed := _SPEED.match(value)):
            self._lane_gbps = float(speed[1])
            port.speed = _SPEED_NAMES.get(self._lane_gbps)
        if port.width and self._lane_gbps:
            port.rate_gbps = port.width * self._lane_gbps
