"""The timeline table: what a capture looks like, and what is said of it; as Kineto and as nsys."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from engine.catalogue import load_catalogue
from engine.model import Read, Severity
from engine.readers import read
from tests.support.captures import ADD, GEMM, NCCL, Chrome, K, Nsys

Capture = Chrome | Nsys
catalogue = cache(load_catalogue)


@pytest.fixture(params=[Chrome, Nsys])
def make(request: pytest.FixtureRequest) -> Callable[[], Any]:
    return request.param


def judged(capture: Capture, folder: Path) -> Read:
    if isinstance(capture, Chrome):
        return read(capture.bytes(), catalogue())
    return read(capture.write(folder / "export.sqlite"), catalogue())


def one(answer: Read, id_: str) -> Any:
    (found,) = [f for f in answer.findings if f.id == id_]
    return found


def dense(capture: Capture, until_us: float = 50_000.0, device: int = 0) -> float:
    """Kernels back to back, launched well ahead."""
    at = 100.0
    while at < until_us:
        capture.kernel(at, 198.0, device=device, launched=max(at - 3_000.0, 0.0))
        at += 200.0
    return at


def test_a_dense_row_is_healthy(make: Callable[[], Any], tmp_path: Path) -> None:
    capture = make()
    dense(capture)
    answer = judged(capture, tmp_path)
    assert answer.causes == ("healthy",)
    assert one(answer, "dense").data["idle_percent"] == pytest.approx(1.0, abs=0.1)


def test_small_kernels_in_a_full_queue_are_no_fault(
    make: Callable[[], Any], tmp_path: Path
) -> None:
    capture = make()
    for i in range(2_000):
        capture.kernel(1_000.0 + i * 10.0, 9.8, ADD, launched=i * 8.0)
    answer = judged(capture, tmp_path)
    assert answer.causes == ("healthy",)
    assert one(answer, "gpu_figures").data["small_kernel_percent"] == 100.0


def test_tiny_kernels_with_idle_time_between_are_launch_bound(
    make: Callable[[], Any], tmp_path: Path
) -> None:
    capture = make()
    for i in range(1_000):
        capture.kernel(i * 60.0 + 8.0, 10.0, ADD, launched=i * 60.0, launch_us=6.0)
    answer = judged(capture, tmp_path)
    assert answer.causes == ("launch_bound",)
    found = one(answer, "launch")
    assert found.severity is Severity.HIGH
    assert found.data["small_kernel_percent"] == 100.0
    assert found.data["queued_launch_percent"] == 0.0
    assert "torch.compile" in found.action


def test_gaps_under_a_data_loader(make: Callable[[], Any], tmp_path: Path) -> None:
    capture = make()
    name = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    for step in range(10):
        at = step * 30_000.0
        capture.range(name, at, 18_000.0)
        for i in range(20):
            capture.kernel(at + 18_200 + i * 500, 499.0, launched=at + 18_100 + i * 10)
    answer = judged(capture, tmp_path)
    assert answer.causes[0] == "data_loader_stall"
    found = one(answer, "data_wait")
    assert found.data["lost_ms"] == pytest.approx(9 * 18.0, rel=0.01)
    assert found.data["gap_count"] == 9
    assert found.data["longest_gap_ms"] == pytest.approx(20.0, rel=0.02)
    assert "num_workers" in found.action
    assert any("num_workers" in claim for claim in answer.errata)


def test_own_ranges_that_load_data(make: Callable[[], Any], tmp_path: Path) -> None:
    capture = make()
    for step in range(10):
        at = step * 10_000.0
        capture.range("data_loading", at, 4_000.0)
        for i in range(10):
            capture.kernel(at + 4_100 + i * 580, 579.0, launched=at + 4_050 + i * 10)
    assert judged(capture, tmp_path).causes == ("data_loader_stall",)


def test_a_thread_that_sleeps_in_the_system(tmp_path: Path) -> None:
    capture = Nsys()
    for step in range(10):
        at = step * 10_000.0
        capture.wait("pthread_cond_timedwait", at, 4_000.0)
        for i in range(10):
            capture.kernel(at + 4_100 + i * 580, 579.0, launched=at + 4_050 + i * 10)
    answer = judged(capture, tmp_path)
    assert answer.causes == ("data_loader_stall",)
    assert one(answer, "system_wait").data["gap_count"] == 9


def test_waits_for_the_gpu(make: Callable[[], Any], tmp_path: Path) -> None:
    capture = make()
    for step in range(40):
        at = step * 2_000.0
        capture.kernel(at + 20, 500.0, launched=at)
        call = (at + 30, 495.0)
        if isinstance(capture, Nsys):
            capture.call("cudaStreamSynchronize_v3020", *call)
        else:
            capture.add("cuda_runtime", "cudaStreamSynchronize", *call, correlation=90_000 + step)
        capture.kernel(at + 1_500, 480.0, launched=at + 1_490)
    answer = judged(capture, tmp_path)
    assert answer.causes[0] == "allocator_stall"
    assert "set_sync_debug_mode" in one(answer, "synchronisation").action


def test_calls_that_allocate(make: Callable[[], Any], tmp_path: Path) -> None:
    capture = make()
    for step in range(40):
        at = step * 2_000.0
        for i in range(2):
            capture.kernel(at + 1_000 + 500 * i, 495.0, launched=at + 960 + i)
        if isinstance(capture, Nsys):
            capture.call("cudaMalloc_v3020", at + 20, 900.0)
        else:
            capture.add("cuda_runtime", "cudaMalloc", at + 20, 900.0, correlation=90_000 + step)
    answer = judged(capture, tmp_path)
    assert answer.causes == ("allocator_stall",)
    assert one(answer, "allocator").data["lost_ms"] == pytest.approx(39 * 0.9, rel=0.02)


def test_checkpoints(make: Callable[[], Any], tmp_path: Path) -> None:
    capture = make()
    at = dense(capture, 100_000.0)
    capture.range("save_checkpoint", at, 80_000.0)
    at += 80_100.0
    for i in range(300):
        capture.kernel(at + i * 200.0, 198.0, launched=at + i * 10.0 - 50)
    assert judged(capture, tmp_path).causes == ("checkpoint_stall",)


def test_communication_after_compute(make: Callable[[], Any], tmp_path: Path) -> None:
    capture = make()
    for step in range(20):
        at = 1_000 + step * 10_000.0
        for i in range(7):
            capture.kernel(at + i * 1_000, 999.0, launched=at - 900 + i)
        capture.kernel(at + 7_000, 2_990.0, NCCL, stream=20, launched=at - 500)
    answer = judged(capture, tmp_path)
    assert answer.causes == ("communication_bound",)
    found = one(answer, "exposed_communication")
    assert found.data["overlap_percent"] == 0.0
    assert found.data["share_percent"] == pytest.approx(30, abs=1)
    assert any("gradient_as_bucket_view" in claim for claim in answer.errata)


def test_communication_beside_compute_is_healthy(make: Callable[[], Any], tmp_path: Path) -> None:
    capture = make()
    for step in range(20):
        at = 1_000 + step * 10_000.0
        for i in range(10):
            capture.kernel(at + i * 1_000, 999.0, launched=at - 900 + i)
        capture.kernel(at + 5_000, 4_500.0, NCCL, stream=20, launched=at - 500)
    answer = judged(capture, tmp_path)
    assert answer.causes == ("healthy",)
    assert one(answer, "gpu_figures").data["overlap_percent"] > 99


@pytest.mark.parametrize("late", [0, 1, 3])
def test_one_gpu_comes_last(make: Callable[[], Any], tmp_path: Path, late: int) -> None:
    capture = make()
    for step in range(30):
        at = 1_000 + step * 10_000.0
        for device in range(4):
            compute = 8_500.0 if device == late else 5_000.0
            for i in range(2):
                capture.kernel(
                    at + i * compute / 2, compute / 2 - 1, device=device, launched=at - 900
                )
            capture.kernel(
                at + compute, 9_900 - compute, NCCL, device=device, stream=20, launched=at - 500
            )
    answer = judged(capture, tmp_path)
    assert answer.causes == ("straggler", "waiting_on_straggler")
    found = one(answer, "late_gpu")
    assert found.data["late_gpu"] == late
    assert found.entity.gpu == late
    assert found.data["collectives"] == 30


def test_input_copies_from_pageable_memory(make: Callable[[], Any], tmp_path: Path) -> None:
    capture = make()
    for step in range(20):
        at = 1_000 + step * 10_000.0
        if isinstance(capture, Nsys):
            capture.copy(at, 2_000.0, 12_000_000, 1, 0)
        else:
            capture.copy(at, 2_000.0, "Memcpy HtoD (Pageable -> Device)", 12_000_000)
        for i in range(8):
            capture.kernel(at + 2_000 + i * 1_000, 999.0, launched=at - 900 + i)
    answer = judged(capture, tmp_path)
    assert answer.causes == ("allocator_stall",)
    found = one(answer, "exposed_copies")
    assert (found.data["direction"], found.data["host_memory"]) == ("HtoD", "pageable")
    assert found.data["rate_gbs"] == pytest.approx(6.0)
    assert "pin_memory" in found.action


def test_input_copies_from_pinned_memory(make: Callable[[], Any], tmp_path: Path) -> None:
    capture = make()
    for step in range(20):
        at = 1_000 + step * 10_000.0
        if isinstance(capture, Nsys):
            capture.copy(at, 2_000.0, 50_000_000, 1, 1)
        else:
            capture.copy(at, 2_000.0, "Memcpy HtoD (Pinned -> Device)", 50_000_000)
        for i in range(8):
            capture.kernel(at + 2_000 + i * 1_000, 999.0, launched=at - 900 + i)
    answer = judged(capture, tmp_path)
    assert answer.causes == ("data_loader_stall",)
    assert "Gen5" in one(answer, "exposed_copies").action


def test_one_long_step(make: Callable[[], Any], tmp_path: Path) -> None:
    capture = make()
    at = 0.0
    for step in range(12):
        length = 30_000.0 if step == 7 else 10_000.0
        capture.range(f"ProfilerStep#{step}", at, length)
        for i in range(int(length / 500)):
            capture.kernel(at + i * 500, 499.0, launched=max(at - 400 + i, 0))
        at += length
    found = one(judged(capture, tmp_path), "long_step")
    assert found.data["step_longest_index"] == 7
    assert found.data["step_median_ms"] == pytest.approx(10.0)
    assert found.cause is None


def test_gaps_that_nothing_explains(make: Callable[[], Any], tmp_path: Path) -> None:
    capture = make()
    for step in range(60):
        at = step * 10_000.0
        capture.kernel(at + 5_010, 4_990.0, launched=at + 5_000)
    answer = judged(capture, tmp_path)
    assert answer.causes == ()
    assert one(answer, "gaps").data["gap_count"] == 59


def test_a_start_is_no_steady_state(make: Callable[[], Any], tmp_path: Path) -> None:
    capture = make()
    capture.kernel(0.0, 20.0, launched=0.0)
    if isinstance(capture, Nsys):
        capture.call("cudaFree_v3020", 100.0, 3_000_000.0)
    else:
        capture.add("cuda_runtime", "cudaFree", 100.0, 3_000_000.0, correlation=0)
    for i in range(100):
        capture.kernel(3_000_200.0 + i * 100, 99.0, launched=3_000_100.0 + i)
    assert judged(capture, tmp_path).causes == ("cold_start",)


def test_graphs_as_blocks(tmp_path: Path) -> None:
    capture = Nsys()
    for i in range(200):
        capture.add(
            f"{K}GRAPH_TRACE", i * 1_000.0, 990.0, deviceId=0, graphId=3, streamId=7,
            correlationId=i,
        )  # fmt: skip
        capture.call("cudaGraphLaunch_v10000", max(i * 1_000.0 - 900, 0.0), 20.0, i)
    answer = judged(capture, tmp_path)
    found = one(answer, "cuda_graphs")
    assert found.data["graph_launches"] == 200
    assert "--cuda-graph-trace=node" in found.action
    assert answer.causes == ("healthy",)


def test_graphs_whose_kernels_are_there() -> None:
    capture = Chrome()
    for i in range(100):
        capture.kernel(1_000 + i * 1_000.0, 990.0, launched=i * 900.0, call="cudaGraphLaunch")
    answer = judged(capture, Path())
    assert one(answer, "cuda_graphs").data["graph_calls"] == 100


def test_no_work_of_a_gpu(make: Callable[[], Any], tmp_path: Path) -> None:
    capture = make()
    for i in range(50):
        if isinstance(capture, Nsys):
            capture.call("cudaLaunchKernel_v7000", i * 100.0, 5.0, i)
        else:
            capture.add("cuda_runtime", "cudaLaunchKernel", i * 100.0, 5.0, correlation=i)
    answer = judged(capture, tmp_path)
    assert answer.causes == ("no_data",)
    assert "50 launches" in one(answer, "no_gpu_work").says


def test_too_little_to_judge(make: Callable[[], Any], tmp_path: Path) -> None:
    capture = make()
    for i in range(10):
        capture.kernel(i * 5_000.0, 10.0, launched=i * 5_000.0)
    answer = judged(capture, tmp_path)
    assert answer.causes == ()
    assert any("too few to judge" in note for note in answer.notes)


def test_the_profiler_takes_time(tmp_path: Path) -> None:
    capture = Nsys()
    dense(capture)
    capture.add(f"{K}OVERHEAD", 10_000.0, 9_000.0, overheadType=1)
    found = one(judged(capture, tmp_path), "profiler_overhead")
    assert found.data["overhead_ms"] == 9.0


def test_the_same_input_gives_the_same_answer(make: Callable[[], Any], tmp_path: Path) -> None:
    capture = make()
    for i in range(300):
        capture.kernel(i * 60.0 + 8.0, 10.0, GEMM if i % 3 else ADD, launched=i * 60.0)
    first = judged(capture, tmp_path)
    (tmp_path / "export.sqlite").unlink(missing_ok=True)
    assert judged(capture, tmp_path) == first
