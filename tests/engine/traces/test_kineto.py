"""Chrome traces as versions of PyTorch, ROCm and JAX write them."""

from __future__ import annotations

import gzip
import json
from functools import cache
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.catalogue import Catalogue, load_catalogue
from engine.readers import read
from engine.traces import Figures, figures_of, summary
from tests.support.captures import ADD, GEMM, NCCL, T0_US, Chrome, chunks

loaded = cache(load_catalogue)


def figures(data: bytes, size: int = 1 << 16) -> Figures:
    return figures_of(chunks(data, size), "chrome_trace")


def sample(**names: Any) -> Chrome:
    capture = Chrome(**names)
    for i in range(200):
        name = NCCL if i % 10 == 9 else (GEMM if i % 2 else ADD)
        at = i * 100.0
        capture.add("cpu_op", "aten::mm", max(at - 45, 0), 30.0)
        capture.kernel(at + 5, 40.5, name, stream=20 if i % 10 == 9 else 7, launched=at)
    capture.copy(21_000.0, 300.0, "Memcpy HtoD (Pinned -> Device)", 3_000_000)
    capture.add("gpu_memset", "Memset (Device)", 21_500.0, 2.5, device=0, stream=7, correlation=0)
    for step in range(4):
        capture.range(f"ProfilerStep#{step}", step * 5_000.0, 4_900.0)
    return capture


def same(one: Figures, other: Figures) -> None:
    assert one.devices == other.devices
    assert one.steps == other.steps
    assert one.launches == other.launches


def test_figures() -> None:
    found = figures(sample().bytes(distributedInfo={"backend": "nccl", "rank": 3, "world_size": 8}))
    (device,) = found.devices
    assert (found.source, found.rank, found.world_size, found.backend) == ("kineto", 3, 8, "nccl")
    assert found.started_s == pytest.approx(T0_US / 1e6)
    assert device.name == "NVIDIA H100 80GB HBM3"
    assert (device.kernels, device.streams, device.memsets) == (200, 3, 1)
    assert device.span_ms == pytest.approx(21.4975)
    assert device.busy_ms == pytest.approx(200 * 0.0405 + 0.3025)
    assert device.communication_ms == pytest.approx(20 * 0.0405)
    assert device.exposed_communication_ms == pytest.approx(20 * 0.0405)
    assert device.small_kernels == 200
    (copy,) = device.copies
    assert (copy.direction, copy.memory, copy.size_bytes) == ("HtoD", "pinned", 3_000_000)
    assert copy.rate_gbs == 10.0
    assert found.launches is not None
    assert found.launches.count == 200
    assert found.steps is not None
    assert (found.steps.count, found.steps.median_ms) == (4, 4.9)


@pytest.mark.parametrize("size", [11, 1_000, 1 << 20])
def test_cut_anywhere(size: int) -> None:
    data = sample().bytes()
    same(figures(data, size), figures(data))


def test_in_another_order() -> None:
    capture = sample()
    whole = figures(capture.bytes())
    capture.events.reverse()
    same(figures(capture.bytes()), whole)


def test_the_bare_array_and_times_as_text() -> None:
    capture = sample()
    whole = figures(capture.bytes())
    for event in capture.events:
        event["ts"], event["dur"] = str(event["ts"]), str(event["dur"])
    bare = figures(orjson.dumps(capture.events))
    assert bare.source == "chrome"
    assert [d.busy_ms for d in bare.devices] == [d.busy_ms for d in whole.devices]


def test_as_pytorch_1_8_wrote_it() -> None:
    old = {
        "kernel": "Kernel",
        "gpu_memcpy": "Memcpy",
        "gpu_memset": "Memset",
        "cuda_runtime": "Runtime",
        "cpu_op": "Operator",
        "user_annotation": "Operator",
    }
    found = figures(sample(names=old).bytes())
    same(found, figures(sample().bytes()))


def test_begin_and_end_apart() -> None:
    capture = sample()
    whole = figures(capture.bytes())
    apart = []
    for event in capture.events:
        if event["cat"] == "kernel":
            begin = {k: v for k, v in event.items() if k != "dur"} | {"ph": "B"}
            end = {"ph": "E", "cat": "kernel", "pid": event["pid"], "tid": event["tid"]}
            apart += [begin, end | {"ts": event["ts"] + event["dur"]}]
        else:
            apart.append(event)
    capture.events = apart
    found = figures(capture.bytes())
    assert found.devices[0].kernels == 200
    # Absolute times in float64 are good to a quarter of a microsecond.
    assert found.devices[0].busy_ms == pytest.approx(whole.devices[0].busy_ms, rel=0.01)


