"""What ``dcgmi`` prints in sentences: violated policies, and why a command could not be run.

``dcgmi policy --reg`` listens and prints a sentence and a value for each violation; the lines do
not name the GPU. Sources: NVIDIA/DCGM dcgmi/Policy.cpp, Command.cpp, DcgmiProfile.cpp 2.1 to 4.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Context, Result
from engine.readers.facts import Facts
from engine.readers.listing import finding, result_of
from engine.readers.quantities import plural

_SOURCE: Final = "NVIDIA/DCGM dcgmi/Policy.cpp 4.6.0"
_VIOLATED: Final = re.compile(
    r"^\s{0,8}(?:A |An |The )?(?P<what>double-bit ECC error|PCIe (?:replay event|error)"
    r"|maximum number of retired pages|maximum thermal limit|maximum power limit"
    r"|NVLink Counter (?P<field>\d{1,5})|NVLink error|unknown error) has violated policy manager "
    r"values"
)
_XID: Final = re.compile(r"^\s{0,8}XID error (?P<xid>\d{1,4}) detected\.")
_VALUE: Final = re.compile(
    r"^\s{0,8}(?P<what>DBE error count|PCIe replay count|SBE page retirement count"
    r"|DBE page retirement count|Temperature|Power|NVLink Counter value): (?P<value>\d{1,18})\s*$"
)
_STAMP: Final = re.compile(r"^\s{0,8}Timestamp: .{6,48}$")
_NAMES: Final = {
    "DBE error count": "dbe",
    "PCIe replay count": "pcie_replays",
    "SBE page retirement count": "sbe_retired_pages",
    "DBE page retirement count": "dbe_retired_pages",
    "Temperature": "gpu_temp_c",
    "Power": "power_w",
    "NVLink Counter value": "nvlink_errors",
}
# Start of the sentence: id, severity, cause, what it means, what to do.
_POLICIES: Final = (
    (
        "double-bit",
        "dbe",
        Severity.CRITICAL,
        "ecc_uncorrectable",
        "an uncorrectable (double-bit) memory error happened",
        "Find the GPU (nvidia-smi -q -d ECC,ROW_REMAPPER; dmesg | grep -i xid), drain it, reset.",
    ),
    (
        "PCIe",
        "pcie_replay",
        Severity.MEDIUM,
        "pcie_errors",
        "packets on a PCIe link were sent again",
        "Find the GPU (nvidia-smi -q -d PCIE; dmesg | grep -i aer); reseat it if the count rises.",
    ),
    (
        "maximum number of retired",
        "retired_pages",
        Severity.CRITICAL,
        "row_remap_failure",
        "a GPU has retired more memory pages than the policy allows",
        "nvidia-smi -q -d PAGE_RETIREMENT,ROW_REMAPPER names it; plan its replacement.",
    ),
    (
        "maximum thermal",
        "thermal",
        Severity.HIGH,
        "thermal_slowdown_sw",
        "a GPU was hotter than the policy's limit (a limit of yours, not of the board)",
        "Check cooling: nvidia-smi -q -d TEMPERATURE,PERFORMANCE under load.",
    ),
    (
        "maximum power",
        "power",
        Severity.LOW,
        None,
        "a GPU drew more than the policy's limit (a limit of yours, not of the board)",
        "Compare the limit with the board's: nvidia-smi -q -d POWER; dcgmi policy --get.",
    ),
    (
        "NVLink",
        "nvlink",
        Severity.MEDIUM,
        "nvlink_errors",
        "an NVLink error counter went up",
        "dcgmi nvlink --errors -g GPU twice, some minutes apart; dmesg | grep -i -e xid -e sxid.",
    ),
    (
        "unknown",
        "unknown",
        Severity.LOW,
        None,
        "a condition that this dcgmi does not know was violated",
        "Read the log of nv-hostengine, and use a dcgmi of its version.",
    ),
)
_CONNECT: Final = re.compile(
    r"^\s{0,8}Error: (?:unable to establish a connection to the specified host: "
    r"(?P<host>[\w.:-]{1,80})"
    r"|Unable to connect to host engine\. (?P<why>[\w ./,'()-]{1,120}))"
)
_PROFILING: Final = re.compile(
    r"^\s{0,8}Error: unable to (?P<action>pause|resume) profiling metrics: (?P<why>[^.]{1,160})"
)
_PAUSED: Final = re.compile(r"^\s{0,8}Successfully paused profiling\.")
_RESUMED: Final = re.compile(r"^\s{0,8}Successfully resumed profiling\.")


@dataclass(slots=True)
class _Seen:
    line: int
    count: int = 0
    value: int | None = None
    name: str = ""


class DcgmiMessageReader:
    """Reads violated policies, and why ``dcgmi`` could not do what it was asked."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"has violated policy manager values",
        b"Listening for violations.",
        b"unable to establish a connection to the specified host",
        b"Error: Unable to connect to host engine",
        b"profiling metrics: ",
        b"Successfully paused profiling.",
        b"Successfully resumed profiling.",
    )
    LIMIT = 256

    def __init__(self, context: Context) -> None:
        self.open = False
        self._facts = Facts(context.catalogue)
        self._seen: dict[tuple[str, int | None], _Seen] = {}
        self._last: _Seen | None = None
        self._findings: dict[str, Finding] = {}
        self._paused: int | None = None

    def feed(self, number: int, text: str) -> bool:
        """Take a line; a violation's value and the next one follow it."""
        if "Listening for violations." in text:
            self.open = True
            return True
        found = _VIOLATED.match(text)
        xid = _XID.match(text) if self.open else None
        if found is not None or xid is not None:
            self._violated(number, found, xid)
            return True
        value = _VALUE.match(text) if self.open else None
        if value is not None:
            if self._last is not None:
                self._last.value, self._last.name = int(value["value"]), _NAMES[value["what"]]
            return True
        if self.open and _STAMP.match(text):
            return True
        self.open = False
        return self._said(number, text)

    def finish(self) -> Result:
        """Say what was violated, and what could not be done."""
        findings = [*self._policies(), *self._findings.values()]
        if self._paused is not None:
            findings.append(_paused(self._paused))
        return result_of(["dcgmi"] if findings else [], findings)

    def _violated(
        self, number: int, found: re.Match[str] | None, xid: re.Match[str] | None
    ) -> None:
        self.open = True
        what = found["what"] if found is not None else "xid"
        key = (what, int(xid["xid"]) if xid is not None else None)
        if key not in self._seen and len(self._seen) >= self.LIMIT:
            return
        self._last = self._seen.setdefault(key, _Seen(number))
        self._last.count += 1

    def _policies(self) -> Iterator[Finding]:
        for (what, xid), seen in self._seen.items():
            if xid is not None:
                yield self._xid(xid, seen)
                continue
            _, id_, severity, cause, meaning, action = next(
                p for p in _POLICIES if what.startswith(p[0])
            )
            value = f", last value {seen.value}" if seen.value is not None else ""
            yield finding(
                "dcgmi_policy",
                id_,
                severity,
                f"A DCGM policy was violated {plural(seen.count, 'time')}: {meaning}{value}. The "
                "line does not name the GPU.",
                action,
                line=seen.line,
                cause=cause,
                data={"count": seen.count} | ({seen.name: seen.value} if seen.name else {}),
                sources=(_SOURCE,),
            )

    def _xid(self, code: int, seen: _Seen) -> Finding:
        entry = self._facts.xid(code)
        title = f" ({entry['title']})" if entry else ""
        return finding(
            "dcgmi_policy",
            "xid",
            Severity(entry["severity"]) if entry else Severity.MEDIUM,
            f"A DCGM policy saw Xid {code}{title} {plural(seen.count, 'time')}. The line does not "
            "name the GPU.",
            f"dmesg -T | grep -i xid names it. {entry['action']}"
            if entry
            else "dmesg -T | grep -i xid names it.",
            line=seen.line,
            cause=entry.get("taxonomy") if entry else None,
            data={"xid": code, "count": seen.count},
            sources=(_SOURCE,),
        )

    def _said(self, number: int, text: str) -> bool:
        if _PAUSED.match(text):
            self._paused = number
            return True
        if _RESUMED.match(text):
            self._paused = None
            return True
        connect = _CONNECT.match(text)
        if connect is not None:
            host = connect["host"] or "localhost:5555"
            self._findings.setdefault("connect", _unreachable(number, host))
            return True
        profiling = _PROFILING.match(text)
        if profiling is not None:
            self._findings.setdefault("profiling", _refused(number, profiling))
            return True
        return False


