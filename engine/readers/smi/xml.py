"""Reader of ``nvidia-smi -q -x``, tag by tag.

No XML parser is asked: nothing is expanded, fetched or nested beyond a short stack, and what is cut
off or broken is read as far as it goes. Entities are left as they stand.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Final

from engine.readers.base import Context, Result
from engine.readers.listing import Kept, Listing
from engine.readers.smi.fields import COUNTERS, FLAGS
from engine.readers.smi.report import report
from engine.readers.smi.state import GpuState, Process, Run, number_of, pci_of, shown
from engine.readers.smi.xml_fields import XML

_TAG: Final = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9_]{0,80})([^<>]{0,200})>([^<>]{0,400})")
_ID: Final = re.compile(r'\bid="?([0-9A-Fa-f:.]{7,20})"?')
_REASON: Final = re.compile(r"^clocks_(?:event|throttle)_reason_(\w{1,60})$")
_COUNTER: Final = re.compile(r"^clocks_event_reasons_counters_(\w{1,60})$")
_REASONS: Final = {name.replace(" ", "_"): reason for name, reason in FLAGS.items()} | {
    "gpu_idle": "gpu_idle",
    "display_clocks_setting": "display_clocks",
    "user_defined_slowdown": "clocks_setting",
}
_SPENT: Final = {name.replace(" ", "_"): reason for name, reason in COUNTERS.items()} | {
    "sw_therm_slowdown": "sw_thermal",
    "hw_therm_slowdown": "hw_thermal",
    "hw_power_brake": "hw_power_brake",
}
_DEPTH: Final = 12
MAX_GPUS: Final = 512
MAX_PROCESSES: Final = 256


class SmiXmlReader(Listing[GpuState]):
    """Reads the elements of the XML form; one a line, as the tool prints them, or all in one."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"<nvidia_smi_log>", b"<gpu id=", b"nvsmi_device")
    PATIENCE: ClassVar[int] = 3

    def __init__(
        self, context: Context, host: str | None = None, kept: Kept[GpuState] | None = None
    ) -> None:
        super().__init__(context, host, Kept(MAX_GPUS) if kept is None else kept)
        self._run = Run()
        self._gpu: GpuState | None = None
        self._by_pci: dict[str, GpuState] = {}
        self._path: list[str] = []

    def take(self, number: int, text: str) -> bool:
        """Take one line of elements."""
        line, before = text.strip(), self.inside
        if not line.startswith("<"):
            return self.inside and bool(self._path)
        if line.startswith(("<?xml", "<!DOCTYPE")):
            line = line[line.find(">") + 1 :]
            self.inside = True
        for slash, tag, attributes, value in _TAG.findall(line):
            if slash:
                self._close(tag)
            else:
                self._open(number, tag, attributes, value.strip())
        return self.inside or before

    def judge(self, records: Sequence[GpuState]) -> Result:
        """Say what the document shows of each GPU."""
        return report(records, self.context, kind="nvidia_smi_xml")

    def _close(self, tag: str) -> None:
        if tag in self._path:
            while self._path and self._path.pop() != tag:
                pass
        if tag == "nvidia_smi_log":
            self._path, self._gpu, self.inside = [], None, False

    def _open(self, number: int, tag: str, attributes: str, value: str) -> None:
        if tag == "nvidia_smi_log":
            self._run, self._path, self.inside = Run(), [], True
        if tag == "gpu":
            identity = _ID.search(attributes)
            self._start(number, pci_of(identity[1]) if identity else None)
        if not self.inside:
            return
        if value:
            self._value(tag, value)
        if attributes.endswith("/"):
            return
        if len(self._path) < _DEPTH:
            self._path.append(tag)

    def _start(self, number: int, pci: str | None) -> None:
        self.inside = True
        self._path = []
        gpu = self._by_pci.get(pci) if pci else None
        if gpu is None:
            gpu = GpuState(pci=pci, host=self.host, line=number)
            self.kept.add(gpu)
            if pci and not self.kept.overflow:
                self._by_pci[pci] = gpu
        gpu.run = self._run
        self._run.add(gpu)
        self._gpu = gpu

    def _value(self, tag: str, value: str) -> None:
        gpu = self._gpu
        if tag == "driver_version":
            self._run.driver = shown(value)
        elif tag == "attached_gpus":
            self._run.attached = int(value) if re.fullmatch(r"[0-9]{1,4}", value) else None
        elif gpu is None or "mig_device" in self._path or "supported_clocks" in self._path:
            return
        elif tag == "product_name":
            gpu.name = shown(value)
        elif tag == "uuid":
            gpu.uuid = shown(value)
        elif "processes" in self._path:
            self._process(gpu, tag, value)
        elif (reason := _REASON.match(tag)) and value in ("Active", "Not Active"):
            if reason[1] in _REASONS:
                gpu.flags[_REASONS[reason[1]]] = value == "Active"
        elif counter := _COUNTER.match(tag):
            spent = number_of(value)
            if spent is not None and counter[1] in _SPENT:
                gpu.counters_us[_SPENT[counter[1]]] = int(spent)
        else:
            self._reading(gpu, tag, value)

    def _reading(self, gpu: GpuState, tag: str, value: str) -> None:
        parent = self._path[-1] if self._path else ""
        name = XML.get(f"{parent}/{tag}")
        if name is None and len(self._path) > 1:
            name = XML.get(f"{self._path[-2]}/{parent}/{tag}")
        if name is not None:
            gpu.take(name, value)

    def _process(self, gpu: GpuState, tag: str, value: str) -> None:
        if gpu.processes is None:
            gpu.processes = []
        if tag == "pid" and re.fullmatch(r"[0-9]{1,9}", value):
            if len(gpu.processes) < MAX_PROCESSES:
                gpu.processes.append(Process(int(value), "", ""))
        elif gpu.processes:
            last = gpu.processes[-1]
            if tag == "type":
                last.kind = value[:4]
            elif tag == "process_name":
                last.name = shown(value)
            elif tag == "used_memory":
                last.memory_mib = number_of(value)
