"""The one line that says what a run of ``nvidia-smi`` shows of all GPUs together."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from engine.model import Entity, Finding, Severity
from engine.readers.listing import finding, node
from engine.readers.smi.issue import Issue
from engine.readers.smi.remarks import remarks, settings
from engine.readers.smi.state import GpuState, listed, ranges
from engine.units import number

_FORM: Final = {
    "nvidia_smi": "The plain table shows no row remap state, no clock event reasons and no PCIe "
    "link: nvidia-smi -q has them.",
    "nvidia_smi_csv": "",
}
_SPOKEN: Final = {
    "gpu_temp_c": ("die", "°C"),
    "margin_c": ("room to the thermal limit", "°C"),
    "memory_temp_c": ("memory", "°C"),
    "power_w": ("power", "W"),
    "sm_clock_mhz": ("SM clock", "MHz"),
    "gpu_util_percent": ("utilisation", "%"),
    "fb_used_mib": ("memory in use", "MiB"),
}
_SPAN: Final = (
    "gpu_temp_c",
    "margin_c",
    "memory_temp_c",
    "power_w",
    "gpu_util_percent",
    "fb_used_mib",
)
# What was looked at and found good, if every GPU named has the reading.
_CHECKS: Final[tuple[tuple[str, Callable[[GpuState], bool]], ...]] = (
    ("no recovery action", lambda g: bool({"recovery_action", "reset_required"} & set(g.words))),
    (
        "no row remap pending or failed",
        lambda g: {"remap_pending", "remap_failure"} <= set(g.words),
    ),
    (
        "no uncorrectable ECC error since the driver was loaded",
        lambda g: "ecc_uncorrectable_volatile_count" in g.numbers,
    ),
    (
        "no uncorrectable ECC error in its whole life",
        lambda g: g.numbers.get("ecc_uncorrectable_aggregate_count") == 0,
    ),
    ("no hardware or thermal slowdown", lambda g: "hw_slowdown" in g.flags or g.mask is not None),
    (
        "the die below its thermal limit",
        lambda g: bool({"margin_c", "max_op_temp_c"} & set(g.numbers)),
    ),
    (
        "PCIe at full width",
        lambda g: g.numbers.get("pcie_width", -1) >= g.numbers.get("pcie_width_max", math.inf),
    ),
    (
        "NVLink fabric registration complete",
        lambda g: g.words.get("fabric_state", "").lower() == "completed",
    ),
)


def summary(
    gpus: Sequence[GpuState],
    sick: set[int],
    odd: Collection[int],
    found: Sequence[Issue],
    throttled: Mapping[int, Finding],
    kind: str,
) -> Finding | None:
    """Put all GPUs of one or more runs into one finding.

    Args:
        gpus: all of them, in order.
        sick: identities of those with something severe.
        odd: identities of those of which other findings or the rules say something.
        found: everything that was found wrong or odd.
        throttled: what the clock event masks say, by identity.
        kind: the form of the output.

    Returns:
        None for an excerpt that holds nothing but what the other findings say.
    """
    alone = not found and not throttled  # nothing else says anything
    if not gpus or not any(_telling(gpu) or (alone and gpu.numbers) for gpu in gpus):
        return None
    odd = {*sick, *odd, *(id(i.gpu) for i in found if i.concern.severity is not Severity.INFO)}
    several = len({g.host for g in gpus}) > 1

    def named(group: Sequence[GpuState]) -> str:
        if several:
            return listed([g.title for g in group])
        places = [p for g in group if (p := _place(g)) is not None]
        if len(places) == len(group):
            return _gpus(places)
        if len(group) == len(gpus) > 1:
            return f"all {len(gpus)} GPUs"
        return listed([g.title for g in group])

    faulty = [g for g in gpus if id(g) in sick]
    fine = [g for g in gpus if id(g) not in odd]
    idle = [g for g in gpus if g.busy is False and id(g) not in sick]
    busy = [g for g in gpus if g.busy and id(g) not in sick]
    parts = [_head(gpus)]
    if faulty:
        parts.append(f"{named(faulty)} with a fault, named above.")
    for what, group in (("busy", busy), ("idle", idle)):
        if group:
            parts.append(f"{named(group)} {what}.")
    overall = spans(gpus, _SPAN)
    parts += [f"{overall[0].upper()}{overall[1:]}."] if overall else []
    parts += remarks(gpus, named)
    checks = [say for say, seen in _CHECKS if fine and all(seen(g) for g in fine)]
    if checks and fine:
        who = "" if len(fine) == len(gpus) else f" on {named(fine)}"
        if who and not several and any(_place(g) is None for g in fine):
            who = f" on the other {f'{len(fine)} GPUs' if len(fine) > 1 else 'GPU'}"
        parts.append(f"Nothing wrong is shown{who}: {', '.join(checks)}.")
    parts += settings(gpus, named)
    if len(idle) == len(gpus):
        parts.append("Low clocks and a low PCIe generation are normal power saving without work.")
    if _FORM.get(kind):
        parts.append(_FORM[kind])
    benign = [throttled[id(g)].cause for g in fine if id(g) in throttled]
    cause = (
        "idle" if len(idle) == len(gpus) else next((c for c in benign if c == "power_bound"), None)
    )
    return finding(
        kind,
        "gpus",
        Severity.INFO,
        " ".join(f"{part[:1].upper()}{part[1:]}" for part in parts),
        _action(faulty, idle, gpus, odd),
        line=gpus[0].line,
        cause=cause if not faulty else None,
        data=_data(gpus, _called(faulty), _called(idle), _called(busy)),
        entity=_entity(gpus),
    )


def _telling(gpu: GpuState) -> bool:
    """Return whether more than a clock event mask with its readings is known of a GPU."""
    if gpu.name or gpu.uuid or gpu.unreadable or gpu.run.listed:
        return True
    return bool(
        {"gpu_util_percent", "fb_used_mib"} & set(gpu.numbers) or set(gpu.words) - {"pstate"}
    )


def _head(gpus: Sequence[GpuState]) -> str:
    models = list(dict.fromkeys(g.name for g in gpus if g.name))
    drivers = list(dict.fromkeys(g.run.driver for g in gpus if g.run.driver))
    count = f"{len(gpus)} GPU" + ("s" if len(gpus) > 1 else "")
    about = [*models[:3], *([f"driver {listed(drivers, 3)}"] if drivers else [])]
    head = f"{count} ({'; '.join(about)})" if about else count
    if len(drivers) > 1:
        head += ", driver versions differ"
    attached = gpus[0].run.attached
    if attached is not None and attached > gpus[0].run.listed > 0 and len(gpus) < attached:
        head += f" of {attached} attached"
    return f"{head}:"


def _gpus(places: Sequence[int]) -> str:
    if len(places) == 1:
        return f"GPU {places[0]}"
    if len(places) == 2:
        return f"GPUs {places[0]} and {places[1]}"
    return f"{len(places)} GPUs ({ranges(list(places))})"


def spans(gpus: Sequence[GpuState], names: Sequence[str]) -> str:
    """Return lowest and highest of some readings over several GPUs, in words."""
    parts = []
    for name in names:
        what, unit = _SPOKEN[name]
        values = [g.numbers[name] for g in gpus if name in g.numbers]
        if values:
            low, high = number(min(values)), number(max(values))
            parts.append(
                f"{what} {low} {unit}" if low == high else f"{what} {low} to {high} {unit}"
            )
    return ", ".join(parts)


def _place(gpu: GpuState) -> int | None:
    """The index, else the place in a list that names no GPU; of a part of them nothing tells it."""
    return gpu.index if gpu.index is not None else gpu.place


def _called(group: Sequence[GpuState]) -> list[int | str]:
    """Indices or places in the list, else addresses or UUIDs."""
    return [p if (p := _place(g)) is not None else g.pci or g.uuid or 0 for g in group]


def _entity(gpus: Sequence[GpuState]) -> Entity | None:
    if len(gpus) == 1 and gpus[0].entity is not None:
        return gpus[0].entity
    return node(gpus[0].host) if len({g.host for g in gpus}) == 1 else None


def _action(
    faulty: Sequence[GpuState],
    idle: Sequence[GpuState],
    gpus: Sequence[GpuState],
    odd: Collection[int],
) -> str:
    if len(faulty) == len(gpus):
        whole = all(g.run.attached == len(gpus) for g in gpus)
        others = "" if whole else "; it says nothing of GPUs that are not listed"
        return f"See to what is named here{others}."
    if faulty and len(odd) > len(faulty):
        return "See to the GPUs with a fault first, then to what is named of the others."
    if faulty:
        return "See to the GPUs with a fault first; the others need nothing."
    if odd and len(idle) == len(gpus):
        return "See to what is named here; if a job is slow, read it again while the job runs."
    if odd:
        return "See to what is named here; one moment says little about a slow job."
    if len(idle) == len(gpus):
        return "Nothing to do. If a job is slow, read it again while the job runs."
    return "Nothing to do for what is shown here; one moment says little about a slow job."


def _data(
    gpus: Sequence[GpuState],
    faulted: list[int | str],
    idle: list[int | str],
    busy: list[int | str],
) -> dict[str, Any]:
    data: dict[str, Any] = {
        "gpu_count": len(gpus),
        "faulted_gpus": faulted,
        "idle_gpus": idle,
        "busy_gpus": busy,
    }
    drivers = list(dict.fromkeys(g.run.driver for g in gpus if g.run.driver))
    if len(drivers) == 1:
        data["driver_version"] = drivers[0]
    if len(gpus) == 1:
        data |= {k: _whole(v) for k, v in sorted(gpus[0].numbers.items())}
        data |= dict(sorted(gpus[0].words.items()))
    return data


def _whole(value: float) -> float:
    return int(value) if value == int(value) else value
