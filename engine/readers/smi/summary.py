"""The one line that says what a run of ``nvidia-smi`` shows of all GPUs together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from engine.model import Finding, Severity
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
    ("PCIe at full width", lambda g: "pcie_width" in g.numbers),
    (
        "NVLink fabric registration complete",
        lambda g: g.words.get("fabric_state", "").lower() == "completed",
    ),
)


def summary(
    gpus: Sequence[GpuState],
    sick: set[int],
    found: Sequence[Issue],
    throttled: Mapping[int, Finding],
    kind: str,
) -> Finding | None:
    """Put all GPUs of one or more runs into one finding.

    Args:
        gpus: all of them, in order.
        sick: identities of those with something severe.
        found: everything that was found wrong or odd.
        throttled: what the clock event masks say, by identity.
        kind: the form of the output.

    Returns:
        None for an excerpt that holds nothing but what the other findings say.
    """
    alone = not found and not throttled  # nothing else says anything
    if not gpus or not any(_telling(gpu) or (alone and gpu.numbers) for gpu in gpus):
        return None
    odd = sick | {id(i.gpu) for i in found if i.concern.severity is not Severity.INFO}
    places = {id(gpu): gpu.index if gpu.index is not None else i for i, gpu in enumerate(gpus)}
    several = len({g.host for g in gpus}) > 1

    def named(group: Sequence[GpuState]) -> str:
        if several:
            return listed([g.title for g in group])
        return _gpus([places[id(g)] for g in group])

    faulty = [g for g in gpus if id(g) in sick]
    faulted = [places[id(g)] for g in faulty]
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
    checks = [c for c in checks if not (c == "PCIe at full width" and _narrow(fine))]
    if checks and fine:
        who = "" if len(fine) == len(gpus) else f" on {named(fine)}"
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
        " ".join(parts),
        _action(faulted, idle, gpus, odd=bool(odd)),
        line=gpus[0].line,
        cause=cause if not faulted else None,
        data=_data(gpus, faulted, [places[id(g)] for g in idle], [places[id(g)] for g in busy]),
        entity=node(gpus[0].host) if len({g.host for g in gpus}) == 1 else None,
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
    return f"GPUs {ranges(list(places))} ({len(places)})"


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


def _narrow(gpus: Sequence[GpuState]) -> bool:
    return any(g.numbers.get("pcie_width", 0) < g.numbers.get("pcie_width_max", 0) for g in gpus)


def _action(
    faulted: Sequence[int], idle: Sequence[GpuState], gpus: Sequence[GpuState], *, odd: bool
) -> str:
    if faulted:
        return "See to the GPUs with a fault first; the others need nothing."
    if len(idle) == len(gpus):
        return "Nothing to do. If a job is slow, read it again while the job runs."
    if odd:
        return "See to what is named above; one moment says little about a slow job."
    return "Nothing to do for what is shown here; one moment says little about a slow job."


def _data(
    gpus: Sequence[GpuState], faulted: list[int], idle: list[int], busy: list[int]
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
