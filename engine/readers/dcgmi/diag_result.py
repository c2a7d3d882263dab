"""Results of ``dcgmi diag``, from whichever form, and what they show.

A test passes, warns, fails or is skipped, as a whole and for each GPU; messages say why. Codes and
phrases of messages are looked up in ``knowledge/dcgm_errors.yaml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from engine.catalogue.types import Catalogue
from engine.model import Entity, Finding, Kind, Severity
from engine.readers.base import Context, Result
from engine.readers.listing import finding
from engine.readers.quantities import listed, short

KIND: Final = "dcgmi_diag"
SOURCE: Final = "NVIDIA/DCGM dcgmi/Diag.cpp, dcgmlib/dcgm_errors.h 4.6.0"
STATUSES: Final = {
    "pass": "pass",
    "passed": "pass",
    "warn": "warn",
    "warning": "warn",
    "fail": "fail",
    "failed": "fail",
    "skip": "skip",
    "skipped": "skip",
    "not run": "skip",
    "error": "fail",
}
MAX_TESTS: Final = 256
MAX_MESSAGES: Final = 1_024
_SEVERITIES: Final = {
    "isolate": Severity.CRITICAL,
    "reset": Severity.HIGH,
    "triage": Severity.HIGH,
    "config": Severity.MEDIUM,
    "monitor": Severity.MEDIUM,
    "unknown": Severity.MEDIUM,
}
# Worse than what DCGM's own severity says: the GPU cannot be used again as it is.
_CRITICAL: Final = frozenset({"row_remap_failure", "ecc_uncontained", "gpu_off_bus"})
_ORDER: Final = tuple(Severity)
_GPU: Final = re.compile(r"\bGPU[ :]{0,3}(\d{1,4})\b")
_XID: Final = re.compile(r"\bXID (\d{1,4})\b")
_FIGURE: Final = re.compile(r"\b\d{1,9}(?:\.\d{1,6})? ?(?:GB/s|MB/s|C|W|MHz|%|GFLOPS|ms|us)\b")


@dataclass(slots=True)
class Message:
    """Why a test did not pass. ``code`` is DCGM's error_id, where it is given."""

    text: str
    line: int
    gpu: int | None = None
    code: int | None = None


@dataclass(slots=True)
class Test:
    """One test of the run. ``gpus`` is the status of each GPU where they are named."""

    name: str
    line: int
    status: str | None = None
    category: str | None = None
    gpus: dict[int, str] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)

    def of_gpu(self, gpu: int, status: str) -> None:
        """Set what one GPU got; the worst of several runs stays."""
        worst = {"skip": 0, "pass": 1, "warn": 2, "fail": 3}
        if len(self.gpus) < 1_024 and worst[status] >= worst.get(self.gpus.get(gpu, "skip"), 0):
            self.gpus[gpu] = status

    @property
    def result(self) -> str:
        """The status of the test as a whole: its own, or the worst of its GPUs."""
        found = {self.status, *self.gpus.values()}
        return next((s for s in ("fail", "warn", "pass") if s in found), "skip")


@dataclass(slots=True)
class Run:
    """One run of the diagnostic; ``devices``: how many GPUs its heading lists, 0 for none."""

    line: int
    host: str | None = None
    dcgm: str | None = None
    driver: str | None = None
    devices: int = 0
    tests: list[Test] = field(default_factory=list)
    error: str | None = None


def report(runs: Sequence[Run], context: Context) -> Result:
    """Say what runs of the diagnostic show, the worst first."""
    findings = [f for run in runs for f in _of_run(run, context.catalogue)]
    findings.sort(key=lambda f: _ORDER.index(f.severity))
    causes = list(dict.fromkeys(f.cause for f in findings if f.cause))
    if runs and not causes and all(_healthy(run) for run in runs):
        causes = ["healthy"]
    return Result(kinds=[KIND], findings=findings, causes=causes)


