"""LLM servers: their metrics and log lines, whatever the text holds."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.readers import read
from engine.readers.base import Context
from engine.readers.serving.histogram import Histogram
from engine.readers.serving.log import ServingLogReader
from engine.readers.serving.quantities import Quantities, canonical, server_of
from tests.support import packaged

DATA = Path(__file__).parents[2] / "data" / "read"
CATALOGUE = packaged.catalogue()
METRICS = {
    "vllm.prom": ("kv_cache_cascade",),
    "vllm-v0.prom": ("kv_cache_cascade",),
    "sglang.prom": ("kv_cache_cascade",),
    "triton.prom": ("serving_errors", "queue_saturation"),
    "trtllm.prom": (),
    "tgi.prom": ("admission_limit", "queue_saturation"),
    "dynamo.prom": (),
}
LOGS = {
    "vllm-log.txt": ("kv_cache_cascade",),
    "vllm-log-v0.txt": ("kv_cache_cascade",),
    "sglang-log.txt": ("kv_cache_cascade",),
    "tgi-log.txt": ("admission_limit", "queue_saturation"),
    "vllm-failure-log.txt": ("gpu_contention",),
}
_ODD = st.sampled_from(
    [
        "",
        "-1",
        "NaN",
        "+Inf",
        "-Inf",
        "1e308",
        "1e400",
        "0",
        "٣",
        "²",
        "99999999999999999999",
        "{",
        '"',
        "%",
    ]
)


@pytest.mark.parametrize("name", [*METRICS, *LOGS])
def test_a_sample_gives_its_causes(name: str) -> None:
    answer = read((DATA / name).read_bytes(), CATALOGUE)
    assert answer.causes == (METRICS | LOGS)[name]
    assert set(answer.kinds) & {"serving", "serving_log"}


def test_counts_of_engines_add_up_and_percentages_do_not() -> None:
    answer = read((DATA / "vllm.prom").read_bytes(), CATALOGUE)
    summary = next(f for f in answer.findings if f.id == "vllm")
    assert summary.data["running"] == 80
    assert summary.data["waiting"] == 237
    assert summary.data["kv_cache_percent"] == 99.25
    assert summary.data["kv_cache_max_percent"] == 99.4


def test_ranks_of_tensor_parallelism_are_one_engine() -> None:
    lines = [f'sglang:num_running_reqs{{model_name="q",tp_rank="{r}"}} 8' for r in range(8)]
    answer = read("\n".join(lines).encode(), CATALOGUE)
    assert answer.findings[0].data["running"] == 8


def test_many_services_are_summed_up_in_few_findings() -> None:
    lines = [f'vllm:num_requests_running{{model_name="m{i}"}} 1' for i in range(200)]
    answer = read("\n".join(lines).encode(), CATALOGUE)
    assert 1 <= len(answer.findings) <= 20
    assert answer.findings[0].data["services"] > 16


def test_every_name_of_a_quantity_is_found_under_its_server() -> None:
    quantities = Quantities(CATALOGUE)
    for quantity, entry in quantities.entries.items():
        for server, names in entry["names"].items():
            for name in names:
                base = name.partition("{")[0] + ("_sum" if entry["kind"] == "histogram" else "")
                assert server_of(base) == server
                assert any(n.quantity == quantity for n in quantities.of(base))


def test_spellings_of_relabelled_names() -> None:
    assert canonical("ray_vllm_num_requests_running") == "vllm:num_requests_running"
    assert canonical("vllm_num_requests_running") == "vllm:num_requests_running"
    assert server_of("vllmx") is None


def test_a_quantile_is_interpolated_as_prometheus_does_it() -> None:
    histogram = Histogram()
    histogram.add({0.1: 10.0, 1.0: 20.0, math.inf: 20.0}, 6.0, 20.0)
    found = histogram.quantile(0.75)
    assert found is not None
    assert found.value == pytest.approx(0.55)
    assert histogram.mean == pytest.approx(0.3)


@given(
    st.dictionaries(st.floats(0, 1e3), st.floats(0, 1e9), max_size=8),
    st.floats(0, 1),
)
def test_a_quantile_lies_in_its_bucket(buckets: dict[float, float], q: float) -> None:
    histogram = Histogram()
    histogram.add({**buckets, math.inf: max(buckets.values(), default=0.0)}, None, None)
    found = histogram.quantile(q)
    if found is not None:
        assert found.low <= found.value
        assert found.open or found.value <= found.high


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=120), max_size=20))
def test_random_text_is_no_log_of_a_server(lines: list[str]) -> None:
    reader = ServingLogReader(Context(CATALOGUE))
    for number, line in enumerate(lines, 1):
        reader.feed(number, line)
    assert reader.finish().findings == []


@settings(max_examples=100, deadline=None)
@given(st.data(), st.sampled_from([*METRICS, *LOGS]))
def test_a_damaged_sample_never_raises(data: st.DataObject, name: str) -> None:
    out = []
    for line in (DATA / name).read_text(encoding="utf-8").splitlines():
        words = line.split(" ")
        if data.draw(st.booleans()):
            words[data.draw(st.integers(0, len(words) - 1))] = data.draw(_ODD)
        text = " ".join(words)
        out.append(
            text[: data.draw(st.integers(0, len(text)))] if data.draw(st.booleans()) else text
        )
    answer = read("\n".join(out).encode(), CATALOGUE)
    assert all(cause in CATALOGUE.taxonomy for cause in answer.causes)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(
    ["vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc",
     "vllm:num_preemptions_total", "vllm:request_success_total", "vllm:inter_token_latency_seconds_sum",
     "vllm:inter_token_latency_seconds_count", "vllm:prefix_cache_hits_total"]),
    st.floats(), st.integers(0, 2)), max_size=30))  # fmt: skip
def test_any_values_give_an_answer(rows: list[tuple[str, float, int]]) -> None:
    text = "".join(f'{n}{{engine="{e}",model_name="m"}} {v!r}\n' for n, v, e in rows)
    answer = read(text.encode(), CATALOGUE)
    assert "nan" not in " ".join(f.says for f in answer.findings if f.kind == "serving").lower()
