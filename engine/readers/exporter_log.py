"""Log lines of dcgm-exporter: why profiling (DCP) metrics or all metrics are missing.

Wordings: NVIDIA/dcgm-exporter internal/pkg at d5e5f51 and pkg/dcgmexporter of 2.x and 3.x, logrus
and slog; DCGM status texts as in dcgmlib/dcgm_errors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from engine.model import Finding, Severity
from engine.readers.base import Context, Result
from engine.readers.exporter_log_words import DEAD, REASONS, START

_SKIPPED = re.compile(r"Skipping line (\d{1,6}) \('([A-Z0-9_]{1,100})'\): metric not enabled")
_UNKNOWN = re.compile(r"[Cc]ould not find DCGM field[^']{0,60}'?([A-Z0-9_]{4,100})?")
_VERSION = re.compile(
    r"(?:Starting dcgm-exporter.{0,20}Version=|dcgm-exporter:)([0-9][0-9a-z.-]{2,40})"
)
_PODS = re.compile(
    r"fail\w{0,4} (?:to )?(?:get\w{0,4} pod resources|transform metrics for transform '?podMapper"
    r"|connect to \S{0,60}pod-resources)",
    re.IGNORECASE,
)
_LEVEL = re.compile(r"\blevel=\"?(?:error|fatal|panic)|\b(?:ERRO|FATA|PANI)\[", re.IGNORECASE)


@dataclass(slots=True)
class _Reason:
    line: int
    says: str
    why: str
    cause: str


class ExporterLogReader:
    """Collects what dcgm-exporter says about metrics that it does not collect."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"collecting DCP metrics",
        b"Collecting DCP Metrics",
        b"metric not enabled",
        b"Error watching fields",
        b"sufficient privileges to expose profiling",
        b"ould not find DCGM field",
        b"Starting dcgm-exporter",
        b"remote hostengine",
        b"libdcgm.so not Found",
        b"library was not found. Install Data Center",
        b"Cannot init NVML library",
        b"DCGM successfully initialized",
        b"no fields to watch for device type",
        b"Falling back to metric file",
        b"Initializing system entities of type",
        b"Pipeline starting",
        b"Starting webserver",
        b"pod resources",
        b"podMapper",
    )
    _MAX_NAMES = 256

    def __init__(self, context: Context) -> None:
        del context
        self.open = False
        self._reason: _Reason | None = None
        self._dead: tuple[int, str, str] | None = None
        self._skipped: dict[str, int] = {}
        self._unknown: dict[str, int] = {}
        self._fatal = False
        self._collecting = False
        self._version = ""
        self._seen = False
        self._line = 0
        self._pods: tuple[int, bool] | None = None
        self._failed = False

    def feed(self, number: int, text: str) -> bool:
        """Take one line."""
        skipped = _SKIPPED.search(text)
        if skipped:
            if len(self._skipped) < self._MAX_NAMES:
                self._skipped.setdefault(skipped[2], number)
            self._seen = True
            return True
        version = _VERSION.search(text)
        if version:
            self._version = version[1]
        taken = self._missing(number, text)
        for words, says, action in DEAD:
            if words in text:
                self._dead = self._dead or (number, says, action)
                taken = True
        unknown = _UNKNOWN.search(text)
        if unknown:
            self._unknown.setdefault(unknown[1] or "", number)
            taken = True
        if "ollecting DCP Metrics" in text and "Not" not in text:
            self._collecting = taken = True
        taken |= any(words in text for words in START)
        if _PODS.search(text):
            self._pods = self._pods or (number, "larger than max" in text)
            taken = True
        self._failed |= _LEVEL.search(text) is not None
        if taken:
            self._line = self._line or number
        self._seen |= taken
        return taken

    def finish(self) -> Result:
        """Say what will be missing, and why."""
        if not self._seen:
            return Result()
        findings = []
        if self._reason is not None or any("_PROF_" in name for name in self._skipped):
            findings.append(self._profiling())
        rest = [name for name in self._skipped if "_PROF_" not in name]
        if rest:
            findings.append(self._others(rest))
        if self._unknown:
            findings.append(self._field())
        if self._dead:
            findings.append(self._exporter(*self._dead))
        if self._pods:
            findings.append(self._unmapped(*self._pods))
        if not findings and not self._failed:
            findings.append(self._started())
        causes = list(dict.fromkeys(f.cause for f in findings if f.cause))
        return Result(["exporter_log"], findings, causes)

    def _missing(self, number: int, text: str) -> bool:
        about = "DCP" in text or "watching fields" in text or "profiling" in text
        if not about:
            return False
        for words, says, why, cause in REASONS:
            if words in text:
                self._reason = self._reason or _Reason(number, says, why, cause)
                self._fatal |= "level=fatal" in text or "Failed to watch" in text
                return True
        if "ot collecting DCP metrics" in text:
            said = _Reason(number, "profiling (DCP) is not collected", "", "metrics_missing")
            self._reason = self._reason or said
            return True
        return False

    def _profiling(self) -> Finding:
        names = [name for name in self._skipped if "_PROF_" in name]
        reason = self._reason
        line = reason.line if reason else self._skipped[names[0]]
        head = reason.says if reason else "the exporter does not collect profiling (DCP) metrics"
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        says = f"{head[:1].upper()}{head[1:]}, so the series DCGM_FI_PROF_* will be missing"
        says += f" ({shown} skipped)." if names else "."
        if self._fatal:
            says += " The exporter ends because of it: all other metrics are missing too."
        if reason and reason.why:
            says += f" {reason.why[:1].upper()}{reason.why[1:]}."
        data: dict[str, Any] = {"skipped": names[:64], "fatal": self._fatal}
        if self._version:
            data["version"] = self._version
        return Finding(
            kind="exporter_log",
            id="profiling_missing",
            severity=Severity.MEDIUM,
            says=says,
            action=(
                "Check that the container has CAP_SYS_ADMIN and that no other profiler runs; "
                "dcgmi modules -l shows whether module Profiling is loaded. Until then use "
                "DCGM_FI_DEV_GPU_UTIL, and take the PROF rows out of the CSV if the GPU cannot."
            ),
            entity=None,
            line=line,
            cause=reason.cause if reason else "metrics_missing",
            data=data,
            sources=(
                "NVIDIA/dcgm-exporter issues 22, 148, 303, 328 and 398",
                "NVIDIA/DCGM, DCGM_ST_MODULE_NOT_LOADED (-33), DCGM_ST_PROFILING_LIBRARY_ERROR",
            ),
        )

    def _others(self, names: list[str]) -> Finding:
        return Finding(
            kind="exporter_log",
            id="metrics_skipped",
            severity=Severity.LOW,
            says=f"Not exported: {', '.join(names[:6])}{' …' if len(names) > 6 else ''}: the "
            "exporter skipped these rows of its list of metrics.",
            action="Enable the collector that each belongs to, or take the rows out.",
            entity=None,
            line=self._skipped[names[0]],
            cause="metrics_missing",
            data={"skipped": names[:64]},
        )

    def _field(self) -> Finding:
        names = [name for name in self._unknown if name]
        named = f" ({', '.join(names[:4])})" if names else ""
        return Finding(
            kind="exporter_log",
            id="unknown_field",
            severity=Severity.MEDIUM,
            says=f"The exporter does not know a DCGM field of its list{named} and does not start: "
            "a name of another version. DCGM_FI_DEV_CLOCK_THROTTLE_REASONS was refused by "
            "4.4.2-4.7.1 to 4.5.2-4.8.1.",
            action="Write the name of this version (DCGM_FI_DEV_CLOCKS_EVENT_REASONS from 4.0), or "
            "use an exporter that fits the list.",
            entity=None,
            line=next(iter(self._unknown.values())),
            cause="exporter_down",
            data={"fields": names[:64]},
            sources=("NVIDIA/dcgm-exporter internal/pkg/counters/counter_config.go",),
        )

    def _unmapped(self, line: int, large: bool) -> Finding:
        why = (
            " The kubelet's answer about pods is larger than the 4 MiB that gRPC takes by default: "
            "a node with very many pods or devices."
            if large
            else ""
        )
        return Finding(
            kind="exporter_log",
            id="pods_not_mapped",
            severity=Severity.MEDIUM,
            says="The exporter cannot ask the kubelet which pod has which GPU: series lack the "
            f"labels pod, namespace and container, or the whole scrape fails.{why}",
            action=(
                "Upgrade the exporter (newer ones take larger answers), or have fewer pods and "
                "device replicas on the node."
                if large
                else "Check the mount of /var/lib/kubelet/pod-resources and the kubelet's log."
            ),
            entity=None,
            line=line,
            cause="metrics_missing",
            data={"too_large": large},
            sources=("NVIDIA/dcgm-exporter internal/pkg/transformation/kubernetes.go",),
        )

    def _started(self) -> Finding:
        profiling = " with profiling (DCP) metrics" if self._collecting else ""
        return Finding(
            kind="exporter_log",
            id="started",
            severity=Severity.INFO,
            says=f'dcgm-exporter starts normally{profiling}: no error in these lines. "Not '
            'collecting …; no fields to watch for device type" is harmless: the list has no rows '
            "for NvSwitches, links or CPUs.",
            action="Nothing to do.",
            entity=None,
            line=self._line,
            cause=None,
            data={"version": self._version} if self._version else {},
        )

    def _exporter(self, line: int, says: str, action: str) -> Finding:
        return Finding(
            kind="exporter_log",
            id="exporter_failed",
            severity=Severity.MEDIUM,
            says=f"{says} It exports nothing.",
            action=action,
            entity=None,
            line=line,
            cause="exporter_down",
            data={},
            sources=("NVIDIA/dcgm-exporter internal/pkg/dcgmprovider/dcgm.go",),
        )
