"""Reader of the log lines of LLM servers: load over time, preemptions, start-up, failures."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

from engine.model import Finding
from engine.readers.base import Context, Result
from engine.readers.serving import failure_kinds, prose, startup
from engine.readers.serving.course import Course
from engine.readers.serving.drafts import Drafts
from engine.readers.serving.failures import WELL_MARK, Failures
from engine.readers.serving.finding import Limits
from engine.readers.serving.load import Engine, Load
from engine.readers.serving.preemptions import Preemptions
from engine.readers.serving.prose import Prose
from engine.readers.serving.requests import Requests
from engine.readers.serving.samples import samples
from engine.readers.serving.startup import StartUp
from engine.readers.serving.trends import trends
from engine.readers.serving.verdicts import judge
from engine.readers.serving.words import count, seconds
from engine.units import number

_OLD_HITS = re.compile(r"Prefix cache hit rate: GPU: {1,3}(\d{1,3}(?:\.\d{1,6})?)%")
_MAX_ENGINES = 1024
_MAX_SHOWN = 8
_KEPT = (
    "running",
    "waiting",
    "deferred",
    "swapped",
    "kv_usage",
    "prefix_hit_rate",
    "external_hit_rate",
    "prompt_throughput",
    "generation_throughput",
    "accept_length",
    "accept_rate",
    "transfer_queue",
    "retracted_now",
    "request_limit",
)


class ServingLogReader:
    """Collects lines of vLLM, SGLang, TensorRT-LLM, Triton and TGI, in bounded memory."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"Avg prompt throughput: ",
        b"#running-req:",
        b'"Active Request Count"',
        b"host_step_time",
        b"PreemptionMode.",
        b"Retract requests",
        b"#retracted_reqs",
        b"Preempting request",
        b"Preempted request",
        b"SpecDecoding metrics",
        b"Speculative metrics",
        b"Prefix cache hit rate: GPU",
        b'time_per_token="',
        *startup.TRIGGERS,
        *failure_kinds.TRIGGERS,
        *prose.TRIGGERS,
    )
    pattern: ClassVar[bytes] = failure_kinds.PATTERN
    skims: ClassVar[tuple[bytes, ...]] = (WELL_MARK,)

    def __init__(self, context: Context) -> None:
        self.open = self.long = False
        self._catalogue = context.catalogue
        self._courses: dict[tuple[str, str], Course] = {}
        self._preemptions = Preemptions()
        self._startup = StartUp()
        self._failures = Failures()
        self._requests = Requests()
        self._drafts = Drafts()
        self._prose = Prose()
        self._left_out = 0
        self._hits: float | None = None

    def skim(self, number: int, block: bytes) -> int:  # noqa: ARG002 (the protocol has it)
        """Count answers that went well; alone they say nothing, so none counts as read."""
        self._failures.skim(block)
        return 0

    def feed(self, number_: int, text: str) -> bool:
        """Take one line."""
        taken = False
        for sample in samples(number_, text):
            key = (sample.server, sample.engine)
            course = self._courses.get(key)
            if course is None:
                if len(self._courses) >= _MAX_ENGINES:
                    self._left_out += 1
                    continue
                course = self._courses[key] = Course(sample.server, sample.engine)
            course.add(sample)
            taken = True
        return (
            taken
            or self._drafts.feed(number_, text)
            or self._preemptions.feed(number_, text)
            or self._requests.feed(number_, text)
            or self._failures.feed(number_, text)
            or self._startup.feed(number_, text)
            or self._old_hits(text)
            or "#running-req:" in text
            or (not self.long and self._prose.feed(number_, text))
        )

    def finish(self) -> Result:
        """Say what the lines show together, root cause first."""
        loads = [self._load(server) for server in dict.fromkeys(s for s, _ in self._courses)]
        served = bool(loads) or bool(self._requests.count)
        starting = bool(self._startup) and not self._startup.ready and not served
        limits = Limits(self._catalogue)
        few = self._failures.rare(limits["serving_error_share"], served=served)
        failed = bool(self._failures) and few is None
        findings = list(self._failures.findings(starting=starting)) if few is None else []
        for load in loads:
            findings += self._judged(load)
        if self._preemptions and not any(p.server == self._preemptions.server for p in loads):
            findings.append(self._preemptions.finding(None))
        if self._prose:
            findings += judge(self._prose.load(), self._catalogue).findings
        if self._drafts:
            findings.append(self._drafts.finding(limits))
        if self._requests.count:
            findings.append(self._requests.finding(self._catalogue))
        if self._startup:
            up = self._startup.finding(served=served)
            if failed:
                up.data["ready"] = self._startup.ready
            findings.append(_without_cause(up) if failed else up)
        if few is not None:
            findings.append(few)
        if not findings:
            return Result()
        result = Result(["serving_log"], findings)
        result.causes = list(dict.fromkeys(f.cause for f in findings if f.cause))
        if self._left_out:
            result.notes.append(
                f"{self._left_out} load lines of more than {_MAX_ENGINES} engines were left out."
            )
        return result

    def _old_hits(self, text: str) -> bool:
        """The line of the V0 engine that has nothing but hit rates."""
        found = _OLD_HITS.search(text)
        if found:
            self._hits = min(float(found[1]) / 100, 1.0)
        return found is not None

    def _load(self, server: str) -> Load:
        """The newest state of each engine of a server."""
        courses = [c for (s, _), c in self._courses.items() if s == server]
        load = Load(server, "", line=courses[0].first.line, since="in this log")
        for course in courses:
            name = f"engine {course.name}" if course.name and len(courses) > 1 else ""
            engine = Engine(name or (course.name and f"engine {course.name}"), course.name)
            engine.now = {q: v for q, v in course.latest.items() if q in _KEPT}
            if self._hits is not None and server == "vllm":
                engine.now.setdefault("prefix_hit_rate", self._hits)
            load.engines[course.name] = engine
        return load

    def _judged(self, load: Load) -> list[Finding]:
        courses = [c for (s, _), c in self._courses.items() if s == load.server]
        limits = Limits(self._catalogue)
        found: list[Finding] = []
        for course in courses[:_MAX_SHOWN]:
            found += trends(course, load, limits)
        if self._preemptions and self._preemptions.server == load.server:
            found = [f for f in found if f.cause != "kv_cache_cascade"]
            found.insert(0, self._preemptions.finding(load))
        said = {f.cause for f in found}
        judged = judge(load, self._catalogue).findings
        stale = any(f.id in {"no_progress", "queue_stuck"} for f in found)
        cascade = "kv_cache_cascade" in said
        for one in judged[:-1]:
            hidden = one.cause in said or (stale and one.id != "engine_imbalance")
            if one.id in {"kv_cache_pressure", "kv_cache_note"} and cascade:
                hidden = True
            if one.cause == "queue_saturation" and said & {"prefill_bound", "kv_cache_cascade"}:
                hidden = True
            if not hidden:
                found.append(one)
        found.sort(key=lambda f: f.cause != "engine_imbalance")
        summary = judged[-1]
        summary.data["lines"] = sum(c.count for c in courses)
        return [*found, _told(summary, courses)]