def test_rocm() -> None:
    capture = Chrome()
    for i in range(60):
        at = i * 50.0
        capture.kernel(
            at + 20, 12.0, "Cijk_Ailk_Bljk_SB_MT64x64x16", launched=at, call="hipLaunchKernel"
        )
    capture.kernel(3_100.0, 500.0, "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)")
    capture.copy(3_700.0, 20.0, "Memcpy HtoD (Host -> Device)", 1_000)
    capture.add("cuda_runtime", "hipMalloc", 3_000.0, 90.0, correlation=99)
    found = figures(capture.bytes(deviceProperties=[{"id": 0, "name": "AMD Instinct MI300X"}]))
    (device,) = found.devices
    assert device.name == "AMD Instinct MI300X"
    assert device.communication_ms == 0.5
    assert found.launches is not None
    assert found.launches.count == 60
    assert found.allocations is not None
    assert found.allocations.count == 1
    assert device.copies[0].memory is None


def test_jax_names_processes() -> None:
    events: list[dict[str, Any]] = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:2"}},
        {"ph": "M", "pid": 1, "tid": 5, "name": "thread_name", "args": {"name": "Stream #5"}},
        {"ph": "M", "pid": 9, "name": "process_name", "args": {"name": "/host:CPU"}},
    ]
    for i in range(80):
        work = {
            "ph": "X",
            "pid": 1,
            "tid": 5,
            "ts": i * 100.0,
            "dur": 90.0,
            "name": f"fusion_{i % 3}",
        }
        events += [work, {**work, "pid": 9}]
    events.append({"ph": "X", "pid": 1, "tid": 5, "ts": 9_000, "dur": 5, "name": "MemcpyH2D"})
    found = figures(orjson.dumps({"displayTimeUnit": "ns", "traceEvents": events}))
    (device,) = found.devices
    assert (device.index, device.kernels, len(device.copies)) == (2, 80, 1)
    assert not found.cpu_traced


def test_odd_events_are_left_out_and_counted() -> None:
    capture = sample()
    whole = figures(capture.bytes())
    odd: list[Any] = [
        {"ph": "X", "cat": "kernel", "name": GEMM, "ts": -5, "dur": 3, "args": {"device": 0}},
        {"ph": "X", "cat": "kernel", "name": GEMM, "ts": T0_US, "dur": -3, "args": {"device": 0}},
        {"ph": "X", "cat": "kernel", "name": GEMM, "ts": "soon", "dur": 3, "args": None},
        {"ph": "X", "cat": "kernel", "name": 7, "ts": [], "dur": {}, "args": 5},
        {"ph": "X", "cat": "cuda_runtime", "name": None, "ts": None, "dur": None},
        {"ph": "X", "cat": "gpu_memcpy", "args": {"bytes": "many"}},
        {"ph": "X", "cat": ["kernel"]},
        {"cat": "kernel", "ph": {}},
        "kernel",
        None,
        7,
    ]
    capture.events += odd
    found = figures(capture.bytes())
    assert found.odd > 5
    assert found.devices[0].kernels == whole.devices[0].kernels
    assert found.devices[0].busy_ms == whole.devices[0].busy_ms


def test_packed_and_through_read(catalogue: Catalogue) -> None:
    data = sample().bytes()
    answer = read(gzip.compress(data), catalogue)
    assert answer.kinds == ("kineto",)
    assert answer == read(data, catalogue)


def test_cut_short_is_said(catalogue: Catalogue) -> None:
    answer = read(sample().bytes()[:-9_000], catalogue)
    assert any("ends in the middle" in note for note in answer.notes)


def test_the_summary_is_plain_data() -> None:
    found = summary(figures(sample().bytes()))
    assert orjson.loads(orjson.dumps(found)) == found
    assert found["devices"][0]["kernels"] == 200


def test_bounded_names_and_devices() -> None:
    capture = Chrome()
    for i in range(12_000):
        capture.kernel(i * 10.0, 5.0, f"kernel_{i}_" + "x" * 50, device=i % 300, stream=i)
    found = figures(capture.bytes())
    assert len(found.devices) == 64
    assert all(len(d.top_kernels) <= 20 for d in found.devices)


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
odd_args = scalars | st.dictionaries(
    st.sampled_from(["device", "stream", "correlation", "bytes", "kind"]), scalars, max_size=5
)
odd_events = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from(["X", "B", "E", "M", "i"]) | scalars,
        "cat": st.sampled_from(["kernel", "gpu_memcpy", "cuda_runtime", "cpu_op", "Trace"])
        | st.sampled_from(["user_annotation", "gpu_memset", "overhead"])
        | scalars,
        "name": st.sampled_from([GEMM, NCCL, "ProfilerStep#3", "cudaLaunchKernel"]) | scalars,
        "pid": scalars,
        "tid": scalars,
        "ts": st.floats(0, 1e7) | scalars,
        "dur": st.floats(0, 1e4) | scalars,
        "args": odd_args,
    },
)


@settings(max_examples=200, deadline=None)
@given(st.lists(odd_events | scalars, max_size=25))
def test_no_event_is_a_crash(events: list[Any]) -> None:
    data = b'{"schemaVersion": 1, "deviceProperties": [], "traceEvents": %b}' % (
        json.dumps(events).encode()
    )
    read(data, loaded())
