"""One RDMA port, whichever tool has printed it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

SOURCES: Final = (
    "linux-rdma/rdma-core infiniband-diags manual pages",
    "InfiniBand Architecture Specification 1.4, PortInfo",
)
# enp65s0f1np1, ens1f1: the second function of a card.
_FUNCTION: Final = re.compile(r"[0-9]f([0-9])(?:np[0-9]{1,2})?(?:v[0-9]{1,3})?$")


@dataclass(slots=True)
class Port:
    """One port as a tool prints it; None is not printed. ``rate_gbps`` is in Gb/s."""

    line: int
    device: str
    port: int = 1
    host: str | None = None
    model: str | None = None
    firmware: str | None = None
    layer: str | None = None
    state: str | None = None
    physical: str | None = None
    rate_gbps: float | None = None
    width: int | None = None
    speed: str | None = None
    sm_lid: int | None = None
    netdev: str | None = None
    mtu: int | None = None
    max_mtu: int | None = None

    @property
    def name(self) -> str:
        """Device and port, the port only where there may be several."""
        return self.device if self.port == 1 else f"{self.device} port {self.port}"

    @property
    def up(self) -> bool:
        """Whether the port can carry traffic."""
        return self.state in ("Active", "ActiveDefer")

    @property
    def kin(self) -> tuple[str | None, str | None]:
        """Model and link layer: ports that are alike in both can be compared."""
        return self.model, self.layer

    @property
    def place(self) -> int:
        """Place on the card, from 0: by the port's number, or its interface's."""
        function = _FUNCTION.search(self.netdev or "")
        return max(self.port - 1, int(function[1]) if function else 0)
