"""Traffic of PCIe and NVLink in exporter text: gauges that are rates already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.model import Finding, Severity
from engine.readers.series import Collected
from engine.units import number, quantity

_PCIE = (("pcie_tx_bytes", "PCIe transmit"), ("pcie_rx_bytes", "PCIe receive"))
_NVLINK = (
    ("nvlink_tx_bytes", "NVLink transmit"),
    ("nvlink_rx_bytes", "NVLink receive"),
    ("nvlink_bandwidth", "NVLink traffic, both directions,"),
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
