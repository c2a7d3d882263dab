"""DMA that the IOMMU refused: a device reached for memory that was not mapped for it.

Lines: Linux drivers/iommu/intel/dmar.c, drivers/iommu/amd/iommu.c.
"""

from __future__ import annotations

import re
from typing import ClassVar

from engine.model import Severity
from engine.readers.host.devices import ADDRESS
from engine.readers.host.part import Rule, RulePart

_AMD = "Linux drivers/iommu/amd/iommu.c"
# The device stands in the event, or before it as the driver prints it.
_AMD_FORMS = tuple(
    re.compile(form + r".{0,40}?address=(?P<address>0x[0-9a-f]{1,16})")
    for form in (
        rf"IO_PAGE_FAULT device=(?P<pci>{ADDRESS})",
        rf"(?P<pci>{ADDRESS}): AMD-Vi: Event logged \[IO_PAGE_FAULT",
        r"IO_PAGE_FAULT",
    )
)
_SAYS = (
    "The IOMMU{on} refused DMA of {device} at {address}: that transfer did not happen. A GPU or "
    "NIC does this when peer-to-peer (GPUDirect) crosses an IOMMU that is not set up for it, or "
    "when its driver or firmware fails."
)
_ACTION = (
    "Look for an Xid or a NIC error at the same time. For GPUDirect boot with iommu=pt and turn "
    "ACS off on the switches between GPU and NIC; inside a virtual machine see the hypervisor's "
    "guide."
)


class IommuPart(RulePart):
    """Reads DMA faults of Intel's and AMD's IOMMU."""

    kind: ClassVar[str] = "iommu"
    marks: ClassVar[tuple[str, ...]] = ("DMAR: [", "IO_PAGE_FAULT")
    rules: ClassVar = (
        Rule(
            "dma_refused",
            re.compile(
                rf"DMAR: \[(?:DMA )?(?P<access>Read|Write)[^\]]{{0,24}}\] Request device "
                rf"\[(?P<pci>{ADDRESS})\].{{0,60}}?fault addr (?P<address>(?:0x)?[0-9a-f]{{1,16}})"
            ),
            Severity.MEDIUM,
            _SAYS,
            _ACTION,
            apart=("pci",),
            source="Linux drivers/iommu/intel/dmar.c",
        ),
        *(
            Rule(
                "dma_refused", pattern, Severity.MEDIUM, _SAYS, _ACTION, apart=("pci",), source=_AMD
            )
            for pattern in _AMD_FORMS
        ),
    )
