"""The one table of readers, in the order in which a line is offered to them."""

from __future__ import annotations

from engine.readers.amd_smi import AmdSmiReader
from engine.readers.amdgpu import AmdgpuReader, RocrReader
from engine.readers.base import MakesReader
from engine.readers.bugreport import BugReportReader
from engine.readers.dcgmi import (
    DcgmiMessageReader,
    DiagReader,
    DiscoveryReader,
    DmonReader,
    HealthReader,
    NvlinkReader,
    StatsReader,
)
from engine.readers.documents import DocumentReader
from engine.readers.exporter import ExporterReader
from engine.readers.exporter_log import ExporterLogReader
from engine.readers.gpu_errors.reader import GpuErrorReader
from engine.readers.host_settings import HostSettingsReader
from engine.readers.kernel import KernelReader
from engine.readers.nccl import NcclReader, TopologyReader
from engine.readers.nccl_inspector import NcclInspectorReader
from engine.readers.nccl_tests import NcclTestsReader
from engine.readers.network import NETWORK_READERS
from engine.readers.peermem import PeermemReader
from engine.readers.serving.log import ServingLogReader
from engine.readers.smi import (
    LspciReader,
    SmiAppsReader,
    SmiCsvReader,
    SmiLinkReader,
    SmiMessageReader,
    SmiMonitorReader,
    SmiProcessReader,
    SmiQueryReader,
    SmiTableReader,
    SmiTopologyReader,
    SmiXmlReader,
)
from engine.readers.storage import STORAGE_READERS
from engine.readers.stories import STORY_READERS
from engine.readers.system import SYSTEM_READERS
from engine.traces.ncu import NcuReader
from engine.traces.pyspy import DumpReader, FoldedReader
from engine.traces.rocprof import RocprofReader

READERS: tuple[MakesReader, ...] = (
    # First: it takes the kernel's messages that a bug report repeats.
    BugReportReader,
    KernelReader,
    # After the kernel's: it knows PCIe errors, whatever driver the device has.
    AmdgpuReader,
    RocrReader,
    PeermemReader,
    # Before the exporters: its metrics are averages of durations, not readings for the rules.
    NcclInspectorReader,
    ExporterReader,
    # Before readers of NCCL's log: it looks at settings there, and leaves the line to them.
    *STORY_READERS,  # before the reader that takes every line about nccl-tests
    NcclTestsReader,
    # Before CUDA's: it says what errors of a program mean beside the driver's.
    SmiMessageReader,
    # Before NCCL's, to which it leaves what NCCL and its watchdog print themselves: it reads the
    # numbers of an out-of-memory message.
    GpuErrorReader,
    NcclReader,
    TopologyReader,
    SmiCsvReader,
    SmiAppsReader,
    SmiTableReader,
    SmiXmlReader,
    SmiMonitorReader,
    SmiProcessReader,
    SmiTopologyReader,
    SmiLinkReader,
    # Before `lspci`: it takes what is said of access control out of its listing.
    HostSettingsReader,
    LspciReader,
    SmiQueryReader,
    DiagReader,
    HealthReader,
    DmonReader,
    NvlinkReader,
    DiscoveryReader,
    StatsReader,
    DcgmiMessageReader,
    AmdSmiReader,
    ExporterLogReader,
    ServingLogReader,
    NcuReader,
    DumpReader,
    FoldedReader,
    RocprofReader,
    *STORAGE_READERS,
    *NETWORK_READERS,
    *SYSTEM_READERS,
    # Last: lines of a document that another reader knows are that reader's.
    DocumentReader,
)
_FROM = READERS.index(STORAGE_READERS[0])
# The places of those of storage tools: what several of them show is put together, worst first.
STORAGE = range(_FROM, _FROM + len(STORAGE_READERS))
