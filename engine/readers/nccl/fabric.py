"""NVLink SHARP (NVLS) and NVLink between nodes (MNNVL), as the set-up lines show them.

``NVLS multicast support is not available on dev 3`` is normal on GPUs without NVSwitch of the third
generation. ``MNNVL … healthMask 0xaa`` holds two bits for each trouble of the fabric, 1 for
yes and 2 for no (nvml.h, NVML_GPU_FABRIC_HEALTH_MASK): 0xaa says that there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.nccl.lines import listed
from engine.readers.nccl.remarks import Remarks
from engine.readers.nccl.told import ORDER, Told

_NVLS = re.compile(r"^NVLS multicast support is (?P<no>not )?available on dev (?P<device>\d{1,4})")
_MNNVL = re.compile(
    r"^MNNVL busId (?P<bus>0x[0-9a-fA-F]{1,16}) fabric UUID (?P<uuid>[0-9a-fA-F.]{1,40})"
    r" cliqueId (?P<clique>0x[0-9a-fA-F]{1,8}) state (?P<state>\d{1,3})"
    r" healthMask (?P<mask>0x[0-9a-fA-F]{1,8})"
)
_STATES: Final = ("not supported", "not started", "in progress", "completed")
_COMPLETED: Final = 3
# Two bits each; 1 is yes. nvml.h, NVML_GPU_FABRIC_HEALTH_MASK_SHIFT_*.
_TROUBLES: Final = {
    0: "bandwidth degraded",
    2: "route recovery in progress",
    4: "route unhealthy",
    6: "access time-out recovery",
}
# Four bits from bit 8: 1 is none.
_CONFIGURATION: Final = {
    2: "incorrect system GUID",
    3: "incorrect chassis serial number",
    4: "no partition",
    5: "insufficient NVLinks",
    6: "incompatible GPU firmware",
    7: "invalid location",
    8: "invalid GPU state",
}
_YES: Final = 1
_MOST: Final = 4_096
_NVML: Final = "NVIDIA NVML, nvml.h (nvmlGpuFabricInfo_v2_t.healthMask)"


@dataclass(frozen=True, slots=True)
class Domain:
    """The NVLink domain of one GPU."""

    line: int
    host: str | None
    state: int
    mask: int

    @property
    def troubles(self) -> list[str]:
        """What the mask calls a trouble, in words."""
        found = [word for shift, word in _TROUBLES.items() if self.mask >> shift & 3 == _YES]
        configuration = self.mask >> 8 & 15
        return found + ([_CONFIGURATION[configuration]] if configuration in _CONFIGURATION else [])


class Fabric:
    """What a log says of NVLink SHARP and of NVLink between nodes, bounded."""

    def __init__(self) -> None:
        self._nvls: dict[tuple[str | None, int], tuple[bool, int]] = {}
        self._domains: dict[tuple[str | None, str], Domain] = {}

    def info(self, host: str | None, text: str, number: int) -> bool:
        """Take a set-up line; return whether it is about the NVLink fabric."""
        found = _NVLS.match(text)
        if found is not None:
            if len(self._nvls) < _MOST:
                there = (not found["no"], number)
                self._nvls.setdefault((host, int(found["device"])), there)
            return True
        found = _MNNVL.match(text)
        if found is not None and len(self._domains) < _MOST:
            self._domains.setdefault(
                (host, found["bus"]),
                Domain(number, host, int(found["state"]), int(found["mask"], 16)),
            )
        return found is not None or text.startswith("MNNVL ")

    def tell(self, remarks: Remarks) -> Iterator[Told]:
        """Yield what the fabric lacks."""
        yield from self._tell_nvls(remarks)
        yield from self._tell_domains(remarks)

    def _tell_nvls(self, remarks: Remarks) -> Iterator[Told]:
        without = {k: n for k, (there, n) in self._nvls.items() if not there}
        if not without:
            return
        some = sorted({h or "" for h, _ in without} & {h or "" for (h, _), (t, _) in
                      self._nvls.items() if t})  # fmt: skip
        hosts = sorted({h for h, _ in without if h})
        devices = {d for _, d in without}
        where = f"CUDA device{'s' if len(devices) > 1 else ''} {listed(devices)}"
        where += f" of {', '.join(hosts[:4])}" if hosts else ""
        expected = remarks.nvls_expected or bool(some)
        if expected:
            says = (
                f"NVLink SHARP (NVLS) multicast is not available on {where}"
                + (", but on other GPUs of the same host it is." if some else
                   ", though GPUs of this kind have it with NVSwitch.")
                + " NCCL runs without it: by rings 8 H100 reach 360-370 GB/s bus bandwidth, with it"
                " 460-480."
            )  # fmt: skip
            action = (
                "systemctl status nvidia-fabricmanager; nvidia-smi -q | grep -A4 Fabric (State:"
                " Completed, Status: Success); MIG and virtual machines without the whole NVSwitch"
                " fabric have none. NCCL's line is at level INFO and no error by itself."
            )
        else:
            says = (
                f"NVLink SHARP (NVLS) multicast is not available on {where}. This is"
                " informational: GPUs before Hopper and systems without NVSwitch have none, and"
                " NCCL uses rings and trees."
            )
            action = (
                "No action. Only on SXM boards from H100 on it is worth a look: nvidia-smi -q |"
                " grep -A4 Fabric must say Completed."
            )
        number = min(without.values())
        yield Told(
            ORDER["setup"] if expected else ORDER["note"],
            number,
            Finding(
                kind="nccl",
                id="nvls_absent",
                severity=Severity.MEDIUM if expected else Severity.INFO,
                says=says,
                action=action,
                entity=_node(hosts),
                line=number,
                cause="nvls_unavailable" if expected else None,
                data={"nvls": False, "devices": sorted(devices)[:1_024]},
                sources=("NVIDIA/nccl v2.30.7 src/transport/nvls.cc",),
            ),
        )

    def _tell_domains(self, remarks: Remarks) -> Iterator[Told]:
        sick = {k: d for k, d in self._domains.items() if d.troubles}
        starting = {k: d for k, d in self._domains.items() if d.state < _COMPLETED}
        if sick:
            yield self._sick(sick)
        elif starting:
            yield self._starting(starting)
        elif self._domains and remarks.crash:
            yield self._suspect()
        elif self._domains:
            yield self._sound()

    def _sick(self, sick: dict[tuple[str | None, str], Domain]) -> Told:
        (_, bus), first = next(iter(sick.items()))
        troubles = list(dict.fromkeys(t for d in sick.values() for t in d.troubles))
        hosts = sorted({d.host for d in sick.values() if d.host})
        says = (
            f"The NVLink fabric between nodes (MNNVL) is degraded: health mask {first.mask:#x} of"
            f" GPU {bus} says {', '.join(troubles)}."
        )
        says += f" {len(sick)} GPUs say so." if len(sick) > 1 else ""
        return self._told(
            "mnnvl_degraded", Severity.HIGH, says,
            "nvidia-smi -q | grep -A12 Fabric on that host, nvidia-smi nvlink -s and SXid lines;"
            " the fabric manager (NMX-C) names the failing trunk link. NCCL_MNNVL_ENABLE=0 goes"
            " over the"
            " network until it is repaired.",
            first, hosts, "nvlink_degraded", {"troubles": troubles},
        )  # fmt: skip

    def _starting(self, starting: dict[tuple[str | None, str], Domain]) -> Told:
        (_, bus), first = next(iter(starting.items()))
        hosts = sorted({d.host for d in starting.values() if d.host})
        return self._told(
            "mnnvl_not_ready", Severity.HIGH if first.state else Severity.LOW,
            f"GPU {bus} has not joined the NVLink fabric between nodes (MNNVL state {first.state},"
            f" {_STATES[first.state]}): it cannot use NVLink to other nodes.",
            "nvidia-smi -q | grep -A12 Fabric (State: Completed); the fabric manager and, on"
            " Blackwell,"
            " nvlsm and nvidia-imex must run. NCCL_MNNVL_ENABLE=0 goes over the network.",
            first, hosts, "nvswitch_fault" if first.state else None, {},
        )  # fmt: skip

    def _sound(self) -> Told:
        first = next(iter(self._domains.values()))
        gpus = len(self._domains)
        return self._told(
            "mnnvl_ready", Severity.INFO,
            f"{gpus} GPU{'s have' if gpus > 1 else ' has'} joined the NVLink fabric between nodes"
            f" (MNNVL state {first.state}, {_STATES[_COMPLETED]}); the health mask {first.mask:#x}"
            " names no trouble.",
            "Nothing by itself.", first,
            sorted({d.host for d in self._domains.values() if d.host}), None, {},
        )  # fmt: skip

    def _suspect(self) -> Told:
        """A crash with a mask that names no trouble: NVIDIA/nccl#2186 had it, partly degraded."""
        first = next(iter(self._domains.values()))
        hosts = sorted({d.host for d in self._domains.values() if d.host})
        says = (
            "The job crashes while it uses NVLink between nodes (MNNVL). By nvml.h the fabric's"
            " health"
            f" mask {first.mask:#x} names no trouble (two bits each: 1 yes, 2 no), but the same"
            " crash"
            " is known from an NVLink domain that was partially degraded, so the mask alone does"
            " not"
            " clear the fabric."
        )
        return self._told(
            "mnnvl_suspect", Severity.MEDIUM, says,
            "Set NCCL_MNNVL_ENABLE=0: if the job then runs, the NVLink domain or NCCL's use of it"
            " is at"
            " fault. nvidia-smi -q | grep -A12 Fabric and nvidia-smi nvlink -s on all trays;"
            " report it"
            " to NVIDIA with the NCCL version and the full log.",
            first, hosts, "nvlink_degraded", {},
        )  # fmt: skip

    @staticmethod
    def _told(
        id_: str,
        severity: Severity,
        says: str,
        action: str,
        first: Domain,
        hosts: list[str],
        cause: str | None,
        data: dict[str, Any],
    ) -> Told:
        return Told(
            ORDER["root"] if cause else ORDER["note"],
            first.line,
            Finding(
                kind="nccl",
                id=id_,
                severity=severity,
                says=says,
                action=action,
                entity=_node(hosts),
                line=first.line,
                cause=cause,
                data={"health_mask": first.mask, "fabric_state": first.state, **data},
                sources=("NVIDIA/nccl v2.30.7 src/mnnvl.cc", _NVML),
            ),
        )


def _node(hosts: list[str]) -> Entity | None:
    return Entity(Kind.NODE, hosts[0], host=hosts[0]) if len(hosts) == 1 else None