def _unreachable(line: int, host: str) -> Finding:
    return finding(
        "dcgmi",
        "unreachable",
        Severity.MEDIUM,
        f"dcgmi could not reach nv-hostengine at {host}: nothing was read, so this says nothing "
        "about the GPUs.",
        "Start it: systemctl start nvidia-dcgm (or nv-hostengine). In a pod of dcgm-exporter with "
        "its own engine there is none to reach; a remote one needs nv-hostengine -b ALL.",
        line=line,
        data={"host": host},
        sources=("NVIDIA/DCGM dcgmi/Command.cpp 4.6.0",),
    )


def _refused(line: int, found: re.Match[str]) -> Finding:
    return finding(
        "dcgmi",
        "profiling",
        Severity.LOW,
        f"dcgmi could not {found['action']} profiling: the profiling module is not loaded, not "
        "supported on these GPUs, or its rights are missing.",
        "dcgmi modules -l shows the module's state; dcgmi profile --list the metrics. Run "
        "nv-hostengine as root.",
        line=line,
        data={"action": found["action"]},
        sources=("NVIDIA/DCGM dcgmi/DcgmiProfile.cpp 4.6.0",),
    )


def _paused(line: int) -> Finding:
    return finding(
        "dcgmi",
        "paused",
        Severity.MEDIUM,
        "DCGM's profiling was paused and is not resumed in this text: profiling fields (1001 and "
        "up) stay blank on all GPUs of this nv-hostengine until it is.",
        "After the profiler has ended: dcgmi profile --resume.",
        line=line,
        cause="profiling_paused",
        sources=("NVIDIA/DCGM dcgmi/DcgmiProfile.cpp 4.6.0",),
    )
