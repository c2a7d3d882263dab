"""Findings about runs: one with the verdict, and others about what does not fit."""

from __future__ import annotations

from collections.abc import Iterator

from engine.catalogue.types import Catalogue
from engine.model import Entity, Finding, Kind, Severity
from engine.readers.nccl_tests import factors
from engine.readers.nccl_tests.judge import judge
from engine.readers.nccl_tests.platform import Platform
from engine.readers.nccl_tests.run import Run
from engine.readers.nccl_tests.verdict import (
    CORRUPTION,
    Verdict,
    gbs,
    micros,
    rounded,
    size_words,
)

KIND = "nccl_tests"
# A spread of single iterations above this is worth a word.
_JITTER_PERCENT = 10.0
# The figure at the largest size this far below the peak is worth one, too.
_FALL = 0.90


def findings_of(run: Run, catalogue: Catalogue) -> Iterator[Finding]:
    """Yield the verdict on a run, then what about its figures does not fit."""
    verdict, platform = judge(run, catalogue)
    asides = [] if verdict.verdict == CORRUPTION else _asides(run)
    says = [_headline(run, platform), *verdict.says, *asides]
    yield Finding(
        kind=KIND,
        id=verdict.verdict,
        severity=verdict.severity,
        says=" ".join(s for s in says if s),
        action=verdict.action,
        entity=_entity(run),
        line=run.line,
        cause=verdict.cause,
        data=_data(run, verdict, platform),
        sources=verdict.sources,
    )
    if run.mismatch and verdict.verdict != CORRUPTION:
        yield _mismatch(run)


def _headline(run: Run, platform: Platform | None) -> str:
    """Say what ran where, and the figure."""
    words = [run.name[:1].upper() + run.name[1:]]
    if run.ranks:
        told = "" if run.ranks_told or run.zero else " (from busbw / algbw)"
        words.append(f"over {run.ranks} rank{'s' if run.ranks > 1 else ''}{told}")
    where = f"{run.nodes} node{'s' if run.nodes > 1 else ''}" if run.nodes else ""
    if platform is not None:
        words.append(f"({platform.name}{', ' if where else ''}{where})")
    elif where:
        words.append(f"on {where}")
    algorithm = run.setup.settings.get("NCCL_ALGO")
    if algorithm:
        words.append(f"with NCCL_ALGO={algorithm[:40]}")
    head = " ".join(words)
    if run.placement is not None and run.size is not None and run.busbw is not None:
        printed = run.placement
        figure = f"{gbs(run.busbw)} GB/s bus bandwidth at {size_words(run.size)}"
        return f"{head}: {figure} (algbw {printed.algbw:g} GB/s, {micros(printed.time_us)})."
    if run.converted is not None and run.busbw is not None and run.collective and run.ranks:
        by = factors.factor(run.collective, run.ranks)
        return (
            f"{head}: algbw {run.figures.algbw:g} GB/s, which is a busbw (bus bandwidth) of "
            f"{gbs(run.busbw)} GB/s (x {by:.4g} for {run.ranks} ranks). Link rates and published "
            "figures are compared with busbw."
        )
    if run.busbw is not None:
        peak = "peak " if run.figures.peak == run.busbw else ""
        return f"{head}: {peak}{gbs(run.busbw)} GB/s bus bandwidth."
    average = run.average if run.average is not None else run.figures.average
    if average is not None:
        return f"{head}: average bus bandwidth {average:g} GB/s."
    return f"{head}."


