"""Which device sits at a PCI address, as far as a log tells.

A log tells by the driver's name before the address (``mlx5_core 0000:0c:00.0: …``), by the line of
enumeration (``pci 0000:3b:00.0: [10de:2330] type 00 class 0x030200``), by the vendor in an AER line
(``device [10de:2330]``), and by an Xid. Source of vendors and classes: pci.ids.
"""

from __future__ import annotations

import re

ADDRESS = r"(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]"
_DRIVER = re.compile(rf"\b(?P<driver>[a-z][\w-]{{1,24}}) (?P<pci>{ADDRESS})(?=[:\s]|$)")
_NVME = re.compile(rf"\bnvme nvme\d{{1,3}}: pci function (?P<pci>{ADDRESS})")
_FOUND = re.compile(
    rf"\bpci (?P<pci>{ADDRESS}): \[(?P<vendor>[0-9a-f]{{4}}):(?P<device>[0-9a-f]{{4}})\] type "
    rf"\w{{2}} "
    r"class (?P<class>0x[0-9a-f]{4})"
)
_AER_ID = re.compile(
    rf"(?P<pci>{ADDRESS}): (?:AER: )?  ?device \[(?P<vendor>[0-9a-f]{{4}})"
    rf":(?P<device>[0-9a-f]{{4}})\]"
)
_DRIVERS = {
    "nvidia": "GPU",
    "nouveau": "GPU",
    "amdgpu": "GPU",
    "nvidia-nvswitch": "NVSwitch",
    "mlx5_core": "NIC",
    "mlx4_core": "NIC",
    "bnxt_en": "NIC",
    "ice": "NIC",
    "i40e": "NIC",
    "ixgbe": "NIC",
    "igb": "NIC",
    "igc": "NIC",
    "e1000e": "NIC",
    "tg3": "NIC",
    "hfi1": "NIC",
    "irdma": "NIC",
    "ena": "NIC",
    "efa": "NIC",
    "nvme": "NVMe drive",
    "pcieport": "PCIe port",
    "ahci": "SATA controller",
    "megaraid_sas": "storage controller",
    "mpt3sas": "storage controller",
    "xhci_hcd": "USB controller",
}
_CLASSES = {
    "0x0300": "GPU",
    "0x0302": "GPU",
    "0x1200": "accelerator",
    "0x0200": "NIC",
    "0x0207": "NIC",
    "0x0108": "NVMe drive",
    "0x0604": "PCIe port",
}
_GPU_VENDORS = {"10de": "NVIDIA", "1002": "AMD"}
_VENDORS = {**_GPU_VENDORS, "15b3": "Mellanox", "8086": "Intel", "14e4": "Broadcom"}
_MOST = 4_096


def bdf(pci: str) -> str:
    """Return an address in lower case, with a domain of four digits (more where they count)."""
    parts = pci.lower().split(":")
    if len(parts) == 2:
        parts.insert(0, "0000")
    domain = parts[0].lstrip("0").rjust(4, "0")
    return f"{domain}:{parts[1]}:{parts[2]}"


class Devices:
    """What a log has told of the devices of its machines, by address."""

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}
        self._ids: dict[str, str] = {}
        self._drivers: dict[str, str] = {}

    MARK = "] type 0"
    """Stands in every line of enumeration."""

    def learn(self, text: str) -> bool:
        """Look for what a line says of a device; return whether it says nothing else."""
        found = _FOUND.search(text)
        if found:
            kind = _CLASSES.get(found["class"])
            if kind in {"GPU", "accelerator"} and found["vendor"] in _GPU_VENDORS:
                kind = "GPU"
            elif kind == "GPU":
                kind = "display controller"
            self._note(found["pci"], kind, f"{found['vendor']}:{found['device']}")
            return True
        found = _AER_ID.search(text)
        if found:
            kind = {"10de": "NVIDIA device", "15b3": "NIC"}.get(found["vendor"])
            self._note(found["pci"], kind, f"{found['vendor']}:{found['device']}")
        driver = _DRIVER.search(text)
        if driver and driver["driver"] in _DRIVERS:
            self._note(driver["pci"], _DRIVERS[driver["driver"]], None)
            if len(self._drivers) < _MOST:
                self._drivers.setdefault(bdf(driver["pci"]), driver["driver"])
            return False
        drive = _NVME.search(text)
        if drive:
            self._note(drive["pci"], "NVMe drive", None)
        return drive is not None

    def is_gpu(self, pci: str) -> None:
        """Take note of a GPU's address, with or without its function."""
        self._note(pci if "." in pci else f"{pci}.0", "GPU", None, sure=True)

    def kind(self, pci: str) -> str | None:
        """Return what sits at an address (``GPU``, ``NIC``, ``PCIe port`` …), None if untold."""
        return self._kinds.get(bdf(pci))

    def named(self, pci: str) -> str:
        """Return how a device is called in a sentence: ``GPU 0000:3b:00.0``."""
        address = bdf(pci)
        kind = self._kinds.get(address)
        if kind is None:
            vendor = _VENDORS.get(self._ids.get(address, "")[:4])
            kind = f"{vendor} device" if vendor else "device"
        driver = self._drivers.get(address)
        own = f" ({driver})" if driver and driver not in {"nvidia", "amdgpu", "pcieport"} else ""
        return f"{kind} {address}{own}"

    def id(self, pci: str) -> str | None:
        """Return ``vendor:device`` of an address, None if untold."""
        return self._ids.get(bdf(pci))

    def _note(self, pci: str, kind: str | None, id_: str | None, *, sure: bool = False) -> None:
        address = bdf(pci)
        if len(self._kinds) >= _MOST:
            return
        # What the driver is says more than the vendor alone.
        if kind and (sure or self._kinds.get(address) in {None, "NVIDIA device"}):
            self._kinds[address] = kind
        if id_:
            self._ids.setdefault(address, id_)
