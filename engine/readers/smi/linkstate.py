"""What NVLink states, speeds, error counters and capabilities of GPUs show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from engine.model import Finding, Severity
from engine.readers.base import Context, Result
from engine.readers.listing import finding, node, result_of
from engine.readers.readings import Readings, absorb
from engine.readers.smi.linkcounts import (
    capabilities,
    counted_errors,
    feed,
    inventory,
    without_links,
)
from engine.readers.smi.links import LinkGpu
from engine.readers.smi.state import listed, ranges

_SOURCE: Final = "nvidia-smi nvlink manual page"
# Speed of one link in one direction (GB/s) as the tool prints it, and the generation it means.
# V100 and A100 data sheets, dgx-a100 and HGX listings of the driver branches 418 to 595.
_GENERATIONS: Final = (
    (19.0, 20.5, "NVLink 1"),
    (25.7, 25.9, "NVLink 2"),
    (24.9, 25.1, "NVLink 3"),
    (14.0, 14.2, "NVLink 3 (bridge)"),
    (26.5, 26.7, "NVLink 4"),
    (50.0, 53.2, "NVLink 5"),
)


def link_result(records: Sequence[LinkGpu], context: Context) -> Result:
    """Say what the links of all GPUs of a paste show, and what the list of GPUs alone shows."""
    for gpu in records:
        gpu.fill()
    linked = [g for g in records if g.speeds or g.errors or g.able or g.inactive or g.without]
    if not linked:
        return result_of(["nvidia_smi_l"], [inventory(records)])
    states = [g for g in linked if g.speeds or g.inactive]
    found = [*_states(states, context), *counted_errors(linked), *capabilities(linked)]
    found += without_links(linked) if not states else []
    result = result_of(["nvlink"], _with_faulted(found))
    readings = Readings(context.catalogue, together=True)
    for gpu in linked:
        feed(readings, gpu)
    absorb(result, readings.judge(context.diagnose))
    return result


def _with_faulted(found: Sequence[Finding]) -> list[Finding]:
    """Tell in each finding which GPUs of the paste have a fault on their links."""
    bad = [f for f in found if (f.cause or "").startswith("nvlink_")]
    named = {f.data["gpu"] for f in bad if "gpu" in f.data}
    named.update(index for f in bad for index in f.data.get("gpus", ()))
    if bad and not named:
        return list(found)  # nothing tells which GPU it is
    return [replace(f, data={**f.data, "faulted_gpus": sorted(named)}) for f in found]


def _states(gpus: Sequence[LinkGpu], context: Context) -> Iterator[Finding]:
    fine: list[LinkGpu] = []
    dead = [g for g in gpus if not any(g.speeds.values())]
    most = max((_up(g) for g in gpus), default=0)
    for gpu in gpus:
        if gpu in dead and len(dead) == len(gpus):
            continue
        down = [link for link, speed in sorted(gpu.speeds.items()) if not speed]
        expected = _expected(gpu, context)
        alone = gpu.index < 0 and len(gpus) == 1  # no board is named: a link less is one too few
        short = bool(down) and (expected is not None or _up(gpu) < most or alone)
        slow = _slow(gpu, gpus)
        absent = expected is not None and 0 < _up(gpu) < min(expected, most)
        if (gpu.inactive and not gpu.speeds) or short or absent:
            yield _down(gpu, down, expected or max(most, len(gpu.speeds)))
        elif slow:
            yield _narrow(gpu, slow)
        else:
            fine.append(gpu)
    if dead and len(dead) == len(gpus):
        yield _all_inactive(dead, context)
    if fine:
        yield _healthy(fine, context)


def _down(gpu: LinkGpu, down: Sequence[int], expected: int) -> Finding:
    up = _up(gpu)
    if down:
        which = f"link{'s' if len(down) != 1 else ''} {ranges(list(down))} inactive"
    else:
        which = "all links inactive" if not up else "links of it are not even listed"
    rest = f"; {up} of {expected} work, at {_exact(_speed(gpu))} GB/s each" if up else ""
    return finding(
        "nvlink",
        "inactive",
        Severity.HIGH,
        f"{gpu.label}: {which}{rest}. Traffic with its peers runs over what is left or "
        "around NVLink; collectives go at the speed of the slowest GPU.",
        "dmesg -T (Xid 74, 144 to 150, SXid of the switch port), nvidia-smi nvlink -e; then reset "
        "all GPUs of the node or reboot. A link that stays down after that is the board, the "
        "baseboard or (rack systems) a cable or switch tray.",
        line=gpu.line,
        cause="nvlink_down",
        data={
            "gpu": gpu.index if gpu.index >= 0 else None,
            "inactive_links": list(down),
            "active_links": up,
            "link_gbs": _speed(gpu) if up else None,
        },
        entity=gpu.entity,
        sources=(_SOURCE,),
    )


def _slow(gpu: LinkGpu, gpus: Sequence[LinkGpu]) -> dict[int, float]:
    """Links that are up and slower than the fastest of the paste's GPUs of the same name."""
    speeds = [s for g in gpus if g.name == gpu.name for s in g.speeds.values() if s]
    best = max(speeds, default=0.0)
    return {link: s for link, s in sorted(gpu.speeds.items()) if 0 < s < 0.95 * best}