def known_error(catalogue: Catalogue, code: int | None, text: str) -> Mapping[str, Any] | None:
    """Return the entry of an error: by its code, or the longest phrase that its text holds."""
    entries = catalogue.entries.get("dcgm_errors", {})
    if code is not None and str(code) in entries:
        return entries[str(code)]
    lower = " ".join(text.lower().split())
    best: tuple[int, Mapping[str, Any] | None] = (0, None)
    for entry in entries.values():
        for phrase in entry.get("phrases", ()):
            if len(phrase) > best[0] and phrase in lower:
                best = (len(phrase), entry)
    return best[1]


def entity_of(gpu: int | None, host: str | None) -> Entity | None:
    """Return a GPU of a host, or the host."""
    if gpu is None:
        return Entity(Kind.NODE, host, host=host) if host else None
    return Entity(Kind.GPU, f"{host}:{gpu}" if host else f"GPU {gpu}", host=host, gpu=gpu)


def _healthy(run: Run) -> bool:
    return (
        run.error is None
        and any(t.result == "pass" for t in run.tests)
        and all(t.result in ("pass", "skip") for t in run.tests)
    )


def _of_run(run: Run, catalogue: Catalogue) -> Iterable[Finding]:
    if run.error is not None:
        yield finding(
            KIND,
            "not_run",
            Severity.HIGH,
            f"The diagnostic did not run: {short(run.error, 160)}. It says nothing about the GPUs.",
            "Mend what it names (nv-hostengine running, profiling not paused, GPUs of one model), "
            "then run it again: dcgmi diag -r 2.",
            line=run.line,
            data={"error": short(run.error, 160)},
            entity=entity_of(None, run.host),
            sources=(SOURCE,),
        )
    for test in run.tests:
        if test.result in ("fail", "warn"):
            yield from _of_test(test, run, catalogue)
    if run.tests:
        yield _summary(run)


def _of_test(test: Test, run: Run, catalogue: Catalogue) -> Iterable[Finding]:
    """One finding for each thing that is wrong: messages of one kind stand together."""
    groups: dict[str, list[tuple[Message, Mapping[str, Any] | None]]] = {}
    for message in test.messages:
        entry = known_error(catalogue, message.code, message.text)
        key = str(entry["id"]) if entry else f"?{message.code or message.text[:40]}"
        groups.setdefault(key, []).append((message, entry))
    if not groups:
        yield _finding(test, run, [], None, catalogue)
    for group in groups.values():
        yield _finding(test, run, [m for m, _ in group], group[0][1], catalogue)


def _finding(
    test: Test,
    run: Run,
    messages: Sequence[Message],
    entry: Mapping[str, Any] | None,
    catalogue: Catalogue,
) -> Finding:
    gpus = sorted({m.gpu for m in messages if m.gpu is not None})
    gpus = gpus or sorted(g for g, s in test.gpus.items() if s in ("fail", "warn"))
    who = f"GPU {', '.join(map(str, gpus[:16]))}" if gpus else "the node"
    verb = "failed" if test.result == "fail" else "warns"
    meaning = f" {entry['meaning']}" if entry else ""
    text = messages[0].text if messages else ""
    figures = [m[0] for m in _FIGURE.finditer(text)]
    said = f" Figures: {', '.join(figures[:4])}." if figures else ""
    verdict = str(entry["verdict"]) if entry else "triage"
    cause = entry.get("taxonomy") if entry else None
    severity = Severity.CRITICAL if cause in _CRITICAL else _SEVERITIES[verdict]
    if test.result == "warn" and severity is Severity.CRITICAL:
        severity = Severity.HIGH
    code = next((m.code for m in messages if m.code is not None), None)
    xid = _XID.search(text)
    if xid is not None and cause is None:
        known = catalogue.entries.get("xid", {}).get(str(int(xid[1])), {})
        cause = known.get("taxonomy")
    if not meaning and text:
        meaning = f" Its message: {short(text, 120)}."
    return finding(
        KIND,
        entry["title"].replace(" ", "_") if entry else "test",
        severity,
        f"{_host(run)}dcgmi diag: {short(test.name)} {verb} on {who}.{meaning}{said}",
        _action(entry, verdict, test),
        line=messages[0].line if messages else test.line,
        cause=cause,
        data={
            "test": short(test.name),
            "result": test.result,
            "gpus": gpus or None,
            "error_id": code if code is not None else (entry["id"] if entry else None),
            "error": entry["name"] if entry else None,
            # What to do with the GPU; DCGM's own word where the action goes further.
            "verdict": "isolate" if cause in _CRITICAL else verdict,
            "dcgm_severity": verdict if cause in _CRITICAL and verdict != "isolate" else None,
            "xid": int(xid[1]) if xid else None,
            "count": len(messages) if len(messages) > 1 else None,
        },
        entity=entity_of(gpus[0] if len(gpus) == 1 else None, run.host),
        sources=(SOURCE,),
    )


