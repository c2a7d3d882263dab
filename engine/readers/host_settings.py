"""Reader of host settings that cost GPU speed: printed by a command, or told in a sentence.

NUMA balancing, the processors' frequency governor, and access control (ACS) on PCIe ports. Only a
setting that is stated with its value counts; advice and commands that change it do not. Sources:
AMD Instinct system optimization guides (MI200, MI300X); NVIDIA NCCL documentation, ACS; Linux
Documentation/admin-guide/sysctl/kernel.rst and admin-guide/pm/cpufreq.rst.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from engine.model import Entity, Finding, Kind, Severity
from engine.readers.base import Context, Result

_BALANCING = "numa_balancing"
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
    r"|turned ){0,3}(?P<state>on|enabled|off|disabled)\b",
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
_SLOW_GOVERNORS = frozenset({"powersave", "ondemand", "conservative"})
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
        b"scaling_governor",
        b'The governor "',
        b"ACSCtl:",
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
                on = auto["state"].lower() in ("on", "enabled")
                self._state(_BALANCING, number, "1" if on else "0")
                return True
            return False
        if governor := _GOVERNOR.search(text):
            self._state(_GOVERNOR_FILE, number, governor["value"] or governor["told"])
            return True
        if _GOVERNOR_FILE in text and not _CHANGES.search(text):
            self._asked, self.open = _GOVERNOR_FILE, True
        return False

    def finish(self) -> Result:
        """Name the settings that cost speed."""
        findings = [f for f in (self._of_balancing(), self._of_governor(), self._of_acs()) if f]
        result = Result(findings=findings)
        if self._stated or self._ports:
            result.kinds = ["host_settings"]
        result.causes = list(dict.fromkeys(f.cause for f in findings if f.cause))
        return result

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

    def _of_balancing(self) -> Finding | None:
        stated = self._stated.get(_BALANCING)
        if stated is None or stated.value == "0":
            return None
        return _finding(
            "numa_balancing",
            Severity.MEDIUM,
            "Automatic NUMA balancing is on (kernel.numa_balancing = "
            f"{stated.value}): the kernel unmaps and moves pages of running programs, which stalls "
            "processes that feed GPUs. AMD asks for it to be off on MI200 and MI300X nodes.",
            "Disable it and measure again: sysctl -w kernel.numa_balancing=0; to keep it, put "
            "kernel.numa_balancing=0 into /etc/sysctl.d/.",
            stated.line,
            {"numa_balancing": int(stated.value)},
            "AMD Instinct MI300X system optimization, NUMA balancing",
        )

    def _of_governor(self) -> Finding | None:
        stated = self._stated.get(_GOVERNOR_FILE)
        if stated is None or stated.value not in _SLOW_GOVERNORS:
            return None
        return _finding(
            "cpu_governor",
            Severity.LOW,
            f"The processors' frequency governor is {stated.value}: clocks fall between bursts of "
            "work and come up late, which delays kernel launches and input pipelines.",
            "Set it and measure again: cpupower frequency-set -g performance (with intel_pstate or "
            "amd_pstate in active mode powersave is the normal name; there compare the real clocks "
            "under load: turbostat).",
            stated.line,
            {"governor": stated.value},
            "Linux Documentation/admin-guide/pm/cpufreq.rst; AMD Instinct system optimization",
        )

    def _of_acs(self) -> Finding | None:
        if not self._redirecting:
            return None
        return _finding(
            "acs",
            Severity.MEDIUM,
            f"Access control (ACS) redirects requests on {self._redirecting} of {self._ports} PCIe "
            "port(s): peer traffic between GPUs, or GPU and NIC, below one switch goes up to the "
            "root complex and back.",
            "On a machine without guests that own devices, turn it off: in the BIOS (IOMMU or "
            "ACS), or for each port setpci -s ADDRESS ECAP_ACS+0x6.w=0000, again after every boot. "
            "Then measure peer bandwidth.",
            self._acs_line,
            {"ports": self._ports, "redirecting": self._redirecting},
            "NVIDIA NCCL documentation, Troubleshooting: PCI Access Control Services",
        )


def _answer(asked: str, text: str) -> str | None:
    found = (_ALONE if asked == _BALANCING else _GOVERNOR_ALONE).match(text)
    return found[1] if found else None


def _finding(
    id_: str,
    severity: Severity,
    says: str,
    action: str,
    line: int,
    data: dict[str, object],
    source: str,
) -> Finding:
    return Finding(
        kind="host_settings",
        id=id_,
        severity=severity,
        says=says,
        action=action,
        entity=Entity(Kind.NODE, "this node"),
        line=line,
        cause="host_misconfigured",
        data=dict(data),
        sources=(source,),
    )
