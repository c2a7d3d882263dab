"""Error counts and codes in exporter text that one instant shows but cannot date.

Whether a count grows takes two samples; the rules judge that. Here stands what the newest sample
alone says: uncorrectable ECC errors since the driver was loaded, and the last SXid of a switch.
"""

from __future__ import annotations

from collections.abc import Iterator

from engine.catalogue.types import Catalogue
from engine.model import Entity, Finding, Kind, Severity
from engine.readers.facts import Facts
from engine.readers.series import Collected, Series
from engine.signals.labels import gpu_entity

_SXID_SIGNALS = {"sxid_fatal": "fatal", "sxid_nonfatal": "non-fatal"}


def ecc_counts(collected: Collected) -> Iterator[Finding]:
    """Yield GPUs whose only sample of the volatile double-bit counter is not zero.

    That counter starts at zero when the driver is loaded or the GPU is reset, so the errors are
    newer than the last reset; series with several samples are left to the rules.
    """
    for series in collected.of("ecc_dbe_volatile"):
        if series.count != 1 or not series.value or series.bad:
            continue
        count, entity = int(series.value), gpu_entity([series.place])
        errors = f"{count} uncorrectable (double-bit) ECC error{'' if count == 1 else 's'}"
        yield Finding(
            kind="metrics",
            id="ecc_uncorrectable",
            severity=Severity.HIGH,
            says=(
                f"{entity.name} counted {errors} since its driver was loaded or it was last reset. "
                "One sample cannot tell when."
            ),
            action=(
                "Look in the kernel log for Xid 48 with 63 or 64 and 94 or 95, and read the row "
                "remap flags (DCGM 395 and 396): pending means a GPU reset, failure means field "
                "diagnostics and an RMA."
            ),
            entity=entity,
            line=series.line,
            cause="ecc_uncorrectable",
            data={"ecc_dbe_volatile": count},
            sources=("NVIDIA/DCGM dcgmlib/dcgm_fields.h 4.6.0, field 311",),
        )


def sxid_gauges(collected: Collected, catalogue: Catalogue) -> Iterator[Finding]:
    """Yield the last SXid of each NVSwitch: sticky like that of a GPU's last Xid."""
    facts = Facts(catalogue)
    for series in collected.of(*_SXID_SIGNALS):
        if not series.last or series.signal is None:
            continue
        code = int(series.last)
        entry = facts.sxid(code)
        meaning = entry["title"] if entry else "not a documented code"
        switch = series.labels.get("nvswitch", "")
        data: dict[str, object] = {"sxid": code, "known": entry is not None}
        data["severity"] = _SXID_SIGNALS[series.signal.id]
        if switch:
            data["switch"] = int(switch) if switch.isdecimal() and len(switch) < 5 else switch
        yield Finding(
            kind="sxid",
            id=str(code),
            severity=Severity.LOW,
            says=(
                f"SXid {code} is the last {data['severity']} one that {_switch(series)} "
                f"reported: {meaning}. The gauge holds a code, not a count, and keeps it, so its "
                "time is unknown."
            ),
            action=(
                "Look in the kernel log and the Fabric Manager log for its time; only a change is "
                "an event."
            ),
            entity=_node(series),
            line=series.line,
            cause=None,
            data=data,
            sources=tuple(entry.get("source", ())) if entry else (),
        )


def _switch(series: Series) -> str:
    index = series.labels.get("nvswitch")
    name = f"NVSwitch {index}" if index else "an NVSwitch"
    return f"{name} of {series.place.host}" if series.place.host else name


def _node(series: Series) -> Entity | None:
    host = series.place.host
    return Entity(Kind.NODE, host, host=host) if host else None
