"""What of a service no series holds as it is: listed names, age, the GPUs beneath."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from engine.samples import Batch, Frame, RawSeries
from engine.signals.normalise import build_frame
from tests.support.readings import AT, IDLE, STOCK, catalogue, gpu, series

POD = {"namespace": "ml", "pod": "llama-0"}


def services(*given: RawSeries) -> Frame:
    """Return the frame of services of some series."""
    return build_frame(Batch(list(given), AT, 0), catalogue(), at=AT, window_s=900.0).others[
        "service"
    ]


def running(**labels: str) -> RawSeries:
    """Return a reading by which an engine is known."""
    return series("vllm:num_requests_running", 8, {"model_name": "m", "engine": "0", **labels})


def test_the_gpus_of_the_pod_count_not_the_others_of_its_host() -> None:
    near = gpu(IDLE, host="node-1", index=0, exported_pod="llama-0", exported_namespace="ml")
    far = gpu(STOCK, host="node-1", index=1)
    frame = services(running(instance="10.0.0.9:8000", **POD), *near, *far)
    _, values = frame.samples("service_gpu_active", 0)
    assert set(values) == {0.0}


def test_without_a_pod_the_busiest_gpu_of_the_host_counts() -> None:
    near = [*gpu(IDLE, host="node-1", index=0), *gpu(STOCK, host="node-1", index=1)]
    frame = services(running(instance="node-1:8000"), *near, *gpu(STOCK, host="node-2", index=0))
    _, values = frame.samples("service_gpu_active", 0)
    assert set(values) == {0.95}


def test_without_gpus_nothing_is_said_of_them() -> None:
    frame = services(running(instance="node-7:8000"), *gpu(STOCK, host="node-1"))
    assert frame.samples("service_gpu_active", 0)[0].size == 0


def test_the_age_is_that_at_each_sample() -> None:
    started = series("process_start_time_seconds", AT - 1000.0, {"instance": "node-1:8000"})
    frame = services(running(instance="node-1:8000"), started)
    times, ages = frame.samples("service_age", 0)
    assert ages[-1] == pytest.approx(1000.0)
    assert np.allclose(ages, times - (AT - 1000.0))


@pytest.mark.parametrize(
    ("written", "expected"),
    [({"": AT, "c,d,e": AT - 60}, 0), ({"": AT - 60, "c,d,e": AT}, 3), ({" , ,": AT}, 0)],
)
def test_of_lists_that_stay_exported_the_newest_counts(
    written: Mapping[str, float], expected: int
) -> None:
    lists = [
        series(
            "vllm:lora_requests_info",
            value,
            {"instance": "node-1:8000", "max_lora": "2", "waiting_lora_adapters": names},
        )
        for names, value in written.items()
    ]
    frame = services(running(instance="node-1:8000"), *lists)
    _, values = frame.samples("lora_adapters_waiting", 0)
    assert set(values) == {expected}


def test_a_process_that_serves_no_model_is_no_service() -> None:
    node_exporter = series("process_start_time_seconds", 1.0, {"instance": "node-1:9100"})
    frame = services(running(instance="node-1:8000"), node_exporter)
    assert [e.name for e in frame.entities] == ["svc/m#node-1:8000 engine 0"]
