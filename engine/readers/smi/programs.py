"""Reader of ``nvidia-smi pmon``: which programs work on which GPU, over all rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Context, Result
from engine.readers.listing import Kept, Listing, finding, result_of
from engine.readers.smi.state import GpuState, listed, shown
from engine.units import number

_NUMBER: Final = re.compile(r"^-?[0-9]{1,12}(?:\.[0-9]{1,6})?$")
# A second program that takes this much (percent) of a GPU shares it.
_SHARING: Final = 10.0
MAX_PROCESSES: Final = 4_096


@dataclass(slots=True)
class _Program:
    """A process on a GPU over all rows; shares in percent."""

    gpu: int
    pid: int
    kind: str
    name: str
    line: int
    rows: int = 0
    sm_sum: float = 0.0

    @property
    def sm(self) -> float:
        return self.sm_sum / self.rows if self.rows else 0.0


class SmiProcessReader(Listing[_Program]):
    """Reads the process monitor."""

    triggers: ClassVar[tuple[bytes, ...]] = (b" pid  type", b" pid   type")
    PATIENCE: ClassVar[int] = 2

    def __init__(
        self, context: Context, host: str | None = None, kept: Kept[_Program] | None = None
    ) -> None:
        super().__init__(context, host, Kept(MAX_PROCESSES) if kept is None else kept)
        self._columns: list[str] = []
        self._programs: dict[tuple[int, int], _Program] = {}
        self._rows = 0

    def take(self, number: int, text: str) -> bool:
        """Take a header, its line of units, or a row."""
        line = text.strip()
        if line.startswith("#"):
            words = line.lstrip("# ").lower().split()
            if {"gpu", "pid", "type"} <= set(words):
                self._columns = words
                self.inside = True
                return True
            return self.inside and "idx" in words
        if not self.inside:
            return False
        cells = line.split(None, len(self._columns) - 1)
        row = dict(zip(self._columns, cells, strict=False))
        if len(cells) < len(self._columns) or not re.fullmatch(r"[0-9]{1,3}", row["gpu"]):
            return False
        self._row(number, row)
        return True

    def judge(self, records: Sequence[_Program]) -> Result:
        """Say who uses which GPU, and where two programs share one."""
        by_gpu: dict[int, list[_Program]] = {}
        for one in records:
            by_gpu.setdefault(one.gpu, []).append(one)
        found = [f for gpu, programs in by_gpu.items() for f in _shared(gpu, programs)]
        names = [f"GPU {gpu}: {_programs(programs)}" for gpu, programs in sorted(by_gpu.items())]
        found.append(
            finding(
                "nvidia_smi_pmon",
                "programs",
                Severity.INFO,
                f"{len(records)} process(es) on {len(by_gpu)} GPU(s). {'; '.join(names[:16])}.",
                "Nothing to do if these are the programs that should run there.",
                line=records[0].line,
                data={"process_count": len(records), "gpus": sorted(by_gpu)},
            )
        )
        return result_of(["nvidia_smi_pmon"], found)

    def _row(self, number: int, row: Mapping[str, str]) -> None:
        if not re.fullmatch(r"[0-9]{1,9}", row["pid"]):
            return
        key = (int(row["gpu"]), int(row["pid"]))
        program = self._programs.get(key)
        if program is None:
            name = shown(row.get("command", ""))
            program = _Program(*key, row["type"][:6], name, number)
            if not self.kept.add(program):
                return
            self._programs[key] = program
        program.rows += 1
        share = row.get("sm", "-")
        program.sm_sum += float(share) if _NUMBER.match(share) else 0.0


def _programs(programs: Sequence[_Program]) -> str:
    return listed(
        [f"{p.name or 'a process'} (pid {p.pid}, SM {number(p.sm)} %)" for p in programs], 4
    )


def _shared(gpu: int, programs: Sequence[_Program]) -> Iterator[Finding]:
    """Two compute programs at work on one GPU, without the Multi-Process Service."""
    at_work = [p for p in programs if p.kind in ("C", "C+G") and p.sm >= _SHARING]
    if len(at_work) < 2:
        return
    data: dict[str, Any] = {"gpu": gpu, "pids": [p.pid for p in at_work]}
    yield finding(
        "nvidia_smi_pmon",
        "shared",
        Severity.MEDIUM,
        f"GPU {gpu} is shared by {len(at_work)} programs at work: {_programs(at_work)}. They take "
        "turns on it, so each is slower than alone.",
        "If one of them should not be there, stop it; to share on purpose use MIG or MPS.",
        line=at_work[0].line,
        cause="gpu_contention",
        data=data,
        entity=GpuState(index=gpu).entity,
        sources=("nvidia-smi manual page, pmon",),
    )