def _action(entry: Mapping[str, Any] | None, verdict: str, test: Test) -> str:
    action = str(entry.get("action", "")) if entry else ""
    if action:
        return action
    if verdict == "isolate":
        return "Take the GPU out of service, then find out more: dcgmi diag -r 3 -v, dmesg."
    return (
        f"Run the test again with details: dcgmi diag -r {_argument(test.name)} -v. "
        "Read dmesg of that time for Xids."
    )


def _argument(name: str) -> str:
    """The name of a test as ``dcgmi diag -r`` takes it, where it is one of the plugins."""
    plugins = {
        "gpu memory": "memory",
        "memory": "memory",
        "pcie": "pcie",
        "diagnostic": "diagnostic",
        "targeted stress": "targeted_stress",
        "targeted power": "targeted_power",
        "memory bandwidth": "memory_bandwidth",
        "memtest": "memtest",
        "pulse test": "pulse_test",
        "nvbandwidth": "nvbandwidth",
        "eud test": "eud",
        "nccl tests": "nccl_tests",
    }
    found = re.sub(r"[_ ]+", " ", name.strip().lower())
    return plugins.get(found, "2")


def _summary(run: Run) -> Finding:
    by: dict[str, list[str]] = {}
    for test in run.tests:
        by.setdefault(test.result, []).append(short(test.name, 32))
    counts = {status: len(names) for status, names in by.items()}
    failed = [*by.get("fail", ()), *by.get("warn", ())]
    gpus = sorted({g for t in run.tests for g in t.gpus})
    ran = counts.get("pass", 0) + len(failed)
    skipped = by.get("skip", [])
    says = f"{_host(run)}dcgmi diag ran {ran} test(s)"
    count = max(len(gpus), run.devices)
    says += f" on {count} GPU(s): " if count else ": "
    says += (
        f"{counts.get('pass', 0)} passed, {listed(failed, 8)} did not." if failed else "all passed."
    )
    if skipped:
        says += f" Not run: {listed(skipped, 6)}; these say nothing."
    shallow = {t.category for t in run.tests} <= {"Deployment", None}
    if not failed:
        says += (
            " Only the software set-up was tested, not the hardware under load."
            if shallow
            else " The GPUs are healthy as far as these tests reach."
        )
    return finding(
        KIND,
        "summary",
        Severity.INFO,
        says,
        "Nothing; for a longer test under load: dcgmi diag -r 3 (needs idle GPUs)."
        if not failed
        else "Begin with the worst result above.",
        line=run.line,
        data={
            "passed": counts.get("pass", 0),
            "failed": counts.get("fail", 0),
            "warned": counts.get("warn", 0),
            "skipped": counts.get("skip", 0),
            "gpu_count": count or None,
            "dcgm_version": run.dcgm,
            "driver_version": run.driver,
        },
        entity=entity_of(None, run.host),
        sources=(SOURCE,),
    )


def _host(run: Run) -> str:
    return f"{run.host}: " if run.host else ""


def gpus_in(text: str) -> list[int]:
    """Return the GPU numbers that a message names."""
    return [int(m[1]) for m in _GPU.finditer(text[:512])]