def _told(summary: Finding, courses: list[Course]) -> Finding:
    """Add to the summary of the newest lines what a log says besides."""
    words = []
    dialects = {c.dialect for c in courses}
    if "V0" in dialects:
        words.append(
            "This is the V0 engine (default before vLLM 0.8, gone from 0.11): Pending is the "
            "waiting queue, Swapped are requests whose cache lies in host memory."
        )
    if len(courses) == 1:
        words += _speed(courses[0])
    aggregated = max(c.engines for c in courses)
    if aggregated > 1:
        words.append(f"Each line adds up {aggregated} engines, so no single one can be told.")
    lines = sum(c.count for c in courses)
    span = courses[0].span_s(courses[0].kept) if len(courses) == 1 else None
    over = f" over {seconds(span[0])}" if span and span[1] else ""
    summary.data["dialect"] = "/".join(sorted(d for d in dialects if d)) or None
    return replace(
        summary,
        says=" ".join([summary.says, *words, f"({count(lines, 'load line')}{over}.)"]),
    )


def _speed(course: Course) -> list[str]:
    """Speed of each request while nothing is prefilled: what a user sees."""
    now = course.latest
    running, made = now.get("running", 0.0), now.get("generation_throughput", 0.0)
    if not running or not made or now.get("prompt_throughput"):
        return []
    rates = [s.readings.get("generation_throughput", 0.0) for s in course.tail(3)]
    steady = "steadily " if len(rates) > 1 and min(rates) >= 0.9 * max(rates) else ""
    return [
        f"Decoding runs {steady}at {number(round(made / running, 1))} tokens/s for each request."
    ]


def _without_cause(finding: Finding) -> Finding:
    return replace(finding, cause=None)
