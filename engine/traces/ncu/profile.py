"""Kernels of one profile: readings of all launches of a kernel, folded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from engine.traces.ncu.numbers import converted

MAX_KERNELS: Final = 2_000
# Labels of sections count less than the names of metrics.
_LABEL: Final = 50
_SHAPES: Final = 16
_MATRIX: Final = re.compile(
    r"gemm|wgmma|\bmma|hmma|xmma|cutlass|conv[123]d|fprop|dgrad|wgrad|implicit|flash|fmha|attention",
    re.IGNORECASE,
)
_VECTOR: Final = re.compile(r"gemv|softmax|norm|elementwise|reduce|splitk_reduce", re.IGNORECASE)
_ARGUMENTS: Final = re.compile(r"\((?!anonymous namespace\)).*$")
_STALL: Final = re.compile(
    r"^smsp__average_warps?_(?:latency_)?issue_stalled_([a-z_]+?)(?:_not_issued)?_per_issue_active\.ratio$"
)


@dataclass(slots=True)
class Kernel:
    """One kernel: readings by id (means over launches), in the units of `kernel_readings`."""

    name: str
    launches: set[str] = field(default_factory=set)
    invocations: float = 0.0
    shapes: set[str] = field(default_factory=set)
    sums: dict[str, float] = field(default_factory=dict)
    counts: dict[str, float] = field(default_factory=dict)
    ranks: dict[str, int] = field(default_factory=dict)
    latest: dict[str, str] = field(default_factory=dict)
    stalls: dict[str, float] = field(default_factory=dict)
    line: int = 0

    def launched(self, grid: str, block: str) -> None:
        """Note the shape of a launch."""
        if grid and block and len(self.shapes) < _SHAPES:
            self.shapes.add(f"{grid}x{block}"[:80])

    @property
    def count(self) -> int:
        """How many launches were profiled."""
        return max(1, len(self.launches), int(self.invocations))

    @property
    def total_us(self) -> float | None:
        """Time of all profiled launches (us)."""
        return self.sums.get("duration")

    def readings(self) -> dict[str, float]:
        """Return the mean readings, and those derived from them."""
        found = {key: self.sums[key] / self.counts[key] for key in self.sums if self.counts[key]}
        found["matrix_kernel"] = float(
            bool(_MATRIX.search(self.name)) and not _VECTOR.search(self.name)
        )
        _ratio(found, "bank_conflict_share", "shared_conflicts", "shared_wavefronts", 100.0)
        _ratio(found, "imbalance", "cycles_active_max", "cycles_active_avg", 1.0)
        _ratio(found, "host_share", "host_sectors", "l2_sectors", 100.0)
        waves = found.get("waves")
        if waves is not None and 1 < waves < 5:
            found["tail_wave"] = waves % 1.0
        if self.stalls and found.get("warp_cycles"):
            found["top_stall"] = min(100.0, 100 * max(self.stalls.values()) / found["warp_cycles"])
        return found

    def top_stall(self) -> str | None:
        """Return the stall reason in which warps wait longest."""
        return max(self.stalls, key=lambda k: (self.stalls[k], k)) if self.stalls else None


class Profile:
    """The kernels of one profile, by name without arguments."""

    def __init__(self, readings: Mapping[str, Mapping[str, Any]]) -> None:
        self._names = {
            name: (key, rank)
            for key, entry in readings.items()
            for rank, name in enumerate(entry.get("names", ()))
        }
        self._labels: dict[str, list[str]] = {}
        for key, entry in readings.items():
            for label in entry.get("labels", ()):
                self._labels.setdefault(label, []).append(key)
        self._units = {key: str(entry["unit"]) for key, entry in readings.items()}
        self.kernels: dict[str, Kernel] = {}
        self.left_out = 0

    def kernel(self, name: str, launch: str, line: int) -> Kernel | None:
        """Return the kernel of a launch; None beyond the limit."""
        short = short_name(name)
        found = self.kernels.get(short)
        if found is None:
            if len(self.kernels) >= MAX_KERNELS:
                self.left_out += 1
                return None
            found = self.kernels[short] = Kernel(short, line=line)
        if len(found.launches) < 100_000:
            found.launches.add(launch)
        return found

    def put(
        self, kernel: Kernel, launch: str, metric: str, unit: str, value: float, times: float = 1.0
    ) -> None:
        """Add one reading of a launch; metrics that nothing is known about are left out."""
        metric = metric.strip()
        stall = _STALL.match(metric)
        if stall:
            kernel.stalls[stall[1]] = max(kernel.stalls.get(stall[1], 0.0), value)
            return
        named = self._names.get(metric)
        if named is not None:
            self._fold(kernel, launch, named, unit, value * times, times)
        else:
            for key in self._labels.get(metric, ()):
                self._fold(kernel, launch, (key, _LABEL), unit, value * times, times)

    def _fold(
        self,
        kernel: Kernel,
        launch: str,
        place: tuple[str, int],
        unit: str,
        value: float,
        times: float,
    ) -> None:
        key, rank = place
        wanted = converted(value, unit, self._units[key])
        # Of several names of a quantity the best one counts, and of one launch the first value.
        best = kernel.ranks.get(key, rank)
        if wanted is None or rank > best or (rank == best and kernel.latest.get(key) == launch):
            return
        if rank < best or key not in kernel.sums:
            kernel.sums[key] = kernel.counts[key] = 0.0
        kernel.ranks[key] = rank
        kernel.latest[key] = launch
        kernel.sums[key] += wanted
        kernel.counts[key] += times


def short_name(name: str) -> str:
    """Return a kernel's name without its arguments and return type, at most 120 characters."""
    bare = _ARGUMENTS.sub("", name.strip()).removeprefix("void ").strip() or name.strip()
    return "".join(c if c.isprintable() else " " for c in bare)[:120]


def _ratio(found: dict[str, float], key: str, part: str, whole: str, scale: float) -> None:
    if part in found and found.get(whole, 0) > 0:
        found[key] = scale * found[part] / found[whole]
