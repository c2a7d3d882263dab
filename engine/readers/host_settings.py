"""Reader of host settings that cost GPU speed: printed by a command, or told in a sentence.

NUMA balancing, the processors' frequency governor and idle states, the IOMMU's pass-through, and
access control (ACS) on PCIe ports. Only a setting that is stated with its value counts; advice and
commands that change it do not. Sources:
AMD Instinct system optimization guides (MI200, MI300X); NVIDIA NCCL documentation, ACS; Linux
Documentation/admin-guide/sysctl/kernel.rst and admin-guide/pm/cpufreq.rst.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from engine.model import Finding
from engine.readers.base import Context, Result
from engine.readers.host_settings_words import (
    SLOW_GOVERNORS,
    acs_finding,
    balancing_finding,
    governor_finding,
    idle_state_finding,
    iommu_finding,
    variable_finding,
)

_BALANCING = "numa_balancing"
_IDLE = "idle state"
_PASSTHROUGH = "iommu"
_VARIABLE = "RCCL variable"
# Sentences about a setting are short; of longer lines only the start is looked at.
_PROSE = 2_048
# The value within a few words; "and 0 there" behind it is the other machine's.
_TOLD = re.compile(
    r"numa_balancing\b[\"'`:)]{0,3}\s{0,4}"
    r"(?:=|:|\||-?>|is|gives|says|shows|prints|returns|reads|reports|was|set to|enabled|on|value"
    r"|currently|at|of|at present|\s){0,6}\s{0,4}(?P<value>[012])\b"
)
_ALONE = re.compile(r"^\s{0,8}(?P<value>[012])\s*$")
# Behind a 0: the value of the machine that it is compared with.
_OTHER = re.compile(
    r"^[^0]{0,60}?(?:\b(?:here|there|one|node|host|machine|this|other|slow|bad|ours)\b[^0]{0,24}?"
    r"(?<= )(?P<value>[12])(?= ?(?:$|[,;.)]| (?:here|there|on)\b))"
    r"|[,;] (?:and |but )?(?P<before>[12]) (?:on|here|there|at)\b)"
)
_AUTO = re.compile(
    r"\bNUMA (?:auto(?:matic)?[- ])?balancing(?: ?:)? (?:is |was |still |left |currently |set to "
    r"|turned |=|: ){0,3}(?P<state>on|enabled|off|disabled|[012](?![\w.]))\b",
    re.IGNORECASE,
)
_CHANGES = re.compile(
    r"\becho\b|\bsysctl\s+-w\b|\btee\b"
    r"|\b(?:should|must|set it|please|recommend\w*|try|disable|turn)\b",
    re.IGNORECASE,
)
_GOVERNOR = re.compile(
    r"(?:cpu(?P<cpu>\d{1,5})/cpufreq|cpufreq/policy\d{1,5})/scaling_governor\s{0,4}[:=]\s{0,4}"
    r"(?P<value>[a-z]{3,16})\b"
    r"|The governor \"(?P<told>[a-z]{3,16})\" may decide"
)
_GOVERNOR_FILE = "/scaling_governor"
_GOVERNOR_ALONE = re.compile(r"^\s{0,8}(powersave|ondemand|conservative|schedutil|performance)\s*$")
# In a sentence; a list of those that are available names no setting.
_GOVERNOR_TOLD = re.compile(
    r"\bgovernor\b"
    r"(?:[ =:,\"'`]|is|are|was|says|set to|shows|reads|still|at|on|all|cores|cpus){1,12}"
    r"(?P<value>powersave|ondemand|conservative|schedutil|performance)\b"
    r"|\b(?P<before>powersave|ondemand|conservative|schedutil) (?:cpu ?freq |cpu |frequency )?"
    r"governor\b",
    re.IGNORECASE,
)
_AVAILABLE = re.compile(r"\bavailable\b|\bgovernors\b", re.IGNORECASE)
_IDLE_STATE = re.compile(
    r"\b(?P<state>C[26]|DF C-states?)(?:[ -]states?)? (?:(?:is|are|was|still|left|not) ){0,3}"
    r"(?P<value>enabled|on|active|disabled)\b"
)
# Letters and a number alone name no idle state.
_PROCESSOR = re.compile(
    r"\bcpus?\b|\bcpupower|processor|\bidle|\bc-?states?\b|\bEPYC\b|\bBIOS\b|\bMI[123]\d\d",
    re.IGNORECASE,
)
_NO_PASSTHROUGH = re.compile(
    r"iommu=pt[\"'`]?(?: \w{1,12}){0,3}?"
    r" (?:not set|missing|absent|isn't set|not there|not present)\b"
    r"|\b(?:no|without|lacks|missing) [\"'`]?(?:\w{1,10} ){0,1}iommu=pt\b",
    re.IGNORECASE,
)
# Variables that RCCL asks for at its start, told without its prefix.
_RCCL_VARIABLE = re.compile(
    r"\b(?:missing|no|without) [\"'`]?(?P<name>HSA_FORCE_FINE_GRAIN_PCIE|HSA_NO_SCRATCH_RECLAIM)\b"
    r"|(?P<after>HSA_FORCE_FINE_GRAIN_PCIE|HSA_NO_SCRATCH_RECLAIM)(?:=1)?[\"'`]?"
    r" (?:is |was |are ){0,1}(?:not set|unset|missing|absent)\b",
    re.IGNORECASE,
)
_ACS = re.compile(r"\bACSCtl:\s{0,8}(?P<flags>(?:[A-Za-z]{4,16}[+-]\s{0,4}){1,10})")


@dataclass(slots=True)
class _Stated:
    line: int
    value: str
    count: int = 1


class HostSettingsReader:
    """Reads settings of a machine from pasted commands, files and sentences."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"numa_balancing",
        b"NUMA balancing",
        b"NUMA Balancing",
        b"NUMA auto balancing",
        b"numa balancing",
        b"Numa balancing",
        b"automatic numa",
        b"scaling_governor",
        b'The governor "',
        b"ACSCtl:",
        b"governor",
        b"C2 ",
        b"C6 ",
        b"C-state",
        b"iommu=pt",
        b"HSA_FORCE_FINE_GRAIN_PCIE",
        b"HSA_NO_SCRATCH_RECLAIM",
    )

    def __init__(self, context: Context) -> None:
        del context
        self.open = False
        self._asked: str | None = None
        self._stated: dict[str, _Stated] = {}
        self._ports = 0
        self._redirecting = 0
        self._acs_line = 0

    def feed(self, number: int, text: str) -> bool:
        """Take one line; the answer to a command may stand in the next."""
        asked, self._asked, self.open = self._asked, None, False
        if asked is not None and (alone := _answer(asked, text)) is not None:
            self._state(asked, number, alone)
            self._asked, self.open = (asked, True) if asked == _GOVERNOR_FILE else (None, False)
            return True
        if "ACSCtl:" in text:
            return self._acs(number, text)
        if _BALANCING in text:
            return self._balancing(number, text)
        if auto := _AUTO.search(text):
            if not _CHANGES.search(text):
                on = auto["state"].lower() in ("on", "enabled", "1", "2")
                self._state(_BALANCING, number, "1" if on else "0")
                return True
            return False
        if governor := _GOVERNOR.search(text):
            self._state(_GOVERNOR_FILE, number, governor["value"] or governor["told"])
            return True
        if self._told(number, text[:_PROSE]):
            return True
        if _GOVERNOR_FILE in text and not _CHANGES.search(text):
            self._asked, self.open = _GOVERNOR_FILE, True
        return False

    def finish(self) -> Result:
        """Name the settings that cost speed."""
        findings = list(self._findings())
        result = Result(findings=findings)
        if self._stated or self._ports:
            result.kinds = ["host_settings"]
        result.causes = list(dict.fromkeys(f.cause for f in findings if f.cause))
        return result

    def _findings(self) -> Iterator[Finding]:
        balancing, governor, idle, passthrough, variable = (
            self._stated.get(name)
            for name in (_BALANCING, _GOVERNOR_FILE, _IDLE, _PASSTHROUGH, _VARIABLE)
        )
        if balancing is not None and balancing.value != "0":
            yield balancing_finding(balancing.line, balancing.value)
        if governor is not None and governor.value in SLOW_GOVERNORS:
            yield governor_finding(governor.line, governor.value)
        if idle is not None:
            yield idle_state_finding(idle.line, idle.value)
        if passthrough is not None:
            yield iommu_finding(passthrough.line)
        if variable is not None:
            yield variable_finding(variable.line, variable.value)
        if self._redirecting:
            yield acs_finding(self._acs_line, self._ports, self._redirecting)

    def _told(self, number: int, text: str) -> bool:
        """Take settings that a sentence states; of RCCL's own warnings its reader tells."""
        if "NCCL " in text or _CHANGES.search(text):
            return False
        taken = False
        governor = None if _AVAILABLE.search(text) else _GOVERNOR_TOLD.search(text)
        if governor is not None:
            self._state(_GOVERNOR_FILE, number, (governor["value"] or governor["before"]).lower())
            taken = True
        idle = _IDLE_STATE.search(text)
        enabled = idle is not None and idle["value"] != "disabled" and " not " not in idle[0]
        if idle is not None and enabled and _PROCESSOR.search(text):
            self._state(_IDLE, number, idle["state"])
            taken = True
        if _NO_PASSTHROUGH.search(text):
            self._state(_PASSTHROUGH, number, "off")
            taken = True
        variable = _RCCL_VARIABLE.search(text)
        if variable is not None:
            self._state(_VARIABLE, number, (variable["name"] or variable["after"]).upper())
            taken = True
        return taken

    def _balancing(self, number: int, text: str) -> bool:
        if _CHANGES.search(text):
            return False
        told = []
        for found in _TOLD.finditer(text[:_PROSE]):
            told.append(found["value"])
            other = _OTHER.match(text[found.end() : _PROSE]) if found["value"] == "0" else None
            if other is not None:
                told.append(other["value"] or other["before"])
        for value in told:
            self._state(_BALANCING, number, value)
        if told:
            return True
        # `cat /proc/sys/kernel/numa_balancing`: the answer is the next line.
        self._asked, self.open = _BALANCING, True
        return False

    def _acs(self, number: int, text: str) -> bool:
        found = _ACS.search(text)
        if found is None:
            return False
        self._ports += 1
        if "ReqRedir+" in found["flags"] or "CmpltRedir+" in found["flags"]:
            self._redirecting += 1
            self._acs_line = self._acs_line or number
        return True

    def _state(self, name: str, number: int, value: str) -> None:
        stated = self._stated.get(name)
        if stated is None:
            self._stated[name] = _Stated(number, value)
        elif stated.value == value:
            stated.count += 1
        elif name == _BALANCING and stated.value == "0":
            # Machines are compared: the one where it is on is the one to mend.
            self._stated[name] = _Stated(number, value)


def _answer(asked: str, text: str) -> str | None:
    found = (_ALONE if asked == _BALANCING else _GOVERNOR_ALONE).match(text)
    return found[1] if found else None
