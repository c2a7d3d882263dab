"""What the GPUs of a text show: each alone, beside the others of its machine, all together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from engine.model import Finding, Severity
from engine.readers.amd_smi.cper import Cper, cper_findings
from engine.readers.amd_smi.integrity import integrity_findings
from engine.readers.amd_smi.limits import HOT_C, IDLE, KIND, limit_findings
from engine.readers.amd_smi.matrices import Matrix
from engine.readers.amd_smi.neighbours import outlier_findings
from engine.readers.amd_smi.notices import notices
from engine.readers.amd_smi.slowed import HEAT, slowed_findings
from engine.readers.amd_smi.state import AmdGpu, Gpus, Groups, LowPower, Version
from engine.readers.base import Context, Result
from engine.readers.listing import at, finding, node
from engine.readers.quantities import listed, plural, short
from engine.units import number

_SEVERITIES: Final = tuple(Severity)
# Findings of one kind that are given in full, and names of others that are kept.
_SHOWN: Final = 8
_NAMED: Final = 64
_SENSORS: Final = ("power_w", "gfx_clock_mhz")
# What a verdict of health needs of every GPU.
_CORE: Final = ("gfx_activity_percent", "gfx_clock_mhz", "power_w", "uncorrectable_count")
Records = Sequence[AmdGpu | Matrix | Version | LowPower | Groups | Cper]


def judge(records: Records, context: Context) -> Result:
    """Say what all records show, the worst first; one GPU may stand in several listings."""
    del context  # the boards' own limits decide, not rules made for NVIDIA
    gpus = Gpus()
    for one in records:
        if isinstance(one, AmdGpu):
            gpus.add(one)
    known = gpus.all()
    found = [f for gpu in known for f in (*integrity_findings(gpu), *limit_findings(gpu))]
    for host in dict.fromkeys(gpu.host for gpu in known):
        mine = [gpu for gpu in known if gpu.host == host]
        found += slowed_findings(mine, found)
        told = {f.entity.name for f in found if f.entity and f.cause in HEAT}
        found += [f for f in outlier_findings(mine) if not f.entity or f.entity.name not in told]
    found += [f for one in records if isinstance(one, Matrix) for f in _matrix(one)]
    found += cper_findings([one for one in records if isinstance(one, Cper)])
    blind = _blind(known)
    if blind is not None:
        found.append(blind)
    if any(gpu.numbers for gpu in known):
        found.append(_summary(known, faults=any(_is_fault(f) for f in found)))
    clear = _clear(known)
    if clear is not None:
        found.append(clear)
    found += notices(records)
    found.sort(key=lambda f: _SEVERITIES.index(f.severity))
    found = _folded(found)
    result = Result(
        kinds=[KIND],
        findings=found,
        causes=list(dict.fromkeys(f.cause for f in found if f.cause)),
    )
    if known and not found:
        result.notes.append(
            f"{plural(len(known), 'AMD GPU')} listed; nothing in this text tells their state: "
            "amd-smi metric, amd-smi monitor -V -e -r."
        )
    if gpus.overflow:
        result.notes.append(
            f"Only the first {Gpus.LIMIT} AMD GPUs were judged, {gpus.overflow} more records are "
            "of others."
        )
    return result


def _folded(found: Sequence[Finding]) -> list[Finding]:
    """Say once what holds for many GPUs: faults of the first few stand, of the rest their names."""
    groups: dict[tuple[str, str | None, Severity], list[Finding]] = {}
    for one in found:
        groups.setdefault((one.id, one.cause, one.severity), []).append(one)
    out = []
    for (_, _, severity), group in groups.items():
        shown = 1 if severity is Severity.INFO else _SHOWN
        rest = group[shown:]
        out += group[:shown]
        if rest:
            names = [one.entity.name for one in rest if one.entity is not None]
            last = out[-1]
            out[-1] = replace(
                last,
                says=f"{last.says} The same holds for {listed(names, 12)}.",
                data={**last.data, "also": names[:_NAMED]},
            )
    return out


def _is_fault(one: Finding) -> bool:
    return one.cause is not None and one.severity is not Severity.INFO


def _blind(gpus: Sequence[AmdGpu]) -> Finding | None:
    """GPUs whose sensors the tool printed without a value."""
    dead = [g for g in gpus if g.whole and set(_SENSORS) <= g.missing.keys() - g.numbers.keys()]
    if not dead:
        return None
    names = listed((g.label for g in dead), 8)
    some = len(dead) < len(gpus)
    return finding(
        KIND,
        "no_readings",
        Severity.MEDIUM if some else Severity.LOW,
        f"{names}: neither power nor clock could be read. "
        + (
            "Others of the node can be: their power-management firmware (SMU) may hang."
            if some
            else "The driver gives none here: a virtual machine, an integrated GPU, or firmware "
            "(SMU) that does not answer."
        )
        + " That is not idle and not healthy, it is unknown.",
        "dmesg | grep -i -e smu -e amdgpu shows whether the firmware answers; then reset the GPU "
        "(amd-smi reset --gpureset --gpu N) or reboot.",
        line=dead[0].line,
        cause="metrics_missing",
        data={"gpus": [g.index for g in dead if g.index is not None][:64]},
        entity=dead[0].entity if len(dead) == 1 else None,
    )


def _matrix(one: Matrix) -> Iterator[Finding]:
    total = sum(one.words.values())
    if not total:
        return
    if one.what == "ACCESS":
        off = one.words.get("DISABLED", 0)
        if off:
            pairs = listed((f"{a} to {b}" for a, b in one.pairs["DISABLED"]), 4)
            yield finding(
                KIND,
                "peer_access",
                Severity.MEDIUM,
                f"{at(one.host)}peer access is disabled for {off} of {total} pairs of GPUs "
                f"({pairs}): copies between them go through the host's memory.",
                "Check large BAR and above 4G decoding in the BIOS, iommu=pt on the kernel command "
                "line, ACS on the ports above, and that the GPUs support it.",
                line=one.line,
                cause="p2p_disabled",
                data={"pairs_disabled": off, "pairs": total},
                entity=node(one.host),
            )
        return
    kinds = ", ".join(f"{word} {count}" for word, count in one.words.most_common(6))
    other = [word for word in one.words if word != "XGMI"]
    mixed = "XGMI" in one.words and other
    odd = listed((f"{a} to {b}" for word in other for a, b in one.pairs.get(word, ())), 4)
    yield finding(
        KIND,
        "link_types",
        Severity.INFO,
        f"{at(one.host)}{one.size} GPUs, pairs by type of link: {kinds}."
        + (
            f" Not all pairs use XGMI ({odd}): right where the board has several hives, a lost "
            "link where it has one."
            if mixed
            else ""
        ),
        "For state and errors of the links: amd-smi xgmi -l; amd-smi metric --xgmi-err.",
        line=one.line,
        data={"gpus": one.size, "link_types": dict(one.words.most_common(6))},
        entity=node(one.host),
    )


def _clear(gpus: Sequence[AmdGpu]) -> Finding | None:
    """Bad pages were asked for, and no GPU has one."""
    asked = [g for g in gpus if g.pages]
    if not asked or any(count for g in asked for count in g.pages.values()):
        return None
    first = asked[0]
    return finding(
        KIND,
        "no_bad_pages",
        Severity.INFO,
        f"{listed((g.label for g in asked), 8)}: no bad memory pages, none retired and none "
        "waiting.",
        "Nothing. Counts of ECC errors: amd-smi metric --ecc --ecc-blocks.",
        line=first.line,
        data={"retired_pages": 0, "pending_pages": 0},
        entity=first.entity if len(asked) == 1 else None,
    )


_PARTS: Final[tuple[tuple[str, str, Callable[[AmdGpu], float | None]], ...]] = (
    ("GFX activity", " %", lambda g: g.get("gfx_activity_percent")),
    ("power", " W", lambda g: g.get("power_w")),
    ("hot spot", " °C", lambda g: g.get("hotspot_c")),
    ("edge", " °C", lambda g: g.get("edge_c")),
    ("memory", " °C", lambda g: g.get("memory_c")),
    ("GFX clock", " MHz", lambda g: g.get("gfx_clock_mhz")),
)


def _summary(gpus: Sequence[AmdGpu], *, faults: bool) -> Finding:
    parts = []
    for words, unit, read in _PARTS:
        values = [v for g in gpus if g.whole and (v := read(g)) is not None]
        if values:
            low, high = number(min(values)), number(max(values))
            parts.append(f"{words} {low if low == high else f'{low} to {high}'}{unit}")
    activity = [v for g in gpus if (v := g.get("gfx_activity_percent")) is not None]
    idle = len(activity) == len(gpus) and max(activity, default=100.0) <= IDLE
    healthy = not idle and not faults and all(_complete(g) for g in gpus)
    waiting = [] if idle else [g for g in gpus if g.get("gfx_activity_percent") == 0]
    says = f"{plural(len(gpus), 'AMD GPU')}: "
    says += (", ".join(parts) or "no reading in this text tells its state") + "."
    if idle:
        says += " No work runs: they are idle."
    elif waiting and len(activity) == len(gpus):
        says += f" Idle while others work: {listed((g.label for g in waiting), 8)}."
    if healthy:
        says += " Nothing in these readings is wrong."
    first = gpus[0]
    return finding(
        KIND,
        "gpus",
        Severity.INFO,
        says,
        "Limits are per board: amd-smi static --limit. What holds the clocks: amd-smi monitor -V.",
        line=first.line,
        cause="idle" if idle else "healthy" if healthy else None,
        data={
            "gpus": len(gpus),
            "model": short(first.model, 48) if first.model else None,
            "compute_partition": first.words.get("compute_partition"),
            "memory_partition": first.words.get("memory_partition"),
        }
        | (dict(first.numbers) if len(gpus) == 1 else {}),
        entity=first.entity if len(gpus) == 1 else None,
    )


def _complete(gpu: AmdGpu) -> bool:
    """Whether the readings that a verdict needs are there."""
    if not gpu.whole:
        return True
    warm = gpu.get("hotspot_c") or gpu.get("edge_c")
    # Without the board's limit, a hot one may be at it.
    cool = warm is not None and (warm < HOT_C or gpu.get("slowdown_hotspot_c") is not None)
    return cool and all(gpu.get(name) is not None for name in _CORE)