def _narrow(gpu: LinkGpu, slow: Mapping[int, float]) -> Finding:
    speeds = listed([f"link {link} at {_exact(s)} GB/s" for link, s in slow.items()], 6)
    return finding(
        "nvlink",
        "slow",
        Severity.HIGH,
        f"{gpu.label}: {speeds}, where others reach {_exact(_speed(gpu, top=True))} GB/s or "
        "more. The link is up and narrower or slower than its siblings.",
        "nvidia-smi nvlink -e and dmesg -T; reset all GPUs of the node to train the links anew.",
        line=gpu.line,
        cause="nvlink_degraded",
        data={"gpu": gpu.index if gpu.index >= 0 else None, "slow_links": list(slow)},
        entity=gpu.entity,
        sources=(_SOURCE,),
    )


def _all_inactive(gpus: Sequence[LinkGpu], context: Context) -> Finding:
    """No link works anywhere: a fault only where the boards have nothing but NVLink to talk by."""
    who = f"{len(gpus)} GPUs" if len(gpus) > 1 else gpus[0].label
    others = len(gpus) > 1 or gpus[0].index > 0
    wired = others and all(_expected(g, context) is not None for g in gpus)
    if wired:
        return finding(
            "nvlink",
            "all_inactive",
            Severity.HIGH,
            f"All links of {who} are inactive, on boards that are wired together by NVLink: "
            "traffic between the GPUs goes over PCIe.",
            "systemctl status nvidia-fabricmanager (NVSwitch systems), dmesg -T; see that "
            "NVreg_NvLinkDisable is not set in /proc/driver/nvidia/params; then reset the GPUs.",
            line=gpus[0].line,
            cause="nvlink_down",
            data={"active_links": 0, "gpus": [g.index for g in gpus if g.index >= 0]},
            entity=gpus[0].entity if len(gpus) == 1 else node(gpus[0].host),
            sources=(_SOURCE,),
        )
    return finding(
        "nvlink",
        "all_inactive",
        Severity.INFO,
        f"All links of {who} are inactive. Without a bridge or a peer that is how it should be "
        "(a single GPU or superchip, boards with no NVLink bridge fitted): the GPUs then talk over "
        "PCIe. With a bridge fitted it is a fault.",
        "If there should be NVLink: check the bridge and its seating, then nvidia-smi topo -m.",
        line=gpus[0].line,
        data={"active_links": 0},
        entity=gpus[0].entity if len(gpus) == 1 else node(gpus[0].host),
        sources=(_SOURCE,),
    )


def _healthy(gpus: Sequence[LinkGpu], context: Context) -> Finding:
    first = gpus[0]
    up, speed = _up(first), _speed(first)
    alike = all(_up(g) == up and _speed(g) == speed for g in gpus)
    who = f"{len(gpus)} GPUs" if len(gpus) > 1 else first.label
    generation = _generation(speed)
    if alike:
        total = sum(first.speeds.values())
        says = (
            f"{who}: {up} links active at {_exact(speed)} GB/s each ({generation}), "
            f"{_exact(total)} GB/s in each direction."
        )
    else:
        parts = [f"{g.label} {_up(g)} at {_exact(_speed(g))} GB/s" for g in gpus[:16]]
        says = f"Active links: {listed(parts, 16)}."
    expected = _expected(first, context)
    inactive = sum(1 for g in gpus for s in g.speeds.values() if not s)
    if alike and expected is not None and up >= expected:
        says += f" That is all {expected} of the board at full speed: healthy."
    elif alike and expected is not None and not inactive:
        says += f" The board has {expected}; the paste shows {up}, none of them inactive."
    elif alike and not inactive:
        says += " None is inactive: healthy as far as the states show."
    elif inactive:
        says += (
            " The inactive ones are the same number on all: no bridge is fitted there, or the "
            "board does not use them."
        )
    if any(g.elided for g in gpus):
        says += " (The links that the paste leaves out are taken to be like those it shows.)"
    return finding(
        "nvlink",
        "active",
        Severity.INFO,
        says,
        "Nothing to do. That the links are up does not prove that the fabric is set up: "
        "nvidia-smi -q shows Fabric State Completed, Status Success on NVSwitch systems.",
        line=first.line,
        data={
            "links": up if alike else None,
            "link_gbs": speed if alike else None,
            "per_direction_gbs": sum(first.speeds.values()) if alike else None,
            "gpu_count": len(gpus),
        },
        entity=first.entity if len(gpus) == 1 else node(first.host),
        sources=(_SOURCE,),
    )


def _up(gpu: LinkGpu) -> int:
    return sum(1 for speed in gpu.speeds.values() if speed)


def _speed(gpu: LinkGpu, *, top: bool = False) -> float:
    speeds = [s for s in gpu.speeds.values() if s]
    if not speeds:
        return 0.0
    return max(speeds) if top else max(set(speeds), key=lambda s: (speeds.count(s), s))


def _expected(gpu: LinkGpu, context: Context) -> int | None:
    model = context.catalogue.model_for(gpu.name or None)
    links = model.attrs.get("nvlink_links") if model else None
    return int(links) if links is not None else None


def _generation(speed: float) -> str:
    found = next((name for low, high, name in _GENERATIONS if low <= speed <= high), None)
    return found or "generation not known from this speed"


def _exact(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")
