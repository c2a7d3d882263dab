"""One scrape without times: what the exporter counts as recent is recent, what it holds is not."""

from __future__ import annotations

import pytest

from engine.model import Verdict, Why
from engine.sources import FileSource
from tests.support.readings import causes, engine, notes

WHERE = 'gpu="5",UUID="GPU-1",Hostname="h100-5",modelName="NVIDIA H100 80GB HBM3"'
HEALTHY = {
    "DCGM_FI_DEV_GPU_UTIL": 100,
    "DCGM_FI_DEV_SM_CLOCK": 1980,
    "DCGM_FI_DEV_GPU_TEMP": 60,
    "DCGM_FI_DEV_POWER_USAGE": 600,
}


async def why(tmp_path, *lines: str, gauge: int | None = 13) -> Why:
    file = tmp_path / "scrape.prom"
    held = {} if gauge is None else {"DCGM_FI_DEV_XID_ERRORS": gauge}
    own = [f"{name}{{{WHERE}}} {value}" for name, value in {**HEALTHY, **held}.items()]
    file.write_text("\n".join([*own, *lines]) + "\n")
    source = FileSource([file])
    try:
        return await engine().why("h100-5:5", source)
    finally:
        await source.aclose()


def counted(xid: str, value: int, name: str = "DCGM_EXP_XID_ERRORS_COUNT") -> str:
    return f'{name}{{{WHERE},window_size_in_ms="300000",xid="{xid}"}} {value}'


@pytest.mark.parametrize("gauge", [None, 0, 13, 79])
async def test_a_counted_xid_is_a_cause(tmp_path, gauge):
    answer = await why(tmp_path, counted("79", 2), gauge=gauge)
    assert causes(answer) == ["gpu_off_bus"]
    evidence = answer.diagnoses[0].evidence[0]
    assert "not long ago" in evidence.says
    shown = "DCGM_FI_DEV_XID_ERRORS" if gauge == 79 else "DCGM_EXP_XID_ERRORS_COUNT"
    assert evidence.query.startswith(shown)


@pytest.mark.parametrize(
    "line",
    [
        counted("79", 0),
        counted("79", 3, "DCGM_EXP_XID_ERRORS_TOTAL"),
        counted("seventy-nine", 1),
    ],
)
async def test_what_is_not_counted_as_recent_is_none(tmp_path, line):
    answer = await why(tmp_path, line)
    assert answer.verdict is Verdict.HEALTHY
    assert "xid_history" in notes(answer)


async def test_the_older_code_of_the_gauge_is_not_taken_for_a_change(tmp_path):
    answer = await why(tmp_path, counted("94", 1), gauge=79)
    assert "gpu_off_bus" not in causes(answer)
