"""Reader of ``lspci -vv``: PCIe link speed and width of devices and ports, and AER status bits.

A GPU lowers its link speed to save power when it has no work, never the number of lanes; so the
words around a paste ("nothing running", "under load") decide what a lowered speed means. What the
readings mean together is said in `engine.readers.smi.pcilinks`. Devices that are gone (``rev ff``)
are taken by the reader of the driver's messages, which comes first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from engine.model import Entity, Kind
from engine.readers.base import Context, Result
from engine.readers.listing import Kept, Listing, node
from engine.readers.smi.state import shown

_DEVICE: Final = re.compile(
    r"^((?:[0-9a-f]{4}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) "
    r"([A-Z0-9][\w /-]{2,50}?)(?: \[[0-9a-f]{4}\])?: (\S.{0,160})$"
)
_CAP: Final = re.compile(r"\bLnkCap:\s{0,8}.{0,40}?Speed ([0-9.]{1,4}) ?GT/s, Width x([0-9]{1,2})")
_STATE: Final = re.compile(
    r"\bLnkSta:\s{0,8}Speed ([0-9.]{1,4}) ?GT/s(?: \((\w{2,12})\))?,"
    r" Width x([0-9]{1,2})(?: \((\w{2,12})\))?"
)
_ERRORS: Final = re.compile(r"\b(DevSta|UESta|CESta):\s{0,8}([A-Z][\w+ -]{3,300})")
_BUS: Final = re.compile(r"^\s+Bus: primary=[0-9a-f]{2}, secondary=([0-9a-f]{2}),")
_IDLE: Final = re.compile(
    r"nothing (?:is )?running|no (?:load|job|work)\b|\bidle\b|without load", re.IGNORECASE
)
_LOAD: Final = re.compile(
    r"under (?:full )?load|while (?:training|running|busy|loaded)|during (?:training|the job|a run)"
    r"|\bbusy\b",
    re.IGNORECASE,
)
_UNDER: Final = re.compile(
    r"^\s+(?:Lnk|Dev|UE|CE|AER|Cap|Kernel|Region|Control|Status|Subsystem|Flags|Latency|Interrupt"
    r"|IOMMU|NUMA|Memory|I/O|Expansion|Prefetchable|Bus:|[A-Z]\w{2,20}[:+-]|\[\w)"
    r"|^[0-9a-f]{2,3}:(?: [0-9a-f]{2}){16}\s*$"
)
# Where another tool's listing begins: a line that is nothing but a heading.
_SECTION: Final = re.compile(r"^[A-Za-z][\w .-]{0,40}: ?\d{0,4}\s*$")
_NETWORK: Final = ("Ethernet controller", "Infiniband controller", "InfiniBand controller")
_GRAPHICS: Final = ("3D controller", "VGA compatible controller", "Display controller")
# Makers of GPUs that compute; what else is a VGA controller in a server is the BMC's.
_MAKERS: Final = ("NVIDIA", "Advanced Micro Devices", "AMD/ATI", "Intel", "Habana")
# GPUs, and the network cards that matter here, can use so many lanes; an onboard port cannot.
FEW_LANES: Final = 8
MAX_DEVICES: Final = 4_096


@dataclass(slots=True)
class PciDevice:
    """A device: its place, class and name, link capability and state, error bits that are set.

    Attributes:
        cap_gts: highest speed of the device's own end of the link (GT/s); ``gts`` the one it runs
            at.
        cap_width: lanes of the device's own end; ``width`` those in use.
        bus_below: domain and bus that a port leads to.
        loaded: whether work ran, where somebody says so.
    """

    line: int
    host: str | None = None
    pci: str | None = None
    kind: str = ""
    name: str = ""
    cap_gts: float | None = None
    cap_width: int | None = None
    gts: float | None = None
    width: int | None = None
    speed_word: str = ""
    width_word: str = ""
    errors: dict[str, list[str]] = field(default_factory=dict)
    bus_below: str | None = None
    loaded: bool | None = None

    @property
    def label(self) -> str:
        """How to call it in a sentence."""
        if self.pci is None:
            return "The device"
        return f"{self.name or self.kind or 'Device'} ({self.pci})"

    @property
    def domain(self) -> str:
        """Its PCI domain, 0000 where the listing leaves it out."""
        return self.pci[:-8] if self.pci and len(self.pci) > 8 else "0000:"

    @property
    def bus(self) -> str | None:
        """Domain and bus that it sits on."""
        return None if self.pci is None else f"{self.domain}{self.pci[-7:-5]}"

    @property
    def graphics(self) -> bool:
        """Whether it may be a GPU; a device without a header may."""
        return not self.kind or self.kind in _GRAPHICS or "accelerat" in self.kind

    @property
    def gpu(self) -> bool:
        """Whether it is one that computes."""
        return self.graphics and any(maker in self.name for maker in _MAKERS)

    @property
    def network(self) -> bool:
        """Whether it is a network card of a data network."""
        return self.kind in _NETWORK and (self.cap_width or FEW_LANES) >= FEW_LANES

    @property
    def entity(self) -> Entity | None:
        """The GPU, where it is one and its address is known."""
        if self.pci is None or not self.graphics:
            return node(self.host)
        return Entity(Kind.GPU, f"GPU {self.pci}", host=self.host, pci=self.pci)


class LspciReader(Listing[PciDevice]):
    """Reads the lines of a device that matter for its link."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"LnkCap:",
        b"LnkSta:",
        b"UESta:",
        b"CESta:",
    )
    # The head of any device: what stands below it is not another's.
    pattern: ClassVar[bytes] = (
        rb"[0-9a-f]{2}:[0-9a-f]{2}\.[0-7] [A-Z0-9][A-Za-z0-9/ -]{2,40}(?: \[[0-9a-f]{4}\])?: [A-Z]"
    )
    PATIENCE: ClassVar[int] = 8

    def __init__(
        self, context: Context, host: str | None = None, kept: Kept[PciDevice] | None = None
    ) -> None:
        super().__init__(context, host, Kept(MAX_DEVICES) if kept is None else kept)
        self._device: PciDevice | None = None

    def take(self, number: int, text: str) -> bool:
        """Take a device's head, a line under it, or a remark on what was running."""
        head = _DEVICE.match(text)
        if head:
            self._device = PciDevice(number, self.host, head[1], head[2], _short(head[3]))
            self.kept.add(self._device)
            self.inside = True
            return True
        if self._link(number, text):
            self.inside = True
            return True
        if not self.inside:
            return False
        below = _BUS.match(text)
        if below is not None and self._device is not None:
            self._device.bus_below = f"{self._device.domain}{below[1]}"
        if not text[:1].isspace():
            self._remark(text)
            if _SECTION.match(text):
                self.inside = False
                self.end()
                return False
        return text.startswith("#") or _UNDER.match(text) is not None

    def end(self) -> None:
        """What comes later belongs to another device."""
        self._device = None

    def judge(self, records: Sequence[PciDevice]) -> Result:
        """Say what the links show."""
        from engine.readers.smi.pcilinks import pci_result  # noqa: PLC0415 - only if there are any

        return pci_result(records)

    def _current(self, number: int) -> PciDevice:
        if self._device is None:
            self._device = PciDevice(number, self.host)
            self.kept.add(self._device)
        return self._device

    def _link(self, number: int, text: str) -> bool:
        if (cap := _CAP.search(text)) is not None:
            if self._device is not None and self._device.cap_gts is not None:
                self._device = None  # another device, its head left out
            device = self._current(number)
            device.cap_gts, device.cap_width = _float(cap[1]), int(cap[2])
        elif (state := _STATE.search(text)) is not None:
            if self._device is not None and self._device.gts is not None:
                self._device = None
            device = self._current(number)
            device.gts, device.width = _float(state[1]), int(state[3])
            device.speed_word, device.width_word = state[2] or "", state[4] or ""
            device.line = number
        elif (errors := _ERRORS.search(text)) is not None:
            bits = [w[:-1] for w in errors[2].split() if w.endswith("+")]
            if bits:
                self._current(number).errors[errors[1]] = bits[:24]
        else:
            return False
        self._remark(text)
        return True

    def _remark(self, text: str) -> None:
        if self._device is not None:
            if _LOAD.search(text):
                self._device.loaded = True
            elif _IDLE.search(text):
                self._device.loaded = False


def _short(name: str) -> str:
    return shown(re.sub(r" \((?:rev|prog-if) [^)]{0,60}\)", "", name))[:72]


def _float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
