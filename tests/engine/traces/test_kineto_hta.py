"""Figures of real Kineto traces agree with those of HolisticTraceAnalysis (hta.json has its version).

HTA also counts as work of the GPU what CUPTI lists beside it: the waits of the host (category
cuda_sync). They are no work, so we do not. One of the traces has any; with its waits made work the
figures are the same.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path

import orjson
import pytest

from engine.traces import Figures, figures_of
from tests.support.realdata import capture

EXPECTED = json.loads(Path("tests/data/traces/hta.json").read_text())["files"]
# Times of a day in float64 microseconds, as HTA keeps them, are good to some nanoseconds.
NEAR_US = 0.01


def as_hta_sees_it(path: Path) -> bytes:
    trace = orjson.loads(gzip.decompress(path.read_bytes()))
    for event in trace["traceEvents"]:
        if event.get("cat") == "cuda_sync":
            event["cat"] = "gpu_memset" if "Sync" in event["name"] else "kernel"
    return orjson.dumps(trace)


@cache
def seen(name: str) -> Figures:
    return figures_of(iter([as_hta_sees_it(capture("kineto", name))]), "chrome_trace")


@cache
def raw(name: str) -> Figures:
    packed = capture("kineto", name).read_bytes()
    return figures_of(iter([gzip.decompress(packed)]), "chrome_trace")


@pytest.mark.parametrize("name", EXPECTED)
def test_the_same_with_its_definitions(name: str) -> None:
    hta = EXPECTED[name]
    figures = seen(name)
    (device,) = figures.devices

    assert device.span_ms * 1e3 == pytest.approx(hta["span_us"], abs=NEAR_US)
    assert device.idle_ms * 1e3 == pytest.approx(hta["idle_us"], abs=NEAR_US)
    assert device.compute_ms * 1e3 == pytest.approx(hta["compute_us"], abs=NEAR_US)
    other_ms = device.busy_ms - device.compute_ms
    assert other_ms * 1e3 == pytest.approx(hta["other_us"], abs=NEAR_US)
    if device.communication_ms:
        # HTA rounds to two decimals.
        assert device.overlap_percent == pytest.approx(hta["overlap_percent"], abs=0.005)
    else:
        assert device.overlap_percent is None


@pytest.mark.parametrize("name", EXPECTED)
def test_every_kernel(name: str) -> None:
    figures = seen(name)
    ours = {k.name[:100]: k for k in figures.devices[0].top_kernels}
    kernels = [k for k in EXPECTED[name]["kernels"] if k["type"] != "MEMORY"]
    # What HTA's wider kernel type takes in, and names that are alike in their first 100 characters.
    names = [k["name"] for k in EXPECTED[name]["kernels"]]
    compared = 0
    for hta in kernels:
        kernel = ours.get(hta["name"])
        if kernel is None or names.count(hta["name"]) > 1:
            continue
        compared += 1
        assert kernel.total_ms * 1e3 == pytest.approx(hta["sum_us"], abs=NEAR_US)
        assert kernel.max_us == pytest.approx(hta["max_us"])
        assert kernel.min_us == pytest.approx(hta["min_us"])
        assert kernel.mean_us == pytest.approx(hta["mean_us"], abs=0.001)
        assert kernel.kind == {"COMMUNICATION": "communication"}.get(hta["type"], "compute")
    assert compared >= min(5, len(kernels))


@pytest.mark.parametrize("name", EXPECTED)
def test_copies(name: str) -> None:
    figures = seen(name)
    copies = figures.devices[0].copies
    for hta in EXPECTED[name]["kernels"]:
        if not hta["name"].startswith("Memcpy"):
            continue
        direction = hta["name"].split()[1]
        memory = next((m for m in ("pageable", "pinned") if m in hta["name"].lower()), None)
        (ours,) = [c for c in copies if (c.direction, c.memory) == (direction, memory)]
        assert ours.total_ms * 1e3 == pytest.approx(hta["sum_us"], abs=NEAR_US)


@pytest.mark.parametrize("name", EXPECTED)
def test_as_it_is_differs_by_waits_only(name: str) -> None:
    path = capture("kineto", name)
    hta = EXPECTED[name]
    (device,) = raw(name).devices
    trace = orjson.loads(gzip.decompress(path.read_bytes()))
    waits = any(e.get("cat") == "cuda_sync" for e in trace["traceEvents"])
    same = device.busy_ms * 1e3 == pytest.approx(hta["span_us"] - hta["idle_us"], abs=NEAR_US)
    assert same is not waits


@pytest.mark.parametrize("name", EXPECTED)
def test_launches(name: str) -> None:
    hta = EXPECTED[name]
    (device,) = raw(name).devices
    if not hta["launched"]:
        # HTA knows the calls of CUDA only, not those of HIP.
        assert "ROCm" in name
        return
    assert device.launch_delay_median_us == pytest.approx(
        hta["launch_delay_median_us"], abs=NEAR_US
    )
    assert device.queued_launch_percent == pytest.approx(hta["queued_percent"], abs=0.01)
    if hta["launched"] == device.kernels:
        assert device.small_kernel_percent == pytest.approx(hta["small_percent"], abs=0.001)
