"""Log lines that say why an LLM server did not start, died, hangs or refuses requests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from engine.model import Finding, Severity
from engine.readers.serving.failure_kinds import KINDS, FailureKind
from engine.units import number

_HANG = re.compile(r"No available shared memory broadcast block found in (\d{1,5}) sec")
_HTTP = re.compile(
    r'"(?:POST|GET) (/v1/\S{1,200}|/generate\S{0,200}|/invocations\S{0,200}) HTTP/1\.[01]" (5\d\d)'
)
# Answers that went well are many: they are counted a block at a time.
_WELL = re.compile(rb'"(?:POST|GET) /(?:v1/|generate|invocations)[^\s"]{0,200} HTTP/1\.1" 200\b')
WELL_MARK = b'HTTP/1.1" 200'
_GRAVE = (Severity.CRITICAL, Severity.HIGH, Severity.MEDIUM)
# Minutes without progress after which a compilation is no longer the likely reason.
_HANG_FROM = 5


@dataclass(slots=True)
class _Seen:
    line: int
    count: int = 1
    values: tuple[str, ...] = ()


@dataclass(slots=True)
class Failures:
    """Counts such lines by kind."""

    _found: dict[str, tuple[FailureKind, _Seen]] = field(default_factory=dict)
    _hang: _Seen | None = None
    _hang_s: int = 60
    _http: dict[str, _Seen] = field(default_factory=dict)
    _well: int = 0

    def __bool__(self) -> bool:
        """Return whether there was any failure; mere remarks are none."""
        return self._failed or bool(self._hang or self._http)

    def skim(self, block: bytes) -> None:
        """Count the answers of a block that went well."""
        if WELL_MARK in block:
            self._well += len(_WELL.findall(block))

    def rare(self, share: float, *, served: bool) -> Finding | None:
        """Return a note if all that failed are answers too few to name a cause, else None.

        Args:
            share: of failed answers from which they are a cause.
            served: the log shows the load of a server that works.
        """
        if self._failed or self._hang or not self._http:
            return None
        failed = self._server_errors
        single = failed == 1 and (served or self._well > 0)
        if single or failed < share * (failed + self._well):
            return self._answers(follows=False, few=True)
        return None

    @property
    def _server_errors(self) -> int:
        return sum(s.count for s in self._http.values())

    def feed(self, number: int, text: str) -> bool:
        """Take one line."""
        for kind in KINDS:
            found = kind.pattern.search(text)
            if found:
                seen = self._found.get(kind.id)
                if seen is None:
                    values = tuple(g or "" for g in found.groups())
                    self._found[kind.id] = (kind, _Seen(number, values=values))
                else:
                    seen[1].count += 1
                return True
        hang = _HANG.search(text)
        if hang:
            self._hang_s = int(hang[1])
            if self._hang is None:
                self._hang = _Seen(number, 0)
            self._hang.count += 1
            return True
        http = _HTTP.search(text)
        if http:
            seen_http = self._http.setdefault(http[2], _Seen(number, 0))
            seen_http.count += 1
            return True
        return False

    @property
    def _failed(self) -> bool:
        return any(kind.severity in _GRAVE for kind, _ in self._found.values())

    def findings(self, *, starting: bool) -> Iterator[Finding]:
        """Yield what failed.

        Args:
            starting: the log shows a start that did not end.
        """
        order = sorted(self._found.values(), key=lambda pair: pair[0].id == "engine_died")
        root = any(k.id != "engine_died" and k.severity in _GRAVE for k, _ in order)
        for kind, seen in order:
            yield _finding(kind, seen, follows=root and kind.id == "engine_died")
        if self._hang is not None:
            yield self._hanging(self._hang, starting=starting)
        if self._http:
            yield self._answers(follows=self._failed)

    def _hanging(self, seen: _Seen, *, starting: bool) -> Finding:
        waited = seen.count * self._hang_s
        long = seen.count >= _HANG_FROM and not starting
        return Finding(
            kind="serving",
            id="workers_silent",
            severity=Severity.HIGH if long else Severity.LOW,
            says=(
                f"A worker has not taken its next step for {number(round(waited / 60))} min "
                f"({seen.count} lines, one each {self._hang_s} s): "
                + (
                    "too long for a compilation, so a worker hangs, most often in a collective."
                    if long
                    else "it hangs, or does something long (compiling, loading, quantising the "
                    "cache)."
                )
            ),
            action=(
                "py-spy dump --pid PID of every worker: the one that differs is to blame. Look in "
                "dmesg for Xids, and set NCCL_DEBUG=INFO for the next start."
            ),
            entity=None,
            line=seen.line,
            cause="collective_hang" if long else None,
            data={"lines": seen.count, "waited_s": waited},
            sources=("vllm-project/vllm distributed/device_communicators/shm_broadcast.py",),
        )

    def _answers(self, *, follows: bool, few: bool = False) -> Finding:
        total = self._server_errors
        of_all = f" of {total + self._well}" if self._well else ""
        requests = "request" if total + self._well == 1 else "requests"
        by = ", ".join(f"{s.count} x {status}" for status, s in sorted(self._http.items()))
        refused = set(self._http) <= {"503", "529"}
        return Finding(
            kind="serving",
            id="http_errors",
            severity=Severity.LOW if few else Severity.MEDIUM,
            says=(
                f"{total}{of_all} {requests} answered with a server error ({by}) on the API."
                + (" 503 means that the server refused them or was not ready." if refused else "")
                + (" They follow from what failed above." if follows else "")
                + (" So few name no cause." if few else "")
            ),
            action="Read the first traceback or error before the first of these lines.",
            entity=None,
            line=min(s.line for s in self._http.values()),
            cause=None if follows or refused or few else "serving_errors",
            data={
                "server_errors": total,
                "by_status": {k: s.count for k, s in self._http.items()},
                "answered_well": self._well or None,
            },
        )


def _finding(kind: FailureKind, seen: _Seen, *, follows: bool) -> Finding:
    data: dict[str, Any] = {"count": seen.count}
    words = dict(zip(kind.names, seen.values, strict=False))
    for name, value in words.items():
        if value:
            data[name] = float(value) if "." in value else int(value)
    if kind.id == "memory_taken":
        data["taken_gib"] = round(float(words["total_gib"]) - float(words["free_gib"]), 2)
        words["taken_gib"] = number(data["taken_gib"])
    fits = data.get("fitting_model_len")
    words["fits"] = f" to {fits}" if fits else ""
    times = f" ({seen.count} lines.)" if seen.count > 1 else ""
    return Finding(
        kind="serving",
        id=kind.id,
        severity=kind.severity,
        says=kind.says.format_map(words)
        + times
        + (" It follows from that error." if follows else ""),
        action=kind.action.format_map(words),
        entity=None,
        line=seen.line,
        cause=None if follows else kind.cause,
        data=data,
        sources=kind.sources,
    )