def _asides(run: Run) -> Iterator[str]:
    if run.collective is None and run.rows:
        yield "No line names the collective."
    average = run.average if run.average is not None else run.figures.average
    if average and run.busbw and average < 0.95 * run.busbw:
        yield (
            f"The average of {average:g} GB/s is lower because small sizes are included; judge "
            "the largest."
        )
    if run.failed:
        yield "The test calls its average FAILED: below 0.9 times NCCL_TESTS_MIN_BW."
    if run.largest is not None and run.busbw and not run.mismatch:
        smaller = [r for r in run.rows if r.size < run.largest.size]
        before = max(smaller, key=lambda r: r.best.busbw, default=run.largest)
        if run.busbw < _FALL * before.best.busbw:
            yield (
                f"It falls with size: {gbs(before.best.busbw)} GB/s at {size_words(before.size)}, "
                f"{gbs(run.busbw)} at {size_words(run.largest.size)}."
            )
    one = run.placement
    if one and one.cv_percent is not None and one.cv_percent > _JITTER_PERCENT and one.slowest_us:
        yield (
            f"Single iterations vary by {one.cv_percent:g} %, the slowest took "
            f"{micros(one.slowest_us)}."
        )
    if run.dropped:
        yield f"{run.dropped} more rows were not looked at."


def _mismatch(run: Run) -> Finding:
    assert run.ratio is not None
    assert run.collective is not None
    ranks = run.setup.ranks or 0
    right = factors.factor(run.collective, ranks)
    ratio = run.ratio.middle
    fitting = factors.ranks_from(run.ratio, run.collective)
    other = f"; {ratio:.3g} fits {fitting} ranks" if fitting else ""
    printed = run.placement.busbw if run.placement else 0.0
    return Finding(
        kind=KIND,
        id="ratio",
        severity=Severity.MEDIUM,
        says=(
            f"busbw does not fit algbw: their ratio is {ratio:.3g}, but for {run.name} over "
            f"{ranks} ranks it is always {right:.4g}{other}. With the right factor the busbw of "
            f"{gbs(printed)} GB/s is {gbs(run.busbw or 0.0)} GB/s. The ratio is a constant of the "
            "number of ranks and tells nothing about the algorithm: the row was edited, or other "
            "ranks took part than the text says."
        ),
        action="Run it again and keep the output as it is.",
        entity=None,
        line=run.largest.line if run.largest else run.line,
        cause=None,
        data={
            "collective": run.collective,
            "ranks": ranks,
            "ratio": round(ratio, 3),
            "factor": round(right, 4),
            "busbw_printed_gbs": printed,
            "fitting_ranks": fitting,
        },
        sources=("NVIDIA/nccl-tests 2.19.6 doc/PERFORMANCE.md",),
    )


def _data(run: Run, verdict: Verdict, platform: Platform | None) -> dict[str, object]:
    one = run.placement
    average = run.average if run.average is not None else run.figures.average
    data: dict[str, object] = {
        "verdict": verdict.verdict,
        "collective": run.collective,
        "ranks": run.ranks,
        "ranks_inferred": None if run.ranks is None else not (run.ranks_told or run.zero),
        "nodes": run.nodes,
        "gpu_model": platform.name if platform else None,
        "algorithm": run.setup.settings.get("NCCL_ALGO", "")[:40] or None,
        "size_bytes": run.size,
        "time_us": one.time_us if one else None,
        "algbw_gbs": one.algbw if one else run.figures.algbw,
        "busbw_gbs": None if run.busbw is None else rounded(run.busbw),
        "peak_busbw_gbs": None if run.peak is None else rounded(run.peak),
        "plateau_busbw_gbs": None if run.plateau is None else rounded(run.plateau),
        "avg_busbw_gbs": average,
        "latency_us": None if run.latency_us is None else rounded(run.latency_us),
        "expected_busbw_gbs": verdict.expected,
        "network_limit_gbs": None if verdict.limit_gbs is None else rounded(verdict.limit_gbs),
        "wrong": _wrong(run),
        "out_of_bounds": run.out_of_bounds,
    }
    return {key: value for key, value in data.items() if value is not None}


def _wrong(run: Run) -> int | None:
    """Return the first count of wrong elements, 0 where all were checked and right."""
    for _, one in run.wrong:
        if one.wrong:
            return one.wrong
    if run.out_of_bounds:
        return run.out_of_bounds
    checked = any(p.wrong is not None for r in run.rows for p in r.placements)
    return 0 if checked and not run.wrong else None


def _entity(run: Run) -> Entity | None:
    hosts = run.setup.hosts
    if len(hosts) == 1 and (run.nodes or 1) == 1:
        return Entity(Kind.NODE, hosts[0], host=hosts[0])
    return None
