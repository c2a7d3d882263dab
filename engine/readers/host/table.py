"""The one table of the parts of a kernel log, in the order in which a line is offered to them."""

from __future__ import annotations

from engine.readers.host.aer import AerPart
from engine.readers.host.crash import CrashPart, ProcessCrashPart
from engine.readers.host.driver import DriverPart
from engine.readers.host.hotplug import HotplugPart
from engine.readers.host.infiniband import InfinibandPart
from engine.readers.host.iommu import IommuPart
from engine.readers.host.links import LinkPart
from engine.readers.host.machine import MachinePart
from engine.readers.host.memory import OomPart
from engine.readers.host.stalls import StallPart
from engine.readers.host.storage import StoragePart

PARTS = (
    AerPart,
    HotplugPart,
    IommuPart,
    OomPart,
    StallPart,
    CrashPart,
    ProcessCrashPart,
    MachinePart,
    LinkPart,
    InfinibandPart,
    StoragePart,
    DriverPart,
)
