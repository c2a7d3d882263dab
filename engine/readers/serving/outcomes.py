"""How requests end: failed, corrupted, given up by clients."""

from __future__ import annotations

from collections.abc import Iterator

from engine.model import Finding, Severity
from engine.readers.serving.finding import FEW, Limits, counted, finding, includes_failed
from engine.readers.serving.load import Load
from engine.readers.serving.words import count, percent
from engine.units import number


def failures(load: Load, limits: Limits) -> Iterator[Finding]:
    """Yield requests that failed by the server's doing, and corrupted answers."""
    failed, finished = counted(load, "failed"), counted(load, "finished")
    server_side, answered = counted(load, "http_5xx"), counted(load, "http_all")
    if server_side > failed:
        failed, finished = server_side, answered
    elif not includes_failed(load):
        finished += failed
    if failed and finished and failed >= limits["serving_error_share"] * finished:
        http = " (HTTP 5xx)" if failed == server_side else ""
        recent = load.growth("failed") or load.growth("http_5xx")
        yield finding(
            load,
            "serving_errors",
            Severity.HIGH if recent else Severity.MEDIUM,
            f"{number(failed)} of {count(finished, 'request')} failed{http} {load.since} "
            f"({percent(failed / finished)})"
            + ("." if recent else "; when, one scrape cannot say."),
            "Read the server's log for the first error of that time: out of memory, CUDA error, a "
            "worker that died.",
            cause="serving_errors",
            more={"failed": int(failed), "finished": int(finished)},
            sources=limits.source("serving_error_share"),
        )
    corrupted = counted(load, "corrupted")
    if corrupted:
        yield finding(
            load,
            "corrupted_requests",
            Severity.HIGH,
            f"{count(corrupted, 'request')} had NaN in the logits {load.since}: their answers are "
            "wrong.",
            "Take the GPU out and test it (dcgmi diag -r 3); look for Xid and ECC errors, then at "
            "the quantisation and kernels in use.",
            cause="data_corruption",
            more={"corrupted": int(corrupted)},
        )


def aborts(load: Load, limits: Limits) -> Iterator[Finding]:
    """Yield that clients give up."""
    aborted, finished = counted(load, "aborted"), counted(load, "finished")
    if not includes_failed(load):
        finished += aborted
    if finished < FEW or aborted < limits["client_abort_share"] * finished:
        return
    if counted(load, "failed") or counted(load, "http_5xx"):
        return
    yield finding(
        load,
        "client_aborts",
        Severity.LOW,
        f"{number(aborted)} of {count(finished, 'request')} were aborted {load.since} "
        f"({percent(aborted / finished)}), none failed: clients gave up, most often at a time-out.",
        "Compare the clients' and proxies' time-outs with the request latency; if that is too "
        "high, look for its reason first.",
        cause="client_aborts",
        more={"aborted": int(aborted), "finished": int(finished)},
        sources=limits.source("client_abort_share"),
    )
