"""Summaries of rocprofv3 (``--stats``) and its counters (``--pmc``): what took the time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from engine.traces.rocprof.tables import Header
from engine.traces.wording import ms, percent, short

_MAX: Final = 4_096
_TOP: Final = 5
_NO_GAPS: Final = (
    "A summary has no gaps and no order: for idle time give the trace itself "
    "(rocprofv3 --kernel-trace --hip-trace --memory-copy-trace -f csv)."
)
Told = tuple[str, str, str, dict[str, Any]]


class Stats:
    """Rows of a summary: calls and total time by name."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[int, float]] = {}

    def add(self, header: Header, row: list[str]) -> bool:
        """Add a row; return whether it is one."""
        count, total = (
            _number(header.cell(row, "Calls")),
            _number(header.cell(row, "TotalDurationNs")),
        )
        name = header.cell(row, "Name")
        if count is None or total is None or not name:
            return False
        if name in self._rows or len(self._rows) < _MAX:
            self._rows[name] = (int(count), total)
        return True

    def told(self) -> Iterator[Told]:
        """Yield what took the time, for kernels, copies and calls apart."""
        groups: dict[str, list[str]] = {}
        for name in self._rows:
            groups.setdefault(_group(name), []).append(name)
        for group, names in sorted(groups.items()):
            whole = sum(self._rows[n][1] for n in names)
            top = sorted(names, key=lambda n: (-self._rows[n][1], n))[:_TOP]
            listed = [self._line(name, whole) for name in top if self._rows[name][0] and whole]
            if listed:
                says = f"{ms(whole / 1e6)} in {group}: {'; '.join(listed)}."
                data = {"total_ms": round(whole / 1e6, 6), f"top_{group}": listed}
                yield (f"{group}_summary", says, _NO_GAPS, data)

    def _line(self, name: str, whole: float) -> str:
        count, total = self._rows[name]
        share = percent(100 * total / whole)
        return f"{short(name)}: {count} x {total / count / 1e3:.4g} us, {share}"


class Counters:
    """Means of hardware counters by kernel."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], tuple[float, int]] = {}

    def add(self, header: Header, row: list[str]) -> bool:
        """Add a row; return whether it is one."""
        value = _number(header.cell(row, "Counter_Value"))
        kernel, counter = header.cell(row, "Kernel_Name"), header.cell(row, "Counter_Name")
        if value is None or not kernel or not counter:
            return False
        key = (short(kernel), counter[:80])
        if key in self._sums or len(self._sums) < _MAX:
            total, count = self._sums.get(key, (0.0, 0))
            self._sums[key] = (total + value, count + 1)
        return True

    def told(self) -> Iterator[Told]:
        """Yield the means of the kernels that were measured most."""
        kernels: dict[str, int] = {}
        for (kernel, _), (_, count) in self._sums.items():
            kernels[kernel] = kernels.get(kernel, 0) + count
        for kernel in sorted(kernels, key=lambda k: (-kernels[k], k))[:_TOP]:
            means = {
                counter: round(total / count, 6)
                for (name, counter), (total, count) in self._sums.items()
                if name == kernel
            }
            listed = ", ".join(f"{name} {value:,.6g}" for name, value in list(means.items())[:12])
            yield (
                "counters",
                f"{kernel}: means of {kernels[kernel]} counter readings: {listed}.",
                "`rocprof-compute profile` measures what a roofline needs and names the limit.",
                {"kernel": kernel, "counters": means},
            )


def _group(name: str) -> str:
    if name.startswith(("MEMORY_COPY", "Copy")):
        return "copies"
    call = name.startswith(("hip", "hsa_", "__hip", "roctx", "nccl")) and "Kernel_" not in name
    return "calls" if call else "kernels"


def _number(text: str) -> float | None:
    try:
        value = float(text) if len(text) < 40 else -1.0
    except ValueError:
        return None
    return value if 0 <= value < 1e18 else None
