"""Reader of ``nvidia-smi -q``: whole listings, displays (``-d``), and what ``grep`` leaves of them.

Driver branches differ in sections, keys and padding; a key is known by the sections around it
(`engine.readers.smi.fields`), and by itself where it can mean only one thing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from engine.readers.base import Context, Result
from engine.readers.listing import Kept, Listing
from engine.readers.smi.fields import ALONE, COUNTERS, FLAGS, SECTIONS, query_field
from engine.readers.smi.report import report
from engine.readers.smi.state import GpuState, Process, Run, number_of, pci_of, shown

_GPU: Final = re.compile(
    r"^\s{0,40}GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$"
)
# The listing pads its keys, so a space stands before the colon; prose and logs have none there.
_PAIR: Final = re.compile(r"^(\s{0,80})([A-Za-z][^:]{0,60}?)\s+:(?: (.*\S))?\s*$")
_HEADING: Final = re.compile(r"^(\s{0,80})([A-Za-z][\w ./()-]{0,60}?)\s*$")
_FIRST: Final = frozenset(
    SECTIONS - {"shared", "pci", "health", "clocks", "voltage", "processes"}
) | {"clocks"}
_IDENTITY: Final = frozenset({"product name", "gpu uuid", "bus id", "serial number"})
# Printed once for each GPU: seen again without a new heading, it belongs to the next one.
_ONCE: Final = frozenset(
    {
        "product name",
        "gpu uuid",
        "gpu current temp",
        "performance state",
        "persistence mode",
        "gpu recovery action",
        "reset required",
        "remapping failure occurred",
        "pending page blacklist",
        "cliqueid",
        "unrepairable memory",
    }
)
# Sections that each GPU has once: another one, where no GPU is named, is the next GPU's.
_ONCE_SECTIONS: Final = frozenset(
    {
        "clocks event reasons",
        "clocks event reasons counters",
        "clocks throttle reasons",
        "ecc errors",
        "ecc mode",
        "fabric",
        "fb memory usage",
        "gpu link info",
        "gpu power readings",
        "gpu reset status",
        "mig mode",
        "power readings",
        "remapped rows",
        "retired pages",
        "temperature",
        "utilization",
    }
)
_PROCESS: Final = re.compile(r"^[0-9]{1,9}$")
MAX_GPUS: Final = 512
MAX_PROCESSES: Final = 256


@dataclass(slots=True)
class _Section:
    """A heading, how far it is indented, and how far what stands under it is."""

    indent: int
    name: str
    child: int | None = None


class SmiQueryReader(Listing[GpuState]):
    """Reads the ``key : value`` lines of ``nvidia-smi -q``."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"NVSMI LOG",
        b"  : ",
        b" : Active",
        b" : Not Active",
        b" : Yes",
        b"Clocks Event Reasons",
        b"Clocks Throttle Reasons",
        b"GPU 0000",
        b"Fabric",
        b"Remapped Rows",
        b"Retired Pages",
        b"ECC Errors",
        b"GPU Link Info",
        b"GPU Current Temp",
        b"Performance State",
        b"Product Name",
    )
    # A heading with which an excerpt starts, alone on its line.
    pattern: ClassVar[bytes] = (
        rb"(?m)^[ \t]{0,12}(?:(?:Max |SM )?Clocks|Utilization|FB Memory Usage|Temperature"
        rb"|(?:GPU )?Power Readings|Link Width|PCIe Generation|(?:ECC|MIG) Mode)[ \t\r]*$"
    )
    PATIENCE: ClassVar[int] = 2

    def __init__(
        self, context: Context, host: str | None = None, kept: Kept[GpuState] | None = None
    ) -> None:
        super().__init__(context, host, Kept(MAX_GPUS) if kept is None else kept)
        self._run = Run()
        self._gpu: GpuState | None = None
        self._by_pci: dict[str, GpuState] = {}
        self._sections: list[_Section] = []
        self._seen: set[str] = set()

    def take(self, number: int, text: str) -> bool:
        """Take one line of a listing."""
        text = text.expandtabs()
        if "NVSMI LOG" in text:
            self._start_run()
        elif (gpu := _GPU.match(text)) is not None:
            self._start(number, gpu[1])
        elif (pair := _PAIR.match(text)) is not None:
            if not self._pair(number, len(pair[1]), pair[2].lower(), pair[3] or ""):
                return False
        elif not self._heading(text):
            return False
        self.inside = True
        return True

    def end(self) -> None:
        """Forget the sections: what comes later is another excerpt."""
        self._sections = []

    def judge(self, records: Sequence[GpuState]) -> Result:
        """Say what the listings show of each GPU."""
        return report(records, self.context, kind="nvidia_smi_q")

    def _start_run(self) -> None:
        self._run = Run()
        self._gpu, self._sections = None, []

    def _start(self, number: int, pci: str) -> None:
        pci = pci.lower()
        self._sections, self._seen = [], set()
        known = self._by_pci.get(pci)
        if known is None:
            known = self._new(number)
            known.pci = pci
            if not self.kept.overflow:
                self._by_pci[pci] = known
        known.run = self._run
        self._run.add(known)
        self._gpu = known

    def _new(self, number: int) -> GpuState:
        gpu = GpuState(host=self.host, line=number, run=self._run)
        self.kept.add(gpu)
        self._gpu = gpu
        return gpu

    def _current(self, number: int, key: str) -> GpuState:
        gpu = self._gpu
        if gpu is None or (gpu.pci is None and key in _ONCE and key in self._seen):
            opened = {s.name for s in self._sections if s.name in _ONCE_SECTIONS}
            self._seen = opened
            gpu = self._new(number)
        self._seen.add(key)
        return gpu

    def _heading(self, text: str) -> bool:
        found = _HEADING.match(text)
        if found is None:
            return False
        indent, name = len(found[1]), found[2].lower()
        # A section of a driver yet unknown: its keys mean nothing here.
        unknown = self.inside and self._gpu is not None and indent >= 4 and indent % 4 == 0
        if name not in (SECTIONS if self.inside else _FIRST) and not unknown:
            return False
        if name in _ONCE_SECTIONS and self._gpu is not None and self._gpu.pci is None:
            if name in self._seen:
                self._gpu, self._seen = None, set()
            self._seen.add(name)
        while self._sections and self._sections[-1].indent >= indent:
            self._sections.pop()
        if self._sections and self._sections[-1].child is None:
            self._sections[-1].child = indent
        self._sections.append(_Section(indent, name))
        return True

    def _place(self, indent: int) -> list[str]:
        """Leave the sections that a key so far to the left cannot stand in; return the others.

        Where a paste lost its indentation, keys stand as far left as their section.
        """
        while self._sections:
            top = self._sections[-1]
            flat = top.indent == indent and top.child in (None, indent)
            if top.indent < indent or flat:
                top.child = indent if top.child is None else top.child
                break
            self._sections.pop()
        return [s.name for s in self._sections]

    def _pair(self, number: int, indent: int, key: str, value: str) -> bool:
        sections = self._place(indent)
        if key == "driver version":
            self._run.driver = shown(value)
        elif key == "attached gpus":
            self._run.attached = int(value) if re.fullmatch(r"[0-9]{1,4}", value) else None
        elif "mig device" in sections:
            return True
        elif key in FLAGS and value in ("Active", "Not Active"):
            gpu = self._current(number, key)
            gpu.flags[FLAGS[key]] = value == "Active"
            gpu.flags_line = gpu.flags_line or number
        elif key in COUNTERS and value.endswith(" us"):
            spent = number_of(value)
            if spent is not None:
                gpu = self._current(number, key)
                gpu.counters_us[COUNTERS[key]] = int(spent)
                gpu.flags_line = gpu.flags_line or number
        elif key in _IDENTITY and (not sections or sections[-1] == "pci"):
            self._identity(self._current(number, key), key, value)
        elif sections and sections[-1] == "processes":
            self._process(key, value)
        else:
            return self._reading(number, sections, key, value)
        return True

    def _reading(self, number: int, sections: list[str], key: str, value: str) -> bool:
        name = query_field(sections, key)
        if name is None:
            return self.inside or key in ALONE
        gpu = self._current(number, key)
        if gpu.pci is not None or name not in gpu.numbers:
            gpu.take(name, value)
        return True

    def _identity(self, gpu: GpuState, key: str, value: str) -> None:
        if key == "product name":
            gpu.name = shown(value)
        elif key == "gpu uuid" and value.startswith("GPU-"):
            gpu.uuid = shown(value)
        elif key == "serial number":
            gpu.take("serial", value)
        elif gpu.pci is None:
            gpu.pci = pci_of(value)

    def _process(self, key: str, value: str) -> None:
        gpu = self._gpu
        if gpu is None:
            return
        if gpu.processes is None:
            gpu.processes = []
        if key == "process id":
            if _PROCESS.match(value) and len(gpu.processes) < MAX_PROCESSES:
                gpu.processes.append(Process(int(value), "", ""))
        elif gpu.processes:
            last = gpu.processes[-1]
            if key == "type":
                last.kind = value[:4]
            elif key == "name":
                last.name = shown(value)
            elif key == "used gpu memory":
                last.memory_mib = number_of(value)
