"""Finds what is wrong with one GPU in what a run of ``nvidia-smi`` printed, beside its siblings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from engine.catalogue.types import Catalogue, GpuModel
from engine.readers.smi.heat import heat_issues
from engine.readers.smi.issue import Issue, issue, yes
from engine.readers.smi.memory import memory_issues
from engine.readers.smi.state import GpuState
from engine.units import number

# Share of the power limit from which a GPU draws what it is allowed to.
_AT_LIMIT: Final = 0.9
# Utilisation (percent) from which the PCIe link should have left its power-saving speed.
_WORKING: Final = 20.0
# Boards for desktops, workstations and small slots, which are often wired to fewer lanes.
_ANY_SLOT: Final = re.compile(r"\b(?:GeForce|RTX|Quadro|TITAN|T4|P4|L4|A2)\b")
# PCIe replays since reset that are worth a word; a few belong to every link.
_REPLAYS_MANY: Final = 1_000
_RECOVERY: Final = {
    "reset": "recovery_reset",
    "gpu reset": "recovery_reset",
    "reboot": "recovery_reboot",
    "node reboot": "recovery_reboot",
    "drain p2p": "recovery_drain",
    "drain and reset": "recovery_drain",
}
_GOOD: Final = {
    "fabric_route_recovery": ("false", "no"),
    "fabric_route_unhealthy": ("false", "no"),
    "fabric_access_timeout": ("false", "no"),
    "fabric_configuration": ("none", "false", "no", "not supported"),
    "fabric_summary": ("healthy", "not supported"),
}
_SPOKEN: Final = {
    "fabric_route_recovery": "route recovery in progress",
    "fabric_route_unhealthy": "route unhealthy",
    "fabric_access_timeout": "recovery from an access time-out",
    "fabric_configuration": "incorrect configuration",
    "fabric_summary": "health",
}


def issues(gpu: GpuState, siblings: Sequence[GpuState], catalogue: Catalogue) -> Iterator[Issue]:
    """Yield what is wrong with a GPU; ``siblings`` are all GPUs of the run, itself included."""
    lost = gpu.lost
    if lost is not None:
        yield _lost(gpu, lost)
        return
    yield from _unreadable(gpu)
    yield from _recovery(gpu)
    yield from memory_issues(gpu)
    yield from heat_issues(gpu, siblings, catalogue)
    yield from _pcie(gpu, siblings, catalogue)
    yield from _power(gpu)
    yield from _fabric(gpu)
    yield from _modes(gpu)


def _lost(gpu: GpuState, word: str) -> Issue:
    name = {"GPU requires reset": "requires_reset", "GPU is lost": "lost"}.get(word, "unreadable")
    fields = sum(1 for why in gpu.unreadable.values() if why == word)
    several = f" in {fields} fields" if fields > 1 else ""
    return issue(name, gpu, f"shows '{word}'{several}", error=word)


def _unreadable(gpu: GpuState) -> Iterator[Issue]:
    why = gpu.unreadable
    hidden = sorted(n for n, w in why.items() if w == "Insufficient Permissions")
    if hidden:
        yield issue("permissions", gpu, f"{len(hidden)} field(s) show 'Insufficient Permissions'")
    for name, word in sorted(why.items()):
        if word not in ("ERR!", "Unknown Error", "Timeout"):
            continue
        if name == "fan_percent" and word == "ERR!":
            yield issue("fan_unreadable", gpu, f"the fan column shows '{word}'", error=word)
        else:
            what = name.rpartition("_")[0].replace("_", " ") or name
            yield issue("sensor_unreadable", gpu, f"'{word}' for {what}", error=word)


def _recovery(gpu: GpuState) -> Iterator[Issue]:
    action = gpu.words.get("recovery_action", "")
    name = _RECOVERY.get(action.lower())
    if name is not None:
        yield issue(name, gpu, f"GPU Recovery Action: {action}", recovery_action=action)
    elif action and action.lower() != "none":
        yield issue("recovery_other", gpu, f"GPU Recovery Action: {action}", recovery_action=action)
    if name is None and yes(gpu, "reset_required"):
        yield issue("recovery_reset", gpu, "Reset Required: Yes", reset_required=True)
    elif name is None and yes(gpu, "drain_and_reset"):
        yield issue("drain_and_reset", gpu, "Drain and Reset Recommended: Yes")


def narrow(gpu: GpuState) -> bool:
    """Return whether the PCIe link has fewer lanes than the board and slot can use."""
    width, most = gpu.numbers.get("pcie_width"), gpu.numbers.get("pcie_width_max")
    return width is not None and most is not None and 0 < width < most


def narrow_by_design(gpu: GpuState, siblings: Sequence[GpuState], catalogue: Catalogue) -> bool:
    """Return whether a narrow link is most likely how the platform is built.

    In virtual machines the link that the GPU reports is not the one of the slot; where all GPUs of
    a run are alike the slots are; on desktop and laptop boards narrow wiring is common.
    """
    if "pass" in gpu.words.get("virtualization_mode", "").lower():
        return not any(_same(gpu, other) and not narrow(other) for other in siblings)
    alike = [other for other in siblings if _same(gpu, other) and "pcie_width" in other.numbers]
    if len(alike) > 1:
        return all(narrow(other) for other in alike)
    if gpu.name is None:
        return False
    return bool(_ANY_SLOT.search(gpu.name)) or _model(gpu, catalogue) is None


def _same(gpu: GpuState, other: GpuState) -> bool:
    return gpu.name == other.name and gpu.host == other.host


def _model(gpu: GpuState, catalogue: Catalogue) -> GpuModel | None:
    return catalogue.model_for(gpu.name)


def _pcie(gpu: GpuState, siblings: Sequence[GpuState], catalogue: Catalogue) -> Iterator[Issue]:
    n = gpu.numbers
    gen, most = n.get("pcie_gen"), n.get("pcie_gen_max")
    replays, rollovers = n.get("pcie_replay_count", 0), n.get("pcie_rollover_count", 0)
    if rollovers:
        detail = f"{number(rollovers)} rollover(s) of the replay number, {number(replays)} replays"
        yield issue("pcie_rollovers", gpu, detail, pcie_rollovers=int(rollovers))
    elif replays >= _REPLAYS_MANY:
        yield issue("pcie_replays", gpu, f"{number(replays)} PCIe replays since reset")
    if narrow(gpu):
        width, widest = number(n["pcie_width"]), number(n["pcie_width_max"])
        by_design = narrow_by_design(gpu, siblings, catalogue)
        yield issue(
            "pcie_narrow_by_design" if by_design else "pcie_narrow",
            gpu,
            f"PCIe x{width} of x{widest}",
            pcie_width=int(n["pcie_width"]),
            pcie_width_max=int(n["pcie_width_max"]),
        )
    else:
        yield from _beside(gpu, siblings)
    if gen is None or most is None or not 0 < gen < most:
        return
    detail = f"PCIe generation {number(gen)} of {number(most)}"
    util = n.get("gpu_util_percent")
    if util is not None and util >= _WORKING:
        yield issue(
            "pcie_slow",
            gpu,
            f"{detail} at {number(util)} % utilisation",
            pcie_gen=int(gen),
            pcie_gen_max=int(most),
        )
    elif gpu.busy is not True:
        name = "pcie_idle" if gpu.busy is False else "pcie_slow_or_idle"
        yield issue(name, gpu, detail, pcie_gen=int(gen), pcie_gen_max=int(most))


def _beside(gpu: GpuState, siblings: Sequence[GpuState]) -> Iterator[Issue]:
    """Compare links with those of equal boards, where nothing says what board and slot can do."""
    n, working = gpu.numbers, gpu.numbers.get("gpu_util_percent", 0) >= _WORKING
    width, gen = (
        n.get(name) if f"{name}_max" not in n else None for name in ("pcie_width", "pcie_gen")
    )
    same = [other for other in siblings if _same(gpu, other)] if width or gen else []
    if width:
        widths = [other.numbers["pcie_width"] for other in same if "pcie_width" in other.numbers]
        wider = [w for w in widths if w > width]
        sure = working and 2 * len(wider) > len(widths) and gpu.name is not None
        sure = sure and not _ANY_SLOT.search(gpu.name or "")
        if wider:
            yield issue(
                "pcie_narrower" if sure else "pcie_narrower_maybe",
                gpu,
                f"PCIe x{number(width)} where others have x{number(max(wider))}",
                pcie_width=int(width),
                sibling_pcie_width=int(max(wider)),
            )
    if gen and working:
        at_work = [g for g in same if g.numbers.get("gpu_util_percent", 0) >= _WORKING]
        best = max(g.numbers.get("pcie_gen", 0) for g in at_work)
        if best > gen:
            yield issue(
                "pcie_slower",
                gpu,
                f"PCIe generation {number(gen)} at {number(n['gpu_util_percent'])} % utilisation "
                f"where others have {number(best)}",
                pcie_gen=int(gen),
                sibling_pcie_gen=int(best),
            )


def _power(gpu: GpuState) -> Iterator[Issue]:
    limit, usual = gpu.limit_w, gpu.numbers.get("power_limit_default_w")
    if limit is None or usual is None or limit >= usual - 1:
        return
    if gpu.flags.get("sw_power_cap"):
        return  # said with the clock event mask
    draw = gpu.numbers.get("power_w")
    held = draw is not None and draw >= _AT_LIMIT * limit
    at = f", draw {number(draw)} W" if draw is not None else ""
    yield issue(
        "power_limit_low" if held else "power_limit_set",
        gpu,
        f"power limit {number(limit)} W of {number(usual)} W by default{at}",
        power_limit_w=limit,
        power_limit_default_w=usual,
    )


def _fabric(gpu: GpuState) -> Iterator[Issue]:
    state, status = gpu.words.get("fabric_state"), gpu.words.get("fabric_status")
    if state is not None and state.lower() in ("in progress", "not started"):
        yield issue("fabric_waiting", gpu, f"fabric state {state}", fabric_state=state)
    elif state is not None and state.lower() == "completed" and status != "Success":
        status = status or gpu.unreadable.get("fabric_status")
        if status is not None:
            yield issue(
                "fabric_failed",
                gpu,
                f"fabric state {state}, status {status}",
                fabric_state=state,
                fabric_status=status,
            )
    bad = [
        f"{_SPOKEN[name]}: {gpu.words[name]}"
        for name, good in _GOOD.items()
        if name in gpu.words and gpu.words[name].lower() not in good
    ]
    degraded = gpu.words.get("fabric_bandwidth", "").lower() in ("degraded", "true")
    only_narrow = all("limited capacity" in what.lower() for what in bad)
    if degraded and only_narrow:
        yield issue("fabric_narrow", gpu, "fabric bandwidth degraded", fabric_bandwidth="Degraded")
    elif bad:
        bad += ["bandwidth: degraded"] if degraded else []
        yield issue("fabric_unhealthy", gpu, f"fabric {', '.join(bad)}", fabric_health=bad)


def _modes(gpu: GpuState) -> Iterator[Issue]:
    licence = gpu.words.get("vgpu_license", "")
    guest = gpu.words.get("virtualization_mode", "vgpu").lower() == "vgpu"
    if "(restricted)" in licence.lower():
        yield issue("vgpu_restricted", gpu, f"License Status {licence}", vgpu_license=licence)
    elif licence.lower().startswith("unlicensed") and guest:
        yield issue("vgpu_unlicensed", gpu, f"License Status {licence}", vgpu_license=licence)
    if gpu.words.get("compute_mode", "").lower().startswith("prohibited"):
        yield issue("compute_prohibited", gpu, "compute mode Prohibited")
    if gpu.words.get("mig_devices") == "none":
        yield issue("mig_empty", gpu, "MIG is on, without a single MIG device")
    for name, what in (("ecc_mode", "ECC"), ("mig_mode", "MIG")):
        now, then = gpu.words.get(name), gpu.words.get(f"{name}_pending")
        if now is not None and then is not None and now != then:
            yield issue("mode_pending", gpu, f"{what} {now}, pending {then}")
