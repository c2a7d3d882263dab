"""Durations as histograms: what Prometheus gets, and that its labels are bounded."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from engine.nccl.inspector import parse_record
from engine.nccl.metrics import Durations
from engine.nccl.records import Record
from tests.support import inspector


def record(rank: int = 0, sequence: int = 1, duration_us: int = 1500, **more: object) -> Record:
    found = parse_record(inspector.record(rank, sequence, duration_us, **more))  # type: ignore[arg-type]
    assert found is not None
    return found


def samples(durations: Durations) -> dict[tuple[str, ...], float]:
    registry = CollectorRegistry()
    registry.register(durations)
    text = generate_latest(registry).decode()
    return {
        (s.name, *(f"{k}={v}" for k, v in sorted(s.labels.items()) if v)): s.value
        for family in text_string_to_metric_families(text)
        for s in family.samples
    }


def value(durations: Durations, name: str, **labels: str) -> float:
    wanted = {f"{k}={v}" for k, v in labels.items()}
    hits = [v for key, v in samples(durations).items() if key[0] == name and wanted <= set(key)]
    assert len(hits) == 1, (name, labels, hits)
    return hits[0]


def test_a_histogram_by_collective_rank_and_size() -> None:
    durations = Durations()
    for sequence, took in enumerate((900, 1500, 1500, 40_000)):
        durations.add(record(3, sequence, took, size=200 << 20), now=0.0)
    name = "nccl_allreduce_duration_seconds"
    labels = {"rank": "3", "size_bytes": str(256 << 20), "nranks": "8", "node": "node-1"}
    assert value(durations, f"{name}_count", **labels) == 4
    assert value(durations, f"{name}_sum", **labels) == pytest.approx(0.0439)
    assert value(durations, f"{name}_bucket", le="0.001", **labels) == 1
    assert value(durations, f"{name}_bucket", le="0.002", **labels) == 3
    assert value(durations, f"{name}_bucket", le="+Inf", **labels) == 4


def test_bytes_on_the_bus_over_time_are_the_bus_bandwidth() -> None:
    durations = Durations()
    durations.add(record(duration_us=2000, busbw=400.0), now=0.0)
    moved = value(durations, "nccl_allreduce_bus_bytes_total", rank="0")
    assert moved / 0.002 == pytest.approx(400e9)


def test_a_collective_that_nccl_does_not_know_is_other() -> None:
    durations = Durations()
    for name in ("Evil{x}", "Invalid"):
        durations.add(record(collective=name), now=0.0)
    assert value(durations, "nccl_other_duration_seconds_count", rank="0") == 2


def test_values_of_labels_are_bounded() -> None:
    durations = Durations(most_series=10_000)
    for number in range(200):
        durations.add(record(comm=f"0x{number:x}", comm_name="unknown"), now=0.0)
    comms = {k for key in samples(durations) for k in key if k.startswith("comm=")}
    assert len(comms) == 64 + 1
    assert value(durations, "gpuwhy_nccl_folded_total", label="comm") == 136


def test_label_sets_are_bounded() -> None:
    durations = Durations(most_series=10)
    for rank in range(25):
        durations.add(record(rank), now=0.0)
    assert value(durations, "gpuwhy_nccl_label_sets") == 10
    assert value(durations, "gpuwhy_nccl_dropped_records_total") == 15
    assert value(durations, "gpuwhy_nccl_records_total") == 25


def test_a_job_that_ended_makes_room() -> None:
    durations = Durations(most_series=10, forget_after_s=60)
    for rank in range(10):
        durations.add(record(rank, comm="0xold"), now=0.0)
    durations.add(record(0, comm="0xold"), now=50.0)
    durations.forget(now=100.0)
    assert value(durations, "gpuwhy_nccl_label_sets") == 1
    assert value(durations, "gpuwhy_nccl_forgotten_label_sets_total") == 9
    durations.add(record(1, comm="0xnew"), now=100.0)
    assert value(durations, "nccl_allreduce_duration_seconds_count", comm="0xnew") == 1


def test_averages_are_no_durations() -> None:
    durations = Durations()
    durations.add(record()._replace(mean=True), now=0.0)
    assert value(durations, "gpuwhy_nccl_dropped_records_total") == 1
    assert value(durations, "gpuwhy_nccl_label_sets") == 0
