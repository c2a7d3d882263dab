"""What rows of ``dcgmi dmon`` show: clock events, blank and impossible values, verdicts."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from engine.catalogue.types import Catalogue
from engine.model import Class, Entity, Finding, Kind, Severity
from engine.readers.base import Context, Result
from engine.readers.listing import finding
from engine.readers.quantities import listed
from engine.readers.readings import Readings
from engine.readers.throttle import Around, throttle_finding

# Graphics engine to FP16 pipe active: shares of 1.
RATIOS: Final = range(1001, 1009)
MAX_MOMENTS: Final = 300
_PROFILING: Final = range(1001, 1100)
_MASK_FIELD: Final = 112
_SOURCE: Final = "NVIDIA/DCGM dcgmi/DeviceMonitor.cpp, dcgmlib/src/dcgm_fields.cpp 4.6.0"


@dataclass(slots=True)
class Course:
    """What one entity showed: newest value of each field, and earlier ones for gauges.

    Attributes:
        blank: field: rows without a value.
        odd: field: line and value of the first sample that cannot be; ``odd_count`` counts all.
    """

    kind: str
    id: int
    host: str | None
    line: int
    rows: int = 0
    blank: dict[int, int] = field(default_factory=dict)
    odd: dict[int, tuple[int, float]] = field(default_factory=dict)
    odd_count: int = 0
    newest: dict[int, float] = field(default_factory=dict)
    moments: deque[tuple[int, dict[int, float]]] = field(
        default_factory=lambda: deque(maxlen=MAX_MOMENTS)
    )

    @property
    def entity(self) -> Entity | None:
        """A GPU as an entity; None for instances, switches and links."""
        if self.kind != "GPU":
            return None
        name = f"{self.host}:{self.id}" if self.host else f"GPU {self.id}"
        return Entity(Kind.GPU, name, host=self.host, gpu=self.id)


def _signals(catalogue: Catalogue) -> Mapping[int, tuple[str, float, bool]]:
    """Field id: signal, factor to its unit, whether it is a counter."""
    found: dict[int, tuple[str, float, bool]] = {}
    for signal in catalogue.signals.values():
        if signal.field is not None and signal.spellings:
            counts = str(signal.kind) == "counter"
            found[signal.field] = (signal.id, signal.spellings[0].scale, counts)
    return found


def judged(records: Sequence[Course], context: Context) -> Result:
    """Put the readings of the GPUs to the rules for metrics."""
    readings = Readings(context.catalogue, together=True)
    signals = _signals(context.catalogue)
    for one in records:
        entity = one.entity
        if entity is None:
            continue
        last = one.rows - 1
        for at, values in one.moments:
            for field_id, value in values.items():
                known = signals.get(field_id)
                if known is None or (known[2] and at != last):
                    continue
                readings.add(known[0], value * known[1], entity=entity, line=one.line, at=float(at))
    return readings.judge(context.diagnose)


def mask_findings(records: Sequence[Course], catalogue: Catalogue) -> Iterator[Finding]:
    """Say what holds the clocks; of several GPUs only where it is no normal state."""
    for one in records:
        mask, entity = one.newest.get(_MASK_FIELD), one.entity
        if mask is None or mask < 0 or entity is None:
            continue
        around = Around(
            gpu_temp_c=one.newest.get(150),
            memory_temp_c=one.newest.get(140),
            power_w=one.newest.get(155),
            power_limit_w=one.newest.get(164, one.newest.get(160)),
            power_limit_default_w=one.newest.get(163),
            sm_clock_mhz=one.newest.get(100),
            max_sm_clock_mhz=one.newest.get(113),
        )
        found = throttle_finding(
            int(mask), around, catalogue, entity=entity, subject=entity.name, line=one.line
        )
        benign = found.cause is None or catalogue.taxonomy[found.cause].class_ is Class.BENIGN
        if len(records) == 1 or not benign:
            yield found


def profiling_blank(records: Sequence[Course]) -> Finding | None:
    """Profiling fields that gave no value anywhere, while other fields did."""
    asked = {f for one in records for f in one.blank if f in _PROFILING}
    got = {f for one in records for f in one.newest}
    missing = sorted(asked - got)
    if not missing or got & set(_PROFILING):
        return None
    return finding(
        "dcgmi_dmon",
        "profiling_blank",
        Severity.MEDIUM,
        f"Profiling fields {', '.join(map(str, missing[:12]))} are N/A in every row: DCGM's "
        "profiling is paused, another profiler holds the counters, the profiling module or the "
        "permission is missing, or the GPU has none of them (GeForce before Blackwell).",
        "dcgmi profile --list shows whether the fields exist here; dcgmi profile --resume ends a "
        "pause. Look for ncu, nsys or a second nv-hostengine, and run nv-hostengine as root.",
        line=records[0].line,
        cause="profiling_paused",
        data={"fields": missing},
        sources=(_SOURCE, "NVIDIA/DCGM dcgmi/CommandLineParser.cpp 4.6.0, profile"),
    )


def silent_finding(records: Sequence[Course]) -> Finding | None:
    """GPUs without any value, while others have values."""
    gpus = [one for one in records if one.kind == "GPU"]
    silent = [one for one in gpus if one.blank and not one.newest and not one.odd]
    if not silent or len(silent) == len(gpus):
        return None
    names = listed((f"GPU {one.id}" for one in silent), 8)
    return finding(
        "dcgmi_dmon",
        "gpu_blank",
        Severity.MEDIUM,
        f"{names}: every field is N/A in all rows, while other GPUs have values. Nothing can be "
        "said about it: it may be lost, not supported, or held by MIG or another profiler.",
        "nvidia-smi and dcgmi discovery -l show whether the GPU still answers; dmesg | grep -i xid "
        "shows whether it was lost. If it answers, restart nvidia-dcgm.",
        line=silent[0].line,
        cause="metrics_missing",
        data={"gpus_blank": [one.id for one in silent][:64]},
        entity=silent[0].entity if len(silent) == 1 else None,
        sources=(_SOURCE,),
    )


def impossible_findings(records: Sequence[Course], catalogue: Catalogue) -> Iterator[Finding]:
    """Shares of time over the whole: such samples are damaged, and were left out."""
    entries = catalogue.entries.get("dcgm_fields", {})
    for one in records:
        if not one.odd:
            continue
        field_id, (line, value) = next(iter(one.odd.items()))
        entry = entries.get(str(field_id), {})
        yield finding(
            "dcgmi_dmon",
            "impossible_value",
            Severity.LOW,
            f"{one.kind} {one.id}: {one.odd_count} of {one.rows} row(s) hold a value that cannot "
            f"be, first {value:g} for {entry.get('title', field_id)} (field {field_id}), range "
            f"0 to {'1' if field_id in RATIOS else '100'}. These samples are damaged: they were "
            "left out, and say nothing about the GPU.",
            "Leave such samples out before averages; DCGM gives single ones now and then. If they "
            "keep coming, update DCGM and driver.",
            line=line,
            data={
                "field": field_id,
                "value": value,
                "count": one.odd_count,
                "fields": list(one.odd)[:32],
            },
            entity=one.entity,
            sources=(_SOURCE,),
        )


def summary(records: Sequence[Course], catalogue: Catalogue) -> Finding:
    """Say how much was read, of what."""
    fields = list(dict.fromkeys(f for one in records for f in (*one.newest, *one.blank)))
    entries = catalogue.entries.get("dcgm_fields", {})
    names = [str(entries[str(f)]["title"]) for f in fields if str(f) in entries]
    gpus = [one for one in records if one.kind == "GPU"]
    rows = sum(one.rows for one in records)
    last = {one.id: one.newest[230] for one in gpus if one.newest.get(230)}
    xids = {gpu: int(code) for gpu, code in last.items() if code == int(code)}
    data: dict[str, Any] = {"gpus": len(gpus), "entities": len(records), "rows": rows}
    data["fields"] = fields[:64]
    if xids:
        data["xids"] = {str(gpu): code for gpu, code in xids.items()}
    said = f" Last Xid: {listed(f'GPU {g}: {x}' for g, x in xids.items())}." if xids else ""
    return finding(
        "dcgmi_dmon",
        "summary",
        Severity.INFO,
        f"{rows} row(s) of {len(gpus)} GPU(s)"
        + (f" and {len(records) - len(gpus)} other entities" if len(records) > len(gpus) else "")
        + f": {listed(names, 8)}.{said}",
        "For a verdict that includes what these fields do not show: gpuwhy why TARGET.",
        line=records[0].line,
        data=data,
        sources=(_SOURCE,),
    )
