"""Reader of ``nvidia-smi -q``: clock event reasons with the readings around them.

Whole listings and excerpts; driver branches call the section "Clocks Throttle Reasons" or "Clocks
Event Reasons" and, newer ones, add a section of counters in microseconds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import ClassVar

from engine.model import Entity, Kind
from engine.readers.base import Context, Result
from engine.readers.throttle import Around, throttle_finding

_GPU = re.compile(r"^\s{0,40}GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$")
# The listing pads its keys, so a space stands before the colon; prose and logs have none there.
_PAIR = re.compile(r"^\s*([A-Za-z][^:]{0,60}?)\s+:(?: (.*\S))?\s*$")
_HEADING = re.compile(r"^(\s*)([A-Za-z][\w ./()-]{0,60}?)\s*$")
_NUMBER = re.compile(r"^(-?\d{1,18}(?:\.\d{1,6})?) ?(C|W|MHz|us|%)$")

_FLAGS = {
    "idle": "gpu_idle",
    "applications clocks setting": "clocks_setting",
    "sw power cap": "sw_power_cap",
    "hw slowdown": "hw_slowdown",
    "hw thermal slowdown": "hw_thermal",
    "hw power brake slowdown": "hw_power_brake",
    "sync boost": "sync_boost",
    "sw thermal slowdown": "sw_thermal",
    "display clock setting": "display_clocks",
}
_COUNTERS = {
    "sw power capping": "sw_power_cap",
    "sw power cap": "sw_power_cap",
    "sync boost": "sync_boost",
    "sw thermal slowdown": "sw_thermal",
    "hw thermal slowdown": "hw_thermal",
    "hw power braking": "hw_power_brake",
    "hw power brake slowdown": "hw_power_brake",
}
# Line, and the section it must stand in ("" is any): attribute of `Around`.
_READINGS = {
    ("gpu current temp", ""): "gpu_temp_c",
    ("gpu t.limit temp", ""): "margin_c",
    ("gpu max operating temp", ""): "max_op_temp_c",
    ("memory current temp", ""): "memory_temp_c",
    ("memory max operating temp", ""): "memory_max_op_temp_c",
    ("power draw", ""): "power_w",
    ("average power draw", ""): "power_w",
    ("instantaneous power draw", ""): "power_w",
    ("current power limit", ""): "power_limit_w",
    ("enforced power limit", ""): "power_limit_w",
    ("power limit", ""): "power_limit_w",
    ("default power limit", ""): "power_limit_default_w",
    ("sm", "clocks"): "sm_clock_mhz",
    ("sm", "max clocks"): "max_sm_clock_mhz",
}
_SECTIONS = frozenset({"clocks event reasons", "clocks throttle reasons", "clocks"})


@dataclass(slots=True)
class _Gpu:
    """What one GPU's part of a listing holds."""

    pci: str | None = None
    line: int = 0
    name: str | None = None
    uuid: str | None = None
    flags: dict[str, bool] = field(default_factory=dict)
    around: Around = field(default_factory=Around)


class SmiQueryReader:
    """Reads the ``key : value`` lines of ``nvidia-smi -q``."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"NVSMI LOG",
        b"Clocks Event Reasons",
        b"Clocks Throttle Reasons",
        b"GPU Current Temp",
        b"Performance State",
        b"Product Name",
        b"HW Slowdown",
    )
    # A listing that stops making sense for so many lines has ended.
    PATIENCE = 3
    MAX_GPUS = 1_024

    def __init__(self, context: Context) -> None:
        self.open = False
        self._catalogue = context.catalogue
        self._gpus: list[_Gpu] = [_Gpu()]
        self._section = ""
        self._strange = 0

    def feed(self, number: int, text: str) -> bool:
        """Take one line of a listing."""
        known = self._take(number, text.expandtabs())
        self._strange = 0 if known else self._strange + 1
        if known:
            self.open = True
        elif self._strange >= self.PATIENCE:
            self.open = False
        return known

    def finish(self) -> Result:
        """Say what the reasons of each GPU show."""
        result = Result()
        for gpu in self._gpus:
            if not gpu.flags and not gpu.around.counters_us:
                continue
            bits = self._catalogue.entries["throttle_reasons"]
            mask = sum(int(bits[reason]["bit"]) for reason, on in gpu.flags.items() if on)
            finding = throttle_finding(
                mask,
                gpu.around,
                self._catalogue,
                entity=_entity(gpu),
                subject=f"GPU {gpu.pci}" if gpu.pci else "the GPU",
                line=gpu.line or None,
            )
            result.findings.append(finding)
            if finding.cause:
                result.causes.append(finding.cause)
        if result.findings:
            result.kinds = ["nvidia_smi_q", "throttle"]
            result.findings.sort(key=lambda f: list(type(f.severity)).index(f.severity))
            result.causes = [f.cause for f in result.findings if f.cause]
        return result

    def _take(self, number: int, text: str) -> bool:
        gpu = _GPU.match(text)
        if gpu:
            self._start(gpu[1])
            return True
        pair = _PAIR.match(text)
        if pair:
            self._pair(number, pair[1].lower(), pair[2] or "")
            return True
        if "NVSMI LOG" in text:
            return True
        heading = _HEADING.match(text)
        if heading and ((self.open and heading[1]) or heading[2].lower() in _SECTIONS):
            self._section = heading[2].lower()
            return True
        return False

    def _start(self, pci: str) -> None:
        pci = pci.lower()
        if len(self._gpus) < self.MAX_GPUS:
            self._gpus.append(_Gpu(pci=pci))
        self._section = ""

    def _pair(self, number: int, key: str, value: str) -> None:
        gpu = self._gpus[-1]
        if key in _FLAGS and value in ("Active", "Not Active"):
            gpu.flags[_FLAGS[key]] = value == "Active"
            gpu.line = gpu.line or number
            return
        if key == "product name":
            gpu.name = value
        elif key == "gpu uuid":
            gpu.uuid = value
        elif key == "performance state":
            gpu.around.pstate = value[:8]
        measured = _NUMBER.match(value)
        if measured is None:
            return
        if measured[2] == "us" and key in _COUNTERS:
            gpu.around.counters_us[_COUNTERS[key]] = int(float(measured[1]))
            gpu.line = gpu.line or number
            return
        section = self._section if self._section in ("clocks", "max clocks") else ""
        excerpt = self._section in _SECTIONS or not self._section
        name = _READINGS.get((key, section)) or _READINGS.get((key, ""))
        if name is None and key == "sm" and excerpt:
            name = "sm_clock_mhz"
        if name is not None and getattr(gpu.around, name) is None:
            setattr(gpu.around, name, float(measured[1]))


def _entity(gpu: _Gpu) -> Entity | None:
    if gpu.pci is None and gpu.uuid is None:
        return None
    return Entity(
        Kind.GPU,
        f"GPU {gpu.pci}" if gpu.pci else str(gpu.uuid),
        pci=gpu.pci,
        uuid=gpu.uuid,
        model=gpu.name,
    )
