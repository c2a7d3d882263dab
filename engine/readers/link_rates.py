"""PCIe and NVLink in exporter text: traffic, which is a rate already, and links that rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.model import Finding, Severity
from engine.readers.series import Collected
from engine.signals.labels import gpu_entity
from engine.units import number, quantity

_PCIE = (("pcie_tx_bytes", "PCIe transmit"), ("pcie_rx_bytes", "PCIe receive"))
_NVLINK = (
    ("nvlink_tx_bytes", "NVLink transmit"),
    ("nvlink_rx_bytes", "NVLink receive"),
    ("nvlink_bandwidth", "NVLink traffic, both directions,"),
)


def resting_links(collected: Collected) -> Iterator[Finding]:
    """Yield PCIe links below their generation on GPUs without work: power saving, no fault."""
    busy = {s.place.key for s in collected.of("gpu_util") if s.value}
    idle = {s.place.key for s in collected.of("gpu_util") if s.value == 0} - busy
    highest = {s.place.key: s.value for s in collected.of("pcie_max_link_gen") if s.value}
    low = [
        s
        for s in collected.of("pcie_link_gen")
        if s.place.key in idle and s.value and s.value < (highest.get(s.place.key) or 0.0)
    ]
    if not low:
        return
    first = low[0]
    yield Finding(
        kind="metrics",
        id="pcie_rests",
        severity=Severity.INFO,
        says=(
            f"PCIe generation {number(first.value or 0.0)} of "
            f"{number(highest[first.place.key] or 0.0)} on {gpu_entity([first.place]).name}"
            + (f" (and {len(low) - 1} more)" if len(low) > 1 else "")
            + ": normal on an idle GPU, which lowers its link speed to save power."
        ),
        action="Read the generation again under load; only then it says something.",
        entity=gpu_entity([first.place]) if len(low) == 1 else None,
        line=first.line,
        cause=None,
        data={"pcie_link_gen": first.value, "pcie_max_link_gen": highest[first.place.key]},
        sources=("NVIDIA/DCGM dcgmlib/dcgm_fields.h 4.6.0, fields 235 and 237",),
    )


def link_rates(collected: Collected) -> Iterator[Finding]:
    """Yield what the links carry, with the unit, and that ``rate()`` must not be applied."""
    yield from _rates(
        collected,
        "pcie_rate",
        _PCIE,
        "bytes per second already, a gauge.",
        "NVIDIA/DCGM dcgmlib/dcgm_fields.h 4.6.0, fields 1009 and 1010",
    )
    yield from _rates(
        collected,
        "nvlink_rate",
        _NVLINK,
        "a rate already, a gauge, although exporters before 4.8.3 call the total a counter.",
        "NVIDIA/dcgm-exporter issues 417, 472 and 658",
    )


def _rates(
    collected: Collected, id_: str, signals: Sequence[tuple[str, str]], what: str, source: str
) -> Iterator[Finding]:
    data: dict[str, object] = {}
    shown: list[str] = []
    line = 0
    gpus = set()
    for signal, words in signals:
        found = [s for s in collected.of(signal) if s.value is not None]
        if not found:
            continue
        highest = max(found, key=lambda s: s.value or 0.0)
        top = highest.value or 0.0
        shown.append(f"{words} {quantity(top, 'B/s')} (exported as {number(highest.last or 0.0)})")
        data[f"{signal.removesuffix('_bytes')}_mb_per_s"] = round(top / 1e6, 6)
        line = line or found[0].line
        gpus |= {s.place.key for s in found}
    if not shown:
        return
    most = " at most" if len(gpus) > 1 else ""
    total = data.get("nvlink_bandwidth_mb_per_s")
    profiled = [data.get(f"nvlink_{way}_mb_per_s") for way in ("tx", "rx")]
    if total and profiled == [0, 0]:
        what += (
            " Both cannot be: the profiling counters (PROF) of NVLink are not collected here, "
            "so their zeros say nothing; the total is the one to read."
        )
        source = f"{source}; NVIDIA/DCGM issue 149"
    yield Finding(
        kind="metrics",
        id=id_,
        severity=Severity.INFO,
        says=f"{' and '.join(shown)}{most}: {what}",
        action="Do not apply rate() to it again.",
        entity=None,
        line=line,
        cause=None,
        data=data,
        sources=(source,),
    )
