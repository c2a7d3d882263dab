"""Verdicts that need no baseline: wrong results, one rank, latency, an average alone."""

from __future__ import annotations

from engine.model import Severity
from engine.readers.nccl_tests.run import Run
from engine.readers.nccl_tests.verdict import (
    CORRUPTION,
    DEGRADED,
    LATENCY_BOUND,
    NOT_A_TEST,
    UNKNOWN,
    Verdict,
    gbs,
    size_words,
)

_SOURCE = "NVIDIA/nccl-tests 2.19.6 src/common.cu"
# So many nodes are named; of more, the text's own list is better.
_NAMED = 4
_PERFORMANCE = "NVIDIA/nccl-tests 2.19.6 doc/PERFORMANCE.md"


def corruption(run: Run) -> Verdict:
    """Wrong results: whatever the speed, the node must not be used."""
    rows = [(row, one) for row, one in run.wrong if one.wrong]
    says: list[str] = []
    if rows:
        row, one = rows[0]
        says.append(
            f"Data corruption: #wrong is {one.wrong} (elements, over all ranks) at "
            f"{size_words(row.size)} in line {row.line}, so results are incorrect; speed does not "
            "matter then."
        )
        if len(rows) > 1:
            says.append(f"{len(rows)} entries of the #wrong columns are not 0.")
    elif run.wrong:
        row, one = run.wrong[0]
        says.append(
            f"Data corruption: the deviation of {one.delta:g} at {size_words(row.size)} "
            f"({row.type}) in line {row.line} is beyond what nccl-tests accepts, so results are "
            "incorrect."
        )
    else:
        says.append(
            f"Data corruption: {run.out_of_bounds} check(s) out of bounds (FAILED), so results "
            "are incorrect; speed does not matter then."
        )
    hosts = run.setup.hosts
    nodes = ", ".join(hosts) if 0 < len(hosts) <= _NAMED else "the nodes of this run"
    return Verdict(
        CORRUPTION,
        says,
        f"Stop using {nodes}, drain {'it' if len(hosts) == 1 else 'them'}. Narrow it down on one "
        "node first: repeat with NCCL_PROTO=Simple ./build/all_reduce_perf -b 1M -e 1G -f 2 -g 8 "
        "-c 10, then with another NCCL version, NCCL_P2P_DISABLE=1 and NCCL_NET_GDR_LEVEL=LOC one "
        "at a time; look for Xid and NVLink errors (nvidia-smi nvlink -e), ECC (nvidia-smi -q -d "
        "ECC), and run dcgmi diag -r 3.",
        cause="data_corruption",
        severity=Severity.CRITICAL,
        sources=("NVIDIA/nccl issue 1184", _SOURCE),
    )


def one_rank(run: Run) -> Verdict:
    """One rank has no bus."""
    if run.setup.separate or (run.setup.processes or 1) > 1:
        count = len(run.setup.listed) or run.setup.processes
        says = [
            (
                f"{count} processes ran, each as a test of one rank (all are rank 0): the binary "
                "was built without MPI. Bus bandwidth is 0 by definition then, 2(n-1)/n with "
                "n = 1, and says nothing about the hardware."
            )
        ]
        action = (
            "Build with make MPI=1 MPI_HOME=… after make clean, and start it again with mpirun; "
            "or test one node in one process: ./build/all_reduce_perf -b 1G -e 16G -f 2 -g 8."
        )
    else:
        says = [
            (
                "Only one GPU (one rank) takes part: bus bandwidth is 0 by definition, as its "
                "factor 2(n-1)/n is 0 for n = 1. It is no failure, and no test of links either."
            )
        ]
        action = (
            "Run it with two or more ranks: -g N for N GPUs of one node "
            "(./build/all_reduce_perf -b 1G -e 16G -f 2 -g 8), or one process per GPU with mpirun "
            "and a binary built with MPI=1."
        )
    return Verdict(NOT_A_TEST, says, action, sources=(_PERFORMANCE,))


def latency(run: Run) -> Verdict:
    """Small messages measure latency."""
    assert run.largest is not None  # `Run.latency_bound` looked at it
    flat = run.latency_us
    says = [
        f"Latency, not bandwidth: the largest message is {size_words(run.largest.size)}, and "
        + (
            f"small ones take about {gbs(flat)} us whatever their size."
            if flat is not None
            else "a message of that size does not fill a link."
        ),
        "Bus bandwidth at such sizes is small by nature and no sign of a fault.",
    ]
    return Verdict(
        LATENCY_BOUND,
        says,
        "For bandwidth run large sizes: ./build/all_reduce_perf -b 1G -e 16G -f 2 -g 8. For "
        "latency compare the time column with a node that you trust; no vendor publishes limits.",
        sources=("NVIDIA/nccl-tests 2.19.6 README",),
    )


def collapse(verdict: Verdict, *, several: bool) -> Verdict:
    """Large messages slower than smaller ones: a fault whatever the system can do."""
    return Verdict(
        DEGRADED,
        [
            *verdict.says,
            (
                "Degraded all the same: large messages are far slower than smaller ones, and on a "
                "sound path they are not."
            ),
        ],
        "Look for dropped or paused packets (ethtool -S DEV | grep -E 'pause|discard|cnp', "
        "perfquery -x), flow control that is not lossless, and a flapping link; then repeat with "
        "NCCL_ALGO=Ring and with another NCCL version."
        if several
        else "Repeat with NCCL_ALGO=Ring and another NCCL version, and look at the channel lines "
        "of NCCL_DEBUG=INFO and at clocks and power caps during the large sizes.",
        cause="network_congestion" if several else None,
        severity=Severity.MEDIUM,
        sources=(_SOURCE,),
    )


def average_only(run: Run) -> Verdict:
    """Only the footer, an average over all sizes; or a bandwidth of 0 in words."""
    average = run.average if run.average is not None else run.figures.average
    if 0 in {average, run.busbw}:
        return Verdict(
            NOT_A_TEST,
            [
                (
                    "A bus bandwidth of 0 is what one rank gives by definition, since the "
                    "factor 2(n-1)/n is 0 for n = 1: one GPU took part, or every process tested "
                    "for itself because the binary was built without MPI."
                )
            ],
            "Run it with two or more ranks: -g N on one node, or a binary built with MPI=1.",
            sources=(_PERFORMANCE,),
        )
    says = ["No row of the table is here, so there is nothing to judge bandwidth by."]
    if average is not None:
        says.append(
            "The average is over all sizes and both placements: with small sizes among them it is "
            "far below the peak on a healthy system."
        )
    return Verdict(
        DEGRADED if run.failed else UNKNOWN,
        says,
        "Give the whole table, or run large sizes only: -b 1G -e 16G -f 2.",
        sources=(_SOURCE,),
    )
