"""Scenarios of services, AMD nodes, hosts, networks and storage, and the healthy ones of those."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from engine.samples import RawSeries, Selection
from engine.simulate.scenarios import (
    amd,
    amd_errors,
    healthy_more,
    host,
    network,
    services_host,
    services_queue,
    services_tokens,
    storage,
)
from engine.simulate.scenarios.base import AT, Run, Scenario, Severity, openmetrics, realise
from engine.simulate.scenarios.recorder import Recorder
from engine.simulate.scenarios.registry import SCENARIOS
from engine.simulate.scenarios.serving import LARGE, SMALL, Load, settle
from engine.simulate.scenarios.serving_vllm import vllm
from engine.sources.exposition import FileSource
from engine.topology import parse_target
from tests.support.servers import binary

SERVICES = (*services_queue.SCENARIOS, *services_tokens.SCENARIOS, *services_host.SCENARIOS)
AMD = (*amd.SCENARIOS, *amd_errors.SCENARIOS)
AROUND = (*host.SCENARIOS, *network.SCENARIOS, *storage.SCENARIOS)
HEALTHY = healthy_more.SCENARIOS
EVERY = (*SERVICES, *AMD, *AROUND, *HEALTHY)
# One of each exporter: these are written to files and read back.
SAMPLE = ("kv-cache-cascade-vllm", "queue-saturation-triton", "amd-ecc-uncorrectable",
          "host-swapping", "ib-link-down", "nfs-slow", "healthy-amd-partitions")  # fmt: skip

TAXONOMY = Path(__file__).parents[3] / "knowledge" / "taxonomy.yaml"

every = pytest.mark.parametrize("scenario", EVERY, ids=lambda one: one.id)


def _table(series: list[RawSeries]) -> dict[tuple[str, tuple[tuple[str, str], ...]], RawSeries]:
    return {(one.name, tuple(sorted(one.labels.items()))): one for one in series}


def _bytes(run: Run) -> list[tuple[str, list[tuple[str, str]], bytes, bytes]]:
    return [(one.name, sorted(one.labels.items()), one.ts.tobytes(), one.values.tobytes())
            for one in run.series]  # fmt: skip


def test_there_are_as_many_as_the_exam_needs():
    assert (len(SERVICES), len(AMD), len(AROUND), len(HEALTHY)) >= (18, 12, 16, 14)
    assert all(SCENARIOS[one.id] is one for one in EVERY)


@every
def test_the_same_arguments_give_the_same_bytes_and_another_seed_gives_others(scenario):
    first, again, other = (_bytes(realise(scenario, Severity.CLEAR, seed)) for seed in (3, 3, 4))
    assert first == again
    assert first != other


@every
def test_readings_are_what_a_server_could_hold(scenario):
    severity = list(Severity)[len(scenario.id) % 3]
    series = realise(scenario, severity, 1).series
    assert series
    for one in series:
        assert np.isfinite(one.values).all(), one.name
        assert one.values.min() >= 0.0, (one.name, one.labels)
        assert one.ts[-1] <= AT
    assert all(re.fullmatch(r"[a-zA-Z_:][a-zA-Z0-9_:]*", name) for name in {s.name for s in series})
    for label, value in {pair for one in series for pair in one.labels.items()}:
        assert re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", label)
        assert value
        assert value.isprintable(), label


@every
def test_targets_and_causes_are_words_that_everybody_uses(scenario: Scenario):
    assert set(scenario.causes) <= set(re.findall(r"\w+", TAXONOMY.read_text(encoding="utf-8")))
    assert (scenario.causes == ()) == (scenario in HEALTHY)
    assert parse_target(scenario.target).text == scenario.target
    if scenario.culprit is not None:
        assert parse_target(scenario.culprit).host is not None


@pytest.mark.parametrize("ident", SAMPLE)
async def test_a_file_of_a_scenario_reads_back_as_it_was(tmp_path, ident):
    run = realise(SCENARIOS[ident], Severity.SEVERE, 2)
    path = tmp_path / "scenario.om"
    path.write_text(openmetrics(run), encoding="utf-8")
    batch = await FileSource([path]).select([Selection((), (), 7200.0)], at=run.at)
    wrote, read = _table(run.series), _table(batch.series)
    assert read.keys() == wrote.keys()
    for key, one in wrote.items():
        np.testing.assert_allclose(read[key].ts, one.ts)
        np.testing.assert_array_equal(read[key].values, one.values)


@pytest.mark.parametrize("ident", SAMPLE[:4])
def test_promtool_makes_blocks_of_a_scenario(tmp_path, ident):
    path = tmp_path / "scenario.om"
    path.write_text(openmetrics(realise(SCENARIOS[ident], Severity.MILD, 0)), encoding="utf-8")
    made = subprocess.run(
        [binary("promtool"), "tsdb", "create-blocks-from", "openmetrics", path, tmp_path / "db"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert made.returncode == 0, made.stderr
    assert list((tmp_path / "db").glob("*/meta.json"))


@pytest.mark.parametrize("scenario", SERVICES, ids=lambda one: one.id)
def test_histograms_of_services_are_cumulative(scenario):
    buckets: dict[tuple[str, tuple[tuple[str, str], ...]], list[tuple[float, RawSeries]]] = {}
    for one in realise(scenario, Severity.CLEAR, 5).series:
        if one.name.endswith("_bucket"):
            labels = dict(one.labels)
            bound = float(labels.pop("le"))
            key = (one.name, tuple(sorted(labels.items())))
            buckets.setdefault(key, []).append((bound, one))
    for found in buckets.values():
        ordered = [one.values for _, one in sorted(found, key=lambda pair: pair[0])]
        assert (np.diff(np.array(ordered), axis=0) >= 0).all()
        assert (np.diff(np.array(ordered), axis=1) >= 0).all()


def test_a_service_obeys_littles_law():
    state = settle(LARGE, Load(users=60.0, prompt=1000.0, output=300.0), 5)
    inside = state.rps * (state.prefill_s + state.decode_s)
    np.testing.assert_allclose(inside, state.running, rtol=0.02)
    assert (state.waiting == 0).all()


def test_requests_beyond_the_batch_wait_and_do_not_make_it_faster():
    some = settle(SMALL, Load(users=256.0, prompt=200.0, output=100.0), 3)
    more = settle(SMALL, Load(users=512.0, prompt=200.0, output=100.0), 3)
    np.testing.assert_allclose(more.rps, some.rps)
    np.testing.assert_allclose(more.waiting, 256.0)
    np.testing.assert_allclose(more.queue_s, 256.0 / some.rps)


@pytest.mark.parametrize(
    ("version", "here", "absent"),
    [
        ("v1", "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        ("v1-2025", "vllm:time_per_output_token_seconds_bucket", "vllm:prompt_tokens_by_source"),
        ("v0", "vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc"),
    ],
)
def test_each_version_of_vllm_has_its_own_names(version, here, absent):
    record = Recorder(np.random.default_rng(1), np.arange(AT - 300.0, AT, 15.0), {"job": "vllm"})
    series = vllm(record, settle(SMALL, Load(), record.ts.size), "m", version=version)
    names = {one.name for one in series}
    assert here in names
    assert absent not in names
    assert any("engine" in one.labels for one in series) == (version != "v0")
