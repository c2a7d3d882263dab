"""Servers that refuse large queries: asked in parts, and what is lost even so is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.diagnosis import Engine
from engine.errors import SourceError
from engine.samples import Selection
from engine.sources import PrometheusConfig, PrometheusSource
from tests.engine.sources.test_servers_agree import AT, NAMES, fleet
from tests.support.readings import catalogue
from tests.support.servers import (
    import_openmetrics,
    load_openmetrics,
    start_prometheus,
    start_victoriametrics,
)

# A series of 15 minutes has 61 samples, a metric of the fleet 4 series: two metrics pass.
TWO_METRICS = 500
# VictoriaMetrics counts whole blocks: all 240 samples of each series.
ONE_METRIC = 1_500


async def fetched(url: str) -> tuple[set[str], list[str]]:
    source = PrometheusSource(PrometheusConfig(url))
    try:
        batch = await source.select([Selection((*NAMES, "node_load1"))], at=AT)
    finally:
        await source.aclose()
    return {s.name for s in batch.series}, batch.warnings


async def test_prometheus_with_a_cap_on_samples_is_asked_in_parts(tmp_path: Path):
    load_openmetrics(fleet(), tmp_path)
    with start_prometheus(tmp_path, extra_args=[f"--query.max-samples={TWO_METRICS}"]) as server:
        names, warnings = await fetched(server.url)
    assert names == {*NAMES, "node_load1"}
    assert warnings == []


async def test_victoriametrics_with_a_cap_on_samples_is_asked_in_parts(tmp_path: Path):
    caps = [f"-search.maxSamplesPerQuery={ONE_METRIC}"]
    with start_victoriametrics(tmp_path, extra_args=caps) as server:
        import_openmetrics(server, fleet())
        names, warnings = await fetched(server.url)
    assert names == {*NAMES, "node_load1"}
    assert warnings == []


async def test_what_is_too_large_even_alone_is_an_error_that_names_it(tmp_path: Path):
    load_openmetrics(fleet(), tmp_path)
    args = ["--query.max-samples=100"]
    with (
        start_prometheus(tmp_path, extra_args=args) as server,
        pytest.raises(SourceError, match="too many samples"),
    ):
        await fetched(server.url)


async def test_a_diagnosis_on_a_capped_server_says_what_it_lacks(tmp_path: Path):
    """One metric has more series than the server gives out; all others of the GPU are there."""
    lines = fleet().removesuffix("# EOF\n").splitlines()
    lines += ["# TYPE DCGM_FI_DEV_GPU_TEMP gauge"]
    lines += [
        f'DCGM_FI_DEV_GPU_TEMP{{Hostname="node-3",gpu="0",slot="{n}"}} 50 {AT - 15 * k:.3f}'
        for n in range(40)
        for k in range(60, -1, -1)
    ]
    load_openmetrics("\n".join([*lines, "# EOF"]) + "\n", tmp_path)
    with start_prometheus(tmp_path, extra_args=["--query.max-samples=1000"]) as server:
        source = PrometheusSource(PrometheusConfig(server.url))
        try:
            answer = await Engine(catalogue()).why("node-3:0", source, at=AT)
        finally:
            await source.aclose()
    assert answer.verdict.value == "unknown"
    assert any("no readings of DCGM_FI_DEV_GPU_TEMP" in w for w in answer.warnings)
    assert "sm_clock" not in {u.needs for u in answer.unknown if u.why == "not exported"}
