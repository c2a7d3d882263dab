"""Reader of the table that plain ``nvidia-smi`` prints, in the layouts of all driver branches.

Each GPU has two rows (three since MIG: 450), the last table lists processes, one between them the
MIG devices. ``ERR!``, ``GPU requires reset`` and kin stand where the driver cannot read a value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Final

from engine.readers.base import Context, Result
from engine.readers.listing import Kept, Listing
from engine.readers.smi.report import report
from engine.readers.smi.state import GpuState, Process, Run, shown

_HEAD: Final = re.compile(
    r"NVIDIA-SMI +(?:version +)?[\d.]{3,20} +(?:Driver|KMD) Version: *([\d.]{3,20})"
)
_FIRST: Final = re.compile(
    r"^ *([0-9]{1,3}|N/A) +(\S.{0,60}?) +(On|Off|N/A|WDDM|TCC|MCDM|ERR!|Enabled|Disabled) *$"
)
_BUS: Final = re.compile(
    r"^ *([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]) *(?:On|Off|N/A|ERR!)? *$"
)
_SECOND: Final = re.compile(
    r"^ *([0-9]{1,3}%|N/A|ERR!) +([0-9]{1,3}C|N/A|ERR!) +(P[0-9]{1,2}|N/A|ERR!) +"
    r"([0-9.]{1,8}W|N/A|ERR!) */ *([0-9.]{1,8}W|N/A|ERR!) *$"
)
_MEMORY: Final = re.compile(r"^ *([0-9]{1,9}MiB|N/A|ERR!) */ *([0-9]{1,9}MiB|N/A|ERR!) *$")
_UTIL: Final = re.compile(
    r"^ *([0-9]{1,3}%|N/A|ERR!) +(Default|E\. (?:Process|Thread)|Exclusive_\w{1,8}|Prohibited"
    r"|N/A|ERR!) *$"
)
_MODE: Final = re.compile(r"^ *(Enabled|Disabled|N/A)(\*?) *$")
_PROCESS: Final = re.compile(
    r"^\| +([0-9]{1,3}) +(?:(N/A|[0-9]{1,3}) +(?:N/A|[0-9]{1,3}) +)?([0-9]{1,9}) +"
    r"(C|G|C\+G|M\+C|M\+C\+G) +(\S.{0,80}?) +([0-9]{1,9}MiB|N/A) *\|$"
)
_MIG: Final = re.compile(r"^\| +([0-9]{1,3}) +[0-9]{1,3} +[0-9]{1,3} +[0-9]{1,3} +\| +[0-9]+MiB */")
_RULE: Final = re.compile(r"^[|+][-=+| ]{5,}$")
_DATE: Final = re.compile(r"^[A-Z][a-z]{2} [A-Z][a-z]{2} +[0-9]{1,2} [0-9:]{8} [0-9]{4} *$")
_WORDS: Final = re.compile(
    r"\[?(GPU requires reset|GPU is lost|Unknown Error|Insufficient Permissions)\]?", re.IGNORECASE
)
_SECOND_ROW: Final = ("fan_percent", "gpu_temp_c", "pstate", "power_w", "power_limit_w")
MAX_GPUS: Final = 512
MAX_PROCESSES: Final = 256


# Text in the cells of the table's heads and of what stands under them; another tool's tables have
# other words.
_OWN: Final = re.compile(
    r"GPU +(?:Name|GI|PID)|Fan +Temp|Bus-Id|MIG|Uncorr|Processes|^[\W_]*ID\b|\bUsage\b|BAR1|Unc\b"
    r"|not (?:supported|available|found)|[Nn]o running|^\W*(?:\d|N/A|ERR!|$)|^\|\s{8}"
)


class SmiTableReader(Listing[GpuState]):
    """Reads the rows of the table, GPU by GPU, and the processes below."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"| NVIDIA-SMI ", b".0 Off |", b".0  On |", b"MiB |")
    PATIENCE: ClassVar[int] = 2

    def __init__(
        self, context: Context, host: str | None = None, kept: Kept[GpuState] | None = None
    ) -> None:
        super().__init__(context, host, Kept(MAX_GPUS) if kept is None else kept)
        self._run = Run()
        self._gpus: dict[tuple[str, str], GpuState] = {}
        self._gpu: GpuState | None = None
        self._row = 0

    def take(self, number: int, text: str) -> bool:
        """Take one line of the table."""
        line = text.strip()
        if line.startswith(("|", "+")):
            taken = self._take(number, line)
        else:
            taken = self.inside and _DATE.match(line) is not None
        self.inside |= taken
        return taken

    def judge(self, records: Sequence[GpuState]) -> Result:
        """Say what the table shows of each GPU."""
        return report(records, self.context, kind="nvidia_smi")

    def _take(self, number: int, line: str) -> bool:
        head = _HEAD.search(line)
        if head:
            self._run = Run(driver=head[1])
            self._gpu, self._row = None, 0
            return True
        if _RULE.match(line):
            self._row = 0 if line.startswith("+") else self._row
            return self.inside
        cells = line.strip("|+").split("|")
        # A narrow terminal, or a paste cut at the right, leaves the last column out.
        cells += [""] * (3 - len(cells))
        if self._row_of_gpu(number, cells, line):
            return True
        if self._below(line):
            return True
        self.inside = self.inside and _OWN.search(line) is not None
        return self.inside

    def _row_of_gpu(self, number: int, cells: list[str], line: str) -> bool:
        first, bus = _FIRST.match(cells[0]), _BUS.match(cells[1])
        if first and bus:
            self._start(number, first, bus[1].lower(), cells[2], line)
            return True
        if self._row != 1 and _SECOND.match(cells[0]) and _MEMORY.match(cells[1]):
            # ``grep`` left the second rows alone: one GPU each, in the order of the table.
            self._gpu, self._row = GpuState(host=self.host, line=number, run=self._run), 1
            self.kept.add(self._gpu)
        gpu = self._gpu
        if gpu is None:
            return False
        if self._row == 1:
            self._row = 2
            self._second(gpu, cells, line)
            return True
        if self._row == 2:
            self._row = 3
            mode = _MODE.match(cells[2])
            if mode:
                gpu.take("mig_mode", mode[1])
                if mode[2]:
                    gpu.words["mig_mode_pending"] = "changed"
                return True
        return False

    def _start(self, number: int, first: re.Match[str], pci: str, ecc: str, line: str) -> None:
        key = (first[1], pci)
        gpu = self._gpus.get(key)
        if gpu is None:
            gpu = GpuState(pci=pci, host=self.host, line=number)
            gpu.index = int(first[1]) if first[1].isdigit() else None
            self.kept.add(gpu)
            if len(self._gpus) < MAX_GPUS:
                self._gpus[key] = gpu
        gpu.run, gpu.processes = self._run, None
        self._run.listed += 1
        gpu.name = shown(first[2])
        if first[3] in ("On", "Off"):
            gpu.words["persistence_mode"] = {"On": "Enabled", "Off": "Disabled"}[first[3]]
        value = ecc.strip()
        if value == "Off":
            gpu.words["ecc_mode"] = "Disabled"
        elif value != "On":
            gpu.take("ecc_uncorrectable_volatile_count", value)
        self._gpu, self._row = gpu, 1
        self._spoken(gpu, line)

    def _second(self, gpu: GpuState, cells: list[str], line: str) -> None:
        self._spoken(gpu, line)
        found = _SECOND.match(cells[0])
        if found:
            for name, raw in zip(_SECOND_ROW, found.groups(), strict=True):
                value = raw if raw in ("N/A", "ERR!") else raw.rstrip("CW%")
                gpu.take(name, value)
        memory = _MEMORY.match(cells[1])
        if memory:
            gpu.take("fb_used_mib", memory[1])
            gpu.take("fb_total_mib", memory[2])
            used, total = (gpu.numbers.get(f"fb_{name}_mib") for name in ("used", "total"))
            if used is not None and total is not None and total >= used:
                # What the driver reserves for itself counts as free here: a few hundred MiB.
                gpu.numbers["fb_free_mib"] = total - used
        util = _UTIL.match(cells[2])
        if util:
            gpu.take("gpu_util_percent", util[1].rstrip("%"))
            gpu.take("compute_mode", util[2])

    def _spoken(self, gpu: GpuState, line: str) -> None:
        """Note an error in words, wherever in the row it stands."""
        word = _WORDS.search(line)
        if word:
            gpu.take("state", word[1])

    def _below(self, line: str) -> bool:
        if "Processes:" in line or "No running processes found" in line:
            for gpu in self._gpus.values():
                gpu.processes = [] if gpu.processes is None else gpu.processes
            self._gpu = None
            return True
        if "No MIG devices found" in line:
            for gpu in self._gpus.values():
                if gpu.run is self._run and gpu.words.get("mig_mode") == "Enabled":
                    gpu.words["mig_devices"] = "none"
            return True
        process = _PROCESS.match(line)
        if process is not None:
            self._process(process)
            return True
        return _MIG.match(line) is not None

    def _process(self, found: re.Match[str]) -> None:
        for (index, _pci), gpu in self._gpus.items():
            if index == found[1] and gpu.run is self._run:
                gpu.processes = [] if gpu.processes is None else gpu.processes
                if len(gpu.processes) < MAX_PROCESSES:
                    memory = found[6].removesuffix("MiB")
                    gpu.processes.append(
                        Process(
                            int(found[3]),
                            found[4],
                            shown(found[5]),
                            float(memory) if memory.isdigit() else None,
                            found[2],
                        )
                    )
