"""Page faults of amdgpu: which process, where, and what the status register says.

Sources: Linux drivers/gpu/drm/amd/amdgpu/gmc_v8_0.c to gmc_v12_0.c, soc15_ih_clientid.h, and
Documentation/gpu/amdgpu/debugging.rst for the bits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from engine.readers.quantities import short

_HEAD = re.compile(
    r"^\[(?P<hub>(?:gfx|mm)hub[\w.]{0,8})\] ?(?:(?P<retry>no-retry|retry) )?(?:VMC )?page fault"
)
_OLD_HEAD = re.compile(r"^(?:GPU fault detected|VM fault)\b")
_VMID = re.compile(r"\bvmid ?:?(\d{1,3})\b")
_PASID = re.compile(r"\bpasid ?:?(\d{1,8})\b")
_PROCESS = re.compile(
    r"\bfor process (?P<process>.{0,60}?) ?pid (?P<pid>\d{1,10})(?: thread|[),]|\s*$)"
)
_ADDRESS = re.compile(
    r"^(?:in page starting )?at (?:address|page) (?P<address>0x[0-9A-Fa-f]{1,16})"
    r" from (?:IH )?(?:client )?(?P<client>(?:0x)?[0-9A-Fa-f]{1,4})"
)
_OLD_ADDRESS = re.compile(
    r"VM_CONTEXT1_PROTECTION_FAULT_ADDR {1,4}(?P<address>0x[0-9A-Fa-f]{1,16})"
)
_STATUS = re.compile(
    r"^(?:GC|MM)?(?:VM_L2|VM_CONTEXT1)_PROTECTION_FAULT_STATUS\w{0,8}[: ] {0,4}(0x[0-9A-Fa-f]{1,8})"
)
_CLIENT = re.compile(r"^Faulty UTCL2 client ID: (?P<unit>[\w /()-]{1,32}?) \(0x[0-9A-Fa-f]{1,4}\)")
_BITS = re.compile(
    r"^(MORE_FAULTS|WALKER_ERROR|PERMISSION_FAULTS|MAPPING_ERROR|RW): 0x([0-9A-Fa-f]{1,4})"
)
_NEW_PROCESS = re.compile(
    r"^(?:for )?[Pp]rocess (?P<process>.{0,60}?) pid (?P<pid>\d{1,10})(?: thread .{0,80})?$"
)


@dataclass(slots=True)
class Fault:
    """One page fault, put together from its lines."""

    line: int
    hub: str | None = None
    retry: bool | None = None
    vmid: int | None = None
    pasid: int | None = None
    process: str | None = None
    pid: int | None = None
    address: str | None = None
    unit: str | None = None
    bits: dict[str, int] = field(default_factory=dict)

    @property
    def of_kernel(self) -> bool:
        """Whether the driver's own work faulted: no process, address space 0."""
        return self.vmid == 0 and not self.pid

    @property
    def access(self) -> str | None:
        """``read`` or ``write``, where the status says so."""
        rw = self.bits.get("RW")
        return None if rw is None else ("write" if rw else "read")

    @property
    def why(self) -> str | None:
        """What was wrong with the page."""
        missing = self.bits.get("PERMISSION_FAULTS")
        if self.bits.get("MAPPING_ERROR") or (missing is not None and missing & 1):
            return "the page is not mapped"
        if missing:
            kinds = [k for bit, k in ((2, "read"), (4, "write"), (8, "execute")) if missing & bit]
            return f"the page may not be used for {' or '.join(kinds)}" if kinds else None
        return None


def fault_head(text: str, line: int) -> Fault | None:
    """Return a new fault if the message starts one."""
    head = _HEAD.match(text)
    if head is None and not _OLD_HEAD.match(text):
        return None
    fault = Fault(line)
    if head is not None:
        fault.hub = head["hub"]
        fault.retry = None if head["retry"] is None else head["retry"] == "retry"
    for pattern, name in ((_VMID, "vmid"), (_PASID, "pasid")):
        if found := pattern.search(text):
            setattr(fault, name, int(found[1]))
    if process := _PROCESS.search(text):
        _set_process(fault, process)
    return fault


def fault_detail(text: str, fault: Fault) -> bool:
    """Add a following line to a fault; return whether it belongs to one."""
    if address := (_ADDRESS.match(text) or _OLD_ADDRESS.match(text)):
        fault.address = fault.address or address["address"].lower()
        return True
    if unit := _CLIENT.match(text):
        fault.unit = fault.unit or unit["unit"].strip()
        return True
    if bit := _BITS.match(text):
        fault.bits.setdefault(bit[1], int(bit[2], 16))
        return True
    if process := _NEW_PROCESS.match(text):
        if fault.pid is None:
            _set_process(fault, process)
        return True
    return bool(_STATUS.match(text))


def _set_process(fault: Fault, found: re.Match[str]) -> None:
    fault.process = short(found["process"]) or None
    fault.pid = int(found["pid"]) or None
