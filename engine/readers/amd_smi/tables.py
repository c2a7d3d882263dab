"""The tables of ``amd-smi``: ``monitor`` (alias ``dmon``) and what the bare command prints.

``amd-smi monitor`` has a heading and a row for each GPU, again for each interval; values carry
their unit. The bare command (26 and newer) draws a box with two rows for each GPU. Source:
ROCm/amdsmi amdsmi_cli and CHANGELOG.md 24.6 to 26.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from engine.readers.amd_smi.fields import csv_path, put
from engine.readers.amd_smi.state import AmdGpu
from engine.readers.amd_smi.values import reading

_HEADING: Final = re.compile(
    r"^\s{0,12}(?:TIMESTAMP\s{1,8})?GPU\s{1,6}(?P<columns>[A-Z][A-Z0-9_%]{1,20}(?:\s{1,80}"
    r"[A-Z][A-Z0-9_%]{1,20}){0,40})\s*$"
)
_CELL: Final = re.compile(
    r"\[[^\]]{0,1024}\]|N/A (?:W|°?C|%|[KMGT]?B|[MGk]b/s)(?=\s|$)"
    r"|-?[0-9]{1,20}(?:\.[0-9]{1,6})?(?:/[0-9]{1,12}(?:\.[0-9]{1,6})?)?"
    r"(?: (?:[mk]?W|°?C|[MG]Hz|%|[KMGT]?i?B|[MGk]b/s)(?=\s|$))?"
    r"|\S{1,32}"
)
_USAGE: Final = re.compile(
    r"^(?P<used>[0-9]{1,12}(?:\.[0-9]{1,6})?)/(?P<total>[0-9]{1,12}(?:\.[0-9]{1,6})?) ?"
    r"(?P<unit>[KMGT]?i?B)$"
)
# Processes, under the table of readings: known, and not about the GPU's state.
_PROCESSES: Final = re.compile(r"^\s{0,12}(?:PROCESS INFO:|GPU\s{1,40}NAME\s{1,20}PID\b)")


class MonitorForm:
    """Reads ``amd-smi monitor``."""

    def __init__(self, emit: Callable[[AmdGpu], None], host: str | None) -> None:
        self._emit = emit
        self._host = host
        self._columns: list[str] = []
        self._paths: dict[str, str] = {}
        self._processes = False

    def starts(self, number: int, text: str) -> bool:
        """Return whether a line is a heading with at least one column that is known."""
        del number
        found = _HEADING.match(text)
        if found is None:
            return False
        columns = [c.lower() for c in found["columns"].split()]
        if "name" in columns or not any(csv_path(c) or c == "vram_usage" for c in columns):
            return False
        timed = ["timestamp"] if text.split(maxsplit=1)[0] == "TIMESTAMP" else []
        self._columns = [*timed, "gpu", *columns]
        self._paths = {c: path for c in columns if (path := csv_path(c))}
        self._processes = False
        return True

    def take(self, number: int, text: str) -> bool:
        """Take a row."""
        if self.starts(number, text):
            return True
        if _PROCESSES.match(text):
            self._processes = True
            return True
        if self._processes:
            return bool(re.match(r"^\s{0,12}\d{1,12}\s", text)) or "N/A" in text
        cells = [m[0] for m in _CELL.finditer(text[:4096])]
        row = dict(zip(self._columns, cells, strict=False))
        index = reading(row.get("gpu", ""))
        if len(cells) != len(self._columns) or index is None or not 0 <= index < 1024:
            return False
        gpu = AmdGpu(number, int(index), self._host)
        for column, path in self._paths.items():
            put(gpu, path, row[column])
        if "vram_usage" in row:
            put_usage(gpu, row["vram_usage"])
        self._emit(gpu)
        return True


def put_usage(gpu: AmdGpu, cell: str) -> None:
    """Store memory printed as ``0.3/192.0 GB``."""
    found = _USAGE.match(cell.strip())
    if found is not None:
        put(gpu, "mem_usage.used_vram", f"{found['used']} {found['unit']}")
        put(gpu, "mem_usage.total_vram", f"{found['total']} {found['unit']}")


_EDGE: Final = re.compile(r"^\s{0,12}[|+][-=+|]{8,}")
_TITLE: Final = re.compile(r"^\s{0,12}\| AMD-SMI (?P<version>[\w.+-]{1,40})")
_FIRST: Final = re.compile(
    r"^\s{0,12}\| (?P<pci>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.\d)\s{1,24}"
    r"(?P<model>[^|]{1,40}?)\s{0,24}\|\s?(?P<memory>N/A|\d{1,3} %)\s{1,16}"
    r"(?P<temperature>N/A|\d{1,4} °?C)\s{1,16}(?P<uec>N/A|\d{1,12})\s{1,24}"
    r"(?P<power>N/A|\d{1,5})/(?P<cap>N/A|\d{1,5}) W\s{0,4}\|"
)
_SECOND: Final = re.compile(
    r"^\s{0,12}\|\s{1,6}(?P<gpu>\d{1,4})\s{1,12}\S{1,6}\s{1,12}\S{1,6}\s{1,16}"
    r"(?P<partition>[\w/]{1,16})\s{0,8}\|\s?(?P<gfx>N/A|\d{1,3} %)\s{1,16}"
    r"(?P<fan>N/A|[\d.]{1,6} %)\s{1,24}(?P<used>\d{1,12})/(?P<total>\d{1,12}) MB\s{0,4}\|"
)


class BoxForm:
    """Reads the box that ``amd-smi`` prints without a subcommand."""

    def __init__(self, emit: Callable[[AmdGpu], None], host: str | None) -> None:
        self._emit = emit
        self._host = host
        self._first: re.Match[str] | None = None

    def starts(self, number: int, text: str) -> bool:
        """Return whether a line is the box's title, or a row where the title was cut off."""
        if _TITLE.match(text) or "GPU  HIP-ID  OAM-ID" in text:
            self._first = None
            return True
        return bool(_FIRST.match(text)) and self.take(number, text)

    def take(self, number: int, text: str) -> bool:
        """Take a line of the box."""
        first = _FIRST.match(text)
        if first is not None:
            self._first = first
            return True
        second = _SECOND.match(text)
        if second is not None and self._first is not None:
            self._gpu(number, self._first, second)
            self._first = None
            return True
        return bool(_EDGE.match(text)) or (
            text.lstrip().startswith("|") and text.rstrip().endswith("|")
        )

    def _gpu(self, number: int, first: re.Match[str], second: re.Match[str]) -> None:
        gpu = AmdGpu(number, int(second["gpu"]), self._host, first["pci"].lower())
        gpu.model = first["model"].strip()
        for path, cell in (
            ("usage.umc_activity", first["memory"]),
            ("temperature.hotspot", first["temperature"]),
            ("ecc.total_uncorrectable_count", first["uec"]),
            ("power.socket_power", f"{first['power']} W"),
            ("usage.gfx_activity", second["gfx"]),
            ("mem_usage.used_vram", f"{second['used']} MB"),
            ("mem_usage.total_vram", f"{second['total']} MB"),
        ):
            put(gpu, path, cell)
        if first["cap"] not in ("N/A", "0"):
            put(gpu, "power.power_limit", f"{first['cap']} W")
        compute, _, memory = second["partition"].partition("/")
        put(gpu, "partition.compute_partition", compute)
        put(gpu, "partition.memory_partition", memory)
        self._emit(gpu)
