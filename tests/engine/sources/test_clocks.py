"""Which time of a metrics file is now, where the clocks of hosts differ."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from engine.model import Sweep, Verdict, Why
from engine.samples import RawSeries
from engine.sources import FileSource
from tests.support.readings import AT, FULL, engine, gpu, incidents

BRAKE = {**FULL, "DCGM_FI_DEV_CLOCKS_EVENT_REASONS": 0x88, "DCGM_FI_DEV_SM_CLOCK": 990}


def text(series: list[RawSeries], *, last: int = 10_000) -> str:
    lines = []
    for one in series:
        labels = ",".join(f'{k}="{v}"' for k, v in one.labels.items())
        pairs = list(zip(one.ts.tolist(), one.values.tolist(), strict=True))[-last:]
        lines += [f"{one.name}{{{labels}}} {v} {int(t * 1000)}\n" for t, v in pairs]
    return "".join(lines)


def fleet(
    tmp_path: Path, hosts: dict[str, float], *, last: int = 10_000, stop: float = 0.0
) -> Path:
    """Write hosts whose clocks are ahead by so many seconds; one with a brake is node-2."""
    out = []
    for host, shift in hosts.items():
        values = BRAKE if host == "node-2" else FULL
        some = [s for k in range(2) for s in gpu(values, host=host, index=k, shift_s=shift)]
        out.append(text(some, last=last))
    file = tmp_path / "fleet.prom"
    file.write_text("".join(out))
    return file


def written(file: Path, moment: float = AT) -> Path:
    """Let a file be written at a moment: what lies after it has a clock that is ahead."""
    os.utime(file, (moment, moment))
    return file


def cut(file: Path, host: str, after: float) -> None:
    """Let a host stop."""
    kept = [
        line
        for line in file.read_text().splitlines(keepends=True)
        if f'Hostname="{host}"' not in line or int(line.rsplit(" ", 1)[1]) <= after * 1000
    ]
    file.write_text("".join(kept))


async def sweep(file: Path) -> Sweep:
    return await engine().sweep(FileSource([file]))


async def why(file: Path, target: str, at: float | None = None) -> Why:
    return await engine().why(target, FileSource([file]), at=at)


@pytest.mark.parametrize("last", [10_000, 1])
@pytest.mark.parametrize("ahead", ["node-1", "node-2", "node-3"])
async def test_one_clock_ahead_hides_no_host(tmp_path, ahead, last):
    hosts = {f"node-{k}": 0.0 for k in range(1, 5)} | {ahead: 3000.0}
    file = written(fleet(tmp_path, hosts, last=last))
    found = await sweep(file)
    assert found.at == AT
    assert incidents(found) == {("power_brake", "node-2"): ["node-2:0", "node-2:1"]}
    assert found.verdicts == {"degraded": 2, "healthy": 6, "idle": 0, "unknown": 0}
    (warning,) = (w for w in found.warnings if "clock" in w)
    assert f"the clock of {ahead} is 50 min ahead of all others" in warning


@pytest.mark.parametrize("target", ["node-1:0", "node-3:0"])
async def test_one_gpu_is_judged_by_the_common_clock(tmp_path, target):
    hosts = {f"node-{k}": 0.0 for k in range(1, 5)} | {"node-3": 3000.0}
    answer = await why(written(fleet(tmp_path, hosts)), target)
    assert answer.verdict is Verdict.HEALTHY
    assert answer.at == AT
    assert any("the clock of node-3 is 50 min ahead" in w for w in answer.warnings)


async def test_a_host_that_stopped_is_stale_and_no_clock_is_blamed(tmp_path):
    file = fleet(tmp_path, {f"node-{k}": 0.0 for k in range(1, 4)})
    cut(file, "node-1", AT - 500)
    cut(file, "node-3", AT - 500)
    found = await sweep(file)
    assert found.at == AT
    assert found.verdicts == {"degraded": 2, "healthy": 0, "idle": 0, "unknown": 4}
    assert not any("clock" in w for w in found.warnings)


async def test_of_two_hosts_nobody_can_tell_whose_clock_is_wrong(tmp_path):
    file = fleet(tmp_path, {"node-1": 0.0, "node-3": 3600.0})
    found = await sweep(file)
    assert found.at == AT + 3600
    assert not found.incidents
    assert found.verdicts == {"degraded": 0, "healthy": 2, "idle": 0, "unknown": 2}
    (warning,) = (w for w in found.warnings if "clocks" in w)
    assert "all times of node-1 lie 1 h before those of node-3" in warning
    assert f"--at {AT:.0f}" in warning
    assert (await why(file, "node-1:0", at=AT)).verdict is Verdict.HEALTHY


async def test_one_of_two_that_stopped_is_no_clock(tmp_path):
    file = fleet(tmp_path, {"node-1": 0.0, "node-3": 0.0})
    cut(file, "node-1", AT - 500)
    found = await sweep(file)
    assert found.verdicts == {"degraded": 0, "healthy": 2, "idle": 0, "unknown": 2}
    assert not any("clock" in w for w in found.warnings)


async def test_hosts_of_another_day_are_not_put_together(tmp_path):
    hosts = {f"node-{k}": 0.0 for k in range(3, 6)} | {"node-1": 86_400.0}
    found = await sweep(fleet(tmp_path, hosts))
    assert found.at == AT + 86_400
    assert found.verdicts["healthy"] == 2


async def test_a_file_of_one_host_ends_with_its_newest_sample(tmp_path):
    file = fleet(tmp_path, {"node-1": 0.0})
    late = text(gpu({"DCGM_FI_DEV_GPU_TEMP": 60}, index=0, shift_s=600.0), last=1)
    file.write_text(file.read_text() + late)
    assert (await sweep(file)).at == AT + 600


STOPPED = {"node-1": -1500.0, "node-2": -1500.0, "node-3": -1500.0, "node-4": 0.0, "node-5": 0.0}


@pytest.mark.parametrize("last", [10_000, 1])
@pytest.mark.parametrize("moment", [AT + 20, AT + 86_400, AT - 100], ids=["now", "copied", "late"])
async def test_hosts_that_go_on_after_most_stopped_are_not_called_ahead(tmp_path, last, moment):
    file = written(fleet(tmp_path, STOPPED, last=last), moment)
    found = await sweep(file)
    assert found.at == AT
    assert found.verdicts == {"degraded": 0, "healthy": 4, "idle": 0, "unknown": 6}
    (warning,) = (w for w in found.warnings if "clock" in w)
    assert "all times of node-1, node-2, node-3 lie 25 min before those of node-4" in warning
    assert "they stopped" in warning
    assert f"--at {AT - 1500:.0f}" in warning
    assert "ahead" not in warning
    assert (await why(file, "node-1:0")).verdict is Verdict.UNKNOWN


async def test_a_file_a_host_of_those_that_stopped_proves_no_clock_ahead(tmp_path):
    files = []
    for host, shift in STOPPED.items():
        files.append(tmp_path / f"{host}.prom")
        files[-1].write_text(text(gpu(FULL, host=host, shift_s=shift), last=1))
        written(files[-1], AT + shift)
    for some in (files, files[::-1]):
        found = await engine().sweep(FileSource(some))
        assert found.at == AT
        assert found.verdicts == {"degraded": 0, "healthy": 2, "idle": 0, "unknown": 3}


async def test_a_clock_ahead_does_not_make_those_that_stopped_the_present(tmp_path):
    """The others ended long before the file was written: how far the clock is ahead is unknown."""
    hosts = {"node-1": -1500.0, "node-3": -1500.0, "node-4": 600.0}
    found = await sweep(written(fleet(tmp_path, hosts)))
    assert found.at == AT + 600
    assert found.verdicts == {"degraded": 0, "healthy": 2, "idle": 0, "unknown": 4}


async def test_of_two_hosts_the_one_after_the_writing_is_ahead(tmp_path):
    found = await sweep(written(fleet(tmp_path, {"node-1": 0.0, "node-3": 3600.0})))
    assert found.at == AT
    assert found.verdicts == {"degraded": 0, "healthy": 4, "idle": 0, "unknown": 0}
    assert any("the clock of node-3 is 1 h ahead" in w for w in found.warnings)


async def test_a_pipe_is_written_as_it_is_read(tmp_path):
    piped = fleet(tmp_path, {"node-1": 0.0, "node-4": 0.0, "node-3": 3000.0}).read_bytes()
    for moment, at in ((AT, AT), (AT + 3000, AT + 3000)):
        source = FileSource(["-"], stdin=io.BytesIO(piped), clock=lambda moment=moment: moment)
        assert (await engine().sweep(source)).at == at
        await source.aclose()
