"""Load lines in which nothing moves any more although there are requests, or memory is held."""

from __future__ import annotations

from engine.model import Finding, Severity
from engine.readers.serving.advice import more_slots
from engine.readers.serving.course import Course
from engine.readers.serving.finding import finding
from engine.readers.serving.load import Load
from engine.readers.serving.words import count, percent, percent_number

# How many of the newest lines are looked at.
TAIL = 60


def named(course: Course) -> str:
    """Name the engine of a course, to be put behind a word."""
    return f" on engine {course.name}" if course.name else ""


def stuck(course: Course, load: Load) -> list[Finding]:
    """Return that nothing moves in the newest lines although there are requests."""
    tail = [s for s in course.tail(TAIL) if "generation_throughput" in s.readings]
    still = 0
    for sample in reversed(tail):
        moving = sample.readings.get("generation_throughput", 0.0) + sample.readings.get(
            "prompt_throughput", 0.0
        )
        if moving or sample.dialect == "prefill":
            break
        still += 1
    if still < 2:
        return []
    newest, lines = tail[-1].readings, tail[-still:]
    running, waiting = newest.get("running", 0.0), newest.get("waiting", 0.0)
    usage = newest.get("kv_usage", 0.0)
    held = f" with the KV cache at {percent(usage)}" if "kv_usage" in newest else ""
    more = {"lines_without_progress": still, "running": int(running), "waiting": int(waiting)}
    if running:
        same = all(
            s.readings.get(q) == newest.get(q) for s in lines for q in ("running", "kv_usage")
        )
        return [
            finding(
                load,
                "no_progress",
                Severity.MEDIUM,
                f"{count(running, 'request')} count as running{held}, but no token was read or "
                f"written in the last {still} lines{named(course)}: "
                + (
                    "either the engine hangs, or these numbers are stale (vLLM does not refresh "
                    "them when all requests are aborted at once, until the next step runs)."
                    if same
                    else "the engine does not get on."
                ),
                "Send one short request: if it is answered and the numbers fall, they were stale; "
                "if not, the engine hangs: py-spy dump --pid PID of engine and workers, and look "
                "in dmesg for Xids.",
                cause="stale_data" if same else None,
                more=more,
            )
        ]
    if waiting:
        deferred = newest.get("deferred", 0.0)
        return [
            finding(
                load,
                "queue_stuck",
                Severity.HIGH,
                f"{count(waiting, 'request')} {'waits' if waiting == 1 else 'wait'} and none runs, "
                f"in the last {still} lines{named(course)}{held}: "
                + (
                    "the request is held back (deferred) for its KV cache to arrive from elsewhere."
                    if deferred
                    else "the next one in the queue may need more KV cache than there is (prompt "
                    "and answer longer than the cache holds), or a worker hangs."
                ),
                "Look which request is first (long prompt?); compare its tokens with 'GPU KV cache "
                "size' in the start-up log; lower --max-model-len to that size so that such "
                "requests are refused. " + more_slots(load.server),
                cause="kv_transfer_stall" if deferred else "queue_saturation",
                more=more,
            )
        ]
    return _held(usage, still, course, load)


def _held(usage: float, still: int, course: Course, load: Load) -> list[Finding]:
    if usage < 0.05:
        return []
    return [
        finding(
            load,
            "kv_cache_held",
            Severity.LOW,
            f"The KV cache stays at {percent(usage)}{named(course)} in the last {still} lines "
            "although no request runs or waits: cached prefixes count as free, so blocks were not "
            "given back, or the number is stale.",
            "Send one request and read it again; if it stays, restart the server and upgrade it: "
            "blocks leak.",
            more={"kv_cache_percent": percent_number(usage)},
        )
    ]
