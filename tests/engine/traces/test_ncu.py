"""What Nsight Compute printed for single kernels, as CSV, as text, and for two runs."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.catalogue import Catalogue
from engine.errors import InputError
from engine.model import Finding, Read
from engine.readers import Reading, read
from engine.traces.ncu.numbers import converted, number
from engine.traces.ncu.profile import short_name
from tests.support import packaged

PACKAGED = packaged.knowledge()
SAMPLES = Path(__file__).parents[2] / "data" / "read"
HEAD = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",'
    '"Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"'
)
SOL = "GPU Speed Of Light Throughput"
TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"


def csv_of(kernels: Mapping[str, Mapping[str, tuple[str, str]]]) -> str:
    rows = [HEAD]
    for launch, (kernel, metrics) in enumerate(kernels.items()):
        rows += [
            f'"{launch}","71","python3","127.0.0.1","{kernel}","1","7","(128, 1, 1)","(64, 1, 1)",'
            f'"0","9.0","{SOL}","{name}","{unit}","{value}"'
            for name, (unit, value) in metrics.items()
        ]
    return "\n".join(rows) + "\n"


def sol(sm: float, memory: float, **more: tuple[str, str]) -> dict[str, tuple[str, str]]:
    return {
        "Compute (SM) Throughput": ("%", f"{sm:.2f}"),
        "Memory Throughput": ("%", f"{memory:.2f}"),
        "Duration": ("us", "100.00"),
        **{name.replace("__DOT__", "."): value for name, value in more.items()},
    }


def one(text: str, catalogue: Catalogue) -> list[Finding]:
    return list(read(text.encode(), catalogue).findings)


@pytest.mark.parametrize(
    ("kernel", "metrics", "id_", "cause"),
    [
        ("gemm", {**sol(85, 40), TENSOR: ("%", "81.2")}, "tensor_bound", "compute_bound"),
        ("copy", {**sol(20, 92), "DRAM Throughput": ("%", "91.5")}, "dram_bound", "memory_bound"),
        ("gather", {**sol(20, 88), "DRAM Throughput": ("%", "31")}, "cache_bound", None),
        ("relu", {**sol(91, 30)}, "sm_bound", "compute_bound"),
        (
            "dgemv",
            {
                **sol(70, 10),
                "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_elapsed": ("%", "93"),
            },
            "fp64_bound",
            "fp64_fallback",
        ),
        ("tiny", {**sol(5, 3), "Waves Per SM": ("", "0.12")}, "small_grid", "low_occupancy"),
        (
            "narrow",
            {**sol(31, 40), "Achieved Occupancy": ("%", "12.5"), "Waves Per SM": ("", "8.0")},
            "low_occupancy",
            "low_occupancy",
        ),
        ("wait", {**sol(31, 40), "Achieved Occupancy": ("%", "88")}, "latency_bound", None),
        ("l1", {**sol(31, 40), "L1/TEX Cache Throughput": ("%", "97")}, "l1_bound", None),
        ("even", {**sol(70, 65)}, "busy", None),
    ],
)
def test_the_limit_of_a_kernel_is_named(
    kernel: str,
    metrics: dict[str, tuple[str, str]],
    id_: str,
    cause: str | None,
    catalogue: Catalogue,
) -> None:
    found = one(csv_of({kernel: metrics}), catalogue)
    assert (found[0].id, found[0].cause) == (id_, cause)
    assert "?" not in found[0].says


@pytest.mark.parametrize(
    ("metrics", "id_"),
    [
        ({TENSOR: ("%", "0.0")}, "tensor_idle"),
        (
            {"smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct": ("%", "12.5")},
            "uncoalesced",
        ),
        (
            {
                "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": ("", "4,000"),
                "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": ("", "10,000"),
            },
            "bank_conflicts",
        ),
        ({"Registers Per Thread": ("register/thread", "255")}, "registers_full"),
        ({"launch__waves_per_multiprocessor": ("", "1.13")}, "tail"),
        (
            {"sm__cycles_active.max": ("cycle", "900"), "sm__cycles_active.avg": ("cycle", "500")},
            "imbalance",
        ),
        ({"smsp__thread_inst_executed_per_inst_executed.ratio": ("", "9.1")}, "divergence"),
        (
            {
                "lts__t_sectors_aperture_sysmem.sum": ("sector", "900"),
                "lts__t_sectors.sum": ("sector", "1,000"),
            },
            "host_traffic",
        ),
        (
            {
                "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": (
                    "",
                    "9.0",
                ),
                "smsp__average_warp_latency_per_inst_issued.ratio": ("", "12.0"),
                "smsp__issue_active.avg.per_cycle_active": ("", "0.21"),
            },
            "stalled",
        ),
    ],
)
def test_what_else_a_kernel_shows_is_said(
    metrics: dict[str, tuple[str, str]], id_: str, catalogue: Catalogue
) -> None:
    found = one(csv_of({"my_gemm_kernel": {**sol(50, 50), **metrics}}), catalogue)
    assert id_ in [f.id for f in found[1:]]


def test_the_stall_that_leads_is_named_with_its_remedy(catalogue: Catalogue) -> None:
    metrics = {
        **sol(30, 30),
        "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio": ("", "7.0"),
        "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio": ("", "1.0"),
        "smsp__average_warp_latency_per_inst_issued.ratio": ("", "10.0"),
        "smsp__issue_active.avg.per_cycle_active": ("", "0.1"),
    }
    stalled = next(f for f in one(csv_of({"k": metrics}), catalogue) if f.id == "stalled")
    assert "barrier" in stalled.says
    assert "70.0 %" in stalled.says
    assert "smaller blocks" in stalled.action


def test_a_kernel_that_takes_no_time_is_no_cause(catalogue: Catalogue) -> None:
    fast = {**sol(2, 2), "Duration": ("us", "2.0"), "Waves Per SM": ("", "0.01")}
    slow = {**sol(20, 95), "Duration": ("ms", "2.0"), "DRAM Throughput": ("%", "93")}
    answer = read(csv_of({"tiny": fast, "stream": slow}).encode(), catalogue)
    assert answer.causes == ("memory_bound",)
    assert [f.id for f in answer.findings] == ["dram_bound", "small_grid"]


def test_the_wide_form_with_its_row_of_units_is_read(catalogue: Catalogue) -> None:
    text = (
        '"ID","Process ID","Kernel Name","Device","gpu__time_duration.sum",'
        '"sm__throughput.avg.pct_of_peak_sustained_elapsed",'
        '"gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",'
        '"gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"\n'
        '"","","","","nsecond","%","%","%"\n'
        '"0","1","add(float *)","0","12,345","12.1","90.2","89.7"\n'
    )
    found = one(text, catalogue)
    assert found[0].id == "dram_bound"
    assert found[0].data["duration_us"] == pytest.approx(12.345)


def test_the_summary_by_kernel_counts_its_invocations(catalogue: Catalogue) -> None:
    text = (
        '"Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size",'
        '"Grid Size","Device","CC","ID","Invocations","Section Name","Metric Name","Metric Unit",'
        '"Minimum","Maximum","Average"\n'
        + "".join(
            f'"1","a","h","k","1","7","(1, 1, 1)","(1, 1, 1)","0","9.0","0","50","{SOL}","{n}",'
            f'"{u}","1","99","{v}"\n'
            for n, (u, v) in sol(90, 10).items()
        )
    )
    found = one(text, catalogue)
    assert (found[0].id, found[0].data["launches"]) == ("sm_bound", 50)
    assert found[0].data["duration_us"] == 100.0


def test_the_text_output_is_read(catalogue: Catalogue) -> None:
    answer = read(SAMPLES / "ncu-details.txt", catalogue)
    assert answer.findings[0].id == "l1_bound"
    assert answer.findings[0].data["duration_us"] == pytest.approx(96_320)
    assert answer.findings[0].data["sm_clock_ghz"] == pytest.approx(0.585, abs=1e-3)


def both(first: str, second: str, catalogue: Catalogue) -> tuple[list[Read], Read | None]:
    reading = Reading(catalogue)
    reading.add("before.csv", first.encode())
    reading.add("after.csv", second.encode())
    return reading.finish()


def test_two_profiles_are_compared(catalogue: Catalogue) -> None:
    before = csv_of(
        {"gemm": {**sol(80, 30), "Registers Per Thread": ("", "128")}, "same": sol(9, 9)}
    )
    after = csv_of(
        {
            "gemm": {
                **sol(41, 30),
                "Duration": ("us", "210.0"),
                "Registers Per Thread": ("", "255"),
            },
            "same": sol(9, 9),
        }
    )
    parts, together = both(before, after, catalogue)
    found = next(f for part in parts for f in part.findings if f.id == "compared")
    assert found.data["duration_ratio"] == 2.1
    assert "slower" in found.says
    assert "registers 128 to 255" in found.says
    assert together is not None
    assert "1 kernel(s) changed" in together.notes[0]


def test_profiles_at_different_clocks_are_not_compared_as_they_are(catalogue: Catalogue) -> None:
    before = csv_of({"k": {**sol(80, 30), "SM Frequency": ("Ghz", "1.75")}})
    after = csv_of(
        {"k": {**sol(80, 30), "Duration": ("us", "160"), "SM Frequency": ("Mhz", "1,090")}}
    )
    parts, _ = both(before, after, catalogue)
    found = next(f for part in parts for f in part.findings if f.id == "compared")
    assert "not comparable" in found.says
    assert "--clock-control" in found.action


def test_a_profiler_without_permission_is_explained(catalogue: Catalogue) -> None:
    found = read(SAMPLES / "ncu-permission.txt", catalogue).findings
    assert [f.id for f in found] == ["counters_restricted", "no_kernels"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1,234.56", 1234.56),
        ("56,344,784", 56_344_784),
        ("2,848", 2848),
        ("27.595.520", 27_595_520),
        ("65,77", 65.77),
        ("1.234,5", 1234.5),
        ("0.00", 0.0),
        ("1.5e+3", 1500.0),
        ("n/a", None),
        ("nan", None),
        ("", None),
        ("1,2,3", None),
        ("9" * 50, None),
    ],
)
def test_numbers_of_several_locales(text: str, value: float | None) -> None:
    assert number(text) == value


@pytest.mark.parametrize(
    ("value", "unit", "wanted", "is_"),
    [
        (3.5, "msecond", "us", 3500.0),
        (1410, "cycle/usecond", "GHz", 1.41),
        (1.2, "Tbyte/second", "GB/s", 1200.0),
        (0.5, "", "percent", 0.5),
        (12.0, "Gbyte/second", "percent", None),
        (12.0, "cycle", "count", 12.0),
    ],
)
def test_units_become_one_of_each_kind(
    value: float, unit: str, wanted: str, is_: float | None
) -> None:
    assert converted(value, unit, wanted) == (is_ if is_ is None else pytest.approx(is_))


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("void at::native::copy<float>(float *, int)", "at::native::copy<float>"),
        ("sgemm(int, const float *)", "sgemm"),
        (
            "void at::native::(anonymous namespace)::softmax<float>(float *)",
            "at::native::(anonymous namespace)::softmax<float>",
        ),
    ],
)
def test_names_without_arguments(name: str, short: str) -> None:
    assert short_name(name) == short


@given(
    st.lists(
        st.sampled_from(["Duration", "Memory Throughput", TENSOR, "Waves Per SM", "", "x"])
        | st.text(max_size=8),
        max_size=6,
    ),
    st.lists(st.sampled_from(["%", "us", "", "zz"]) | st.text(max_size=5), min_size=6, max_size=6),
    st.lists(st.text(max_size=10) | st.floats().map(str), min_size=6, max_size=6),
)
def test_no_table_makes_it_fail(names: list[str], units: list[str], values: list[str]) -> None:
    metrics = dict(zip(names, zip(units, values, strict=False), strict=False))
    with suppress(InputError):  # what is mostly control characters is refused as binary
        read(csv_of({"k": metrics}).encode("utf-8", "replace"), PACKAGED)
