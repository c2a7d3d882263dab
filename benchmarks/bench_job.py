"""``why job/ID`` of 512 GPUs on 64 nodes, a sample a minute, from a Prometheus to the answer.

Each GPU has the 40 series of `benchmarks.fleets.FORTY`, each node all those of its node_exporter;
one GPU of the job is sick. The peer are the same requests, sent together by bare aiohttp: what the
server takes whoever asks.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from dataclasses import replace

from benchmarks.bench_why import bare, requests_of
from benchmarks.fleets import FORTY, moment
from benchmarks.harness import Row, medians_async, ms
from bot.demo.prometheus import serving
from bot.surfaces.cli.inputs import make_engine
from engine.model import Verdict
from engine.simulate import Fault, Fleet
from engine.simulate.series import openmetrics_samples
from engine.sources import PrometheusConfig, PrometheusSource

NODES, ROUNDS = 64, 5
STEP_S, WINDOW_S = 60.0, 900.0
TARGET_S = 2.0
JOB, HOT = "4711", "node-17:3"


def rows() -> list[Row]:
    """Measure one job."""
    return asyncio.run(_rows())


async def _rows() -> list[Row]:
    struck = Fleet(nodes=1).start + 3600.0 - 1500.0
    fleet = Fleet(nodes=NODES, gpus=8, faults=(Fault("thermal_slowdown_hw", HOT, struck),))
    at, name = moment(fleet), f"job/{JOB}"
    engine = make_engine(())
    async with serving(_history(fleet)) as url:
        forms = await requests_of(engine, url, name, at)
        source = PrometheusSource(PrometheusConfig(url))
        try:
            async with bare(url) as ask:
                began = time.process_time()
                answer = await engine.why(name, source, at=at)
                spent = time.process_time() - began
                ours, floor = await medians_async(
                    ROUNDS, lambda: engine.why(name, source, at=at), lambda: ask(forms)
                )
        finally:
            await source.aclose()
    members = len(answer.members)
    if answer.verdict is not Verdict.DEGRADED or members != len(fleet.gpus):
        raise RuntimeError(f"why {name}: {answer.verdict.value} of {members} GPUs")
    return [
        Row(
            f"why {name} ({members} GPUs, {answer.diagnoses[0].cause})",
            ms(ours),
            f"{ms(floor)} (same {len(forms)} queries)",
            f"+{ms(ours - floor)}",
            f"< {TARGET_S:.0f} s",
            ours < TARGET_S,
        ),
        Row("  CPU time of the first answer, waves", f"{ms(spent)}, {answer.waves}"),
    ]


def _history(fleet: Fleet) -> Iterator[str]:
    """Yield OpenMetrics of what the exporters of a fleet say; all GPUs belong to one job."""
    at = moment(fleet)
    times, named = fleet.series(at - WINDOW_S, at, STEP_S)
    stamps = [f"{t:.3f}" for t in times.tolist()]
    wanted, before = frozenset(FORTY), ""
    for name, one in sorted(named, key=lambda pair: pair[0]):
        of_gpu = "UUID" in one.labels
        if of_gpu and name not in wanted:
            continue
        if name != before:
            yield f"# TYPE {name} unknown\n"
            before = name
        labels = {**one.labels, "hpc_job": JOB} if of_gpu else one.labels
        yield openmetrics_samples(name, replace(one, labels=labels), stamps)
    yield "# EOF\n"
