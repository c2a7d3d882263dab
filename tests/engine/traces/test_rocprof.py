"""CSV that rocprofv3 wrote: a run's tables as one timeline, and its summaries."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.catalogue import Catalogue
from engine.errors import InputError
from engine.model import Read
from engine.readers import Reading, read
from engine.traces.rocprof.tables import agent
from tests.support import packaged

PACKAGED = packaged.knowledge()
SAMPLES = Path(__file__).parents[2] / "data" / "read"
KERNELS = (
    '"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name",'
    '"Correlation_Id","Start_Timestamp","End_Timestamp","LDS_Block_Size"'
)
CALLS = (
    '"Domain","Function","Process_Id","Thread_Id","Correlation_Id","Start_Timestamp",'
    '"End_Timestamp"'
)
MS = 1_000_000
T0 = 1_147_738_000_000_000


def run(idle_in: str | None, *, agent_id: str = '"GPU-0"') -> tuple[str, str]:
    """Return kernel and API tables of 20 steps, each with a pause of 5 ms inside a call."""
    kernels, calls, t, n = [KERNELS], [CALLS], T0, 1
    for _ in range(20):
        for k in range(30):
            name = "ncclDevKernel_Generic(x)" if k == 29 else "Cijk_Alik_Bljk_HHS_BH_MT128x128"
            calls.append(f'"HIP_RUNTIME_API","hipLaunchKernel",70,70,{n},{t - 9000},{t - 2000}')
            kernels.append(
                f'"KERNEL_DISPATCH",{agent_id},1,0,70,{n},1,"{name}",{n},{t},{t + 300_000},0'
            )
            t += 302_000
            n += 1
        if idle_in:
            calls.append(f'"HIP_RUNTIME_API","{idle_in}",70,70,{n},{t},{t + 5 * MS}')
            t += 5 * MS + 100_000
            n += 1
    return "\n".join(kernels) + "\n", "\n".join(calls) + "\n"


def joint(first: str, second: str, catalogue: Catalogue) -> Read:
    reading = Reading(catalogue)
    reading.add("1_kernel_trace.csv", first.encode())
    reading.add("1_hip_api_trace.csv", second.encode())
    parts, together = reading.finish()
    assert together is not None
    assert all(not part.unread_lines for part in parts)
    return together


def test_tables_of_a_run_make_one_timeline(catalogue: Catalogue) -> None:
    answer = joint(*run("hipMalloc"), catalogue)
    assert answer.kinds == ("rocprofv3",)
    assert answer.causes[0] == "allocator_stall"
    assert answer.findings[0].data["lost_ms"] == pytest.approx(95.0)


def test_order_of_the_tables_does_not_matter(catalogue: Catalogue) -> None:
    kernels, calls = run("hipMalloc")
    assert joint(kernels, calls, catalogue).causes == joint(calls, kernels, catalogue).causes
    assert read((calls + kernels).encode(), catalogue).causes[0] == "allocator_stall"


def test_a_dense_run_blames_nothing(catalogue: Catalogue) -> None:
    assert set(joint(*run(None), catalogue).causes) <= {"healthy"}


def test_agents_are_not_taken_for_gpu_numbers(catalogue: Catalogue) -> None:
    answer = read(run(None, agent_id='"Agent 7"')[0].encode(), catalogue)
    assert any("agents" in note for note in answer.notes)
    answer = read(run(None)[0].encode(), catalogue)
    assert not any("agents" in note for note in answer.notes)


def test_a_summary_says_what_it_cannot_show(catalogue: Catalogue) -> None:
    answer = read(SAMPLES / "rocprofv3_kernel_stats.csv", catalogue)
    (found,) = answer.findings
    assert "Cijk_Ailk_Bljk_BBS_BH_MT256x256x64: 340 x 400 us, 91 %" in found.says
    assert "gaps" in found.action
    assert answer.causes == ()


def test_counters_are_averaged_by_kernel(catalogue: Catalogue) -> None:
    head = '"Correlation_Id","Dispatch_Id","Kernel_Name","Counter_Name","Counter_Value"\n'
    rows = "".join(f'{n},{n},"copy_kernel(float*)","SQ_WAVES",{n * 100}\n' for n in (1, 2, 3))
    (found,) = read((head + rows).encode(), catalogue).findings
    assert found.data["counters"] == {"SQ_WAVES": 200.0}


@pytest.mark.parametrize(
    ("text", "number"), [("Agent 7", 7), ("GPU-0", 0), ("8", 8), ("CPU-1", None), ("x", None)]
)
def test_agent_numbers(text: str, number: int | None) -> None:
    assert agent(text) == number


@given(
    st.lists(
        st.lists(st.text(max_size=8) | st.integers().map(str), min_size=3, max_size=13), max_size=6
    )
)
def test_no_rows_make_it_fail(rows: list[list[str]]) -> None:
    text = "\n".join([KERNELS, *(",".join(row) for row in rows), CALLS])
    with suppress(InputError):  # what is mostly control characters is refused as binary
        read(text.encode("utf-8", "replace"), PACKAGED)
