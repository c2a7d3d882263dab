"""The history that Prometheus would hold."""

import shutil
import subprocess
import time
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from engine.errors import UsageError
from engine.simulate import Fleet, demo_fleet


def test_it_is_openmetrics_with_grouped_families() -> None:
    fleet = demo_fleet()
    text = "".join(fleet.openmetrics(fleet.start + 3540.0, fleet.start + 3600.0))
    names = [family.name for family in text_string_to_metric_families(text)]
    assert len(names) == len(set(names))
    assert {"up", "node_load1", "DCGM_FI_DEV_XID_ERRORS"} <= set(names)
    assert text.endswith("# EOF\n")


def test_promtool_makes_blocks_of_it(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing; install the prometheus package"
    fleet = demo_fleet()
    path = tmp_path / "history.om"
    with path.open("w") as out:
        out.writelines(fleet.openmetrics(fleet.start + 3000.0, fleet.start + 3600.0))
    done = subprocess.run(
        [promtool, "tsdb", "create-blocks-from", "openmetrics", str(path), str(tmp_path / "db")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "db").glob("*/index"))


def test_every_series_carries_the_labels_of_its_target() -> None:
    fleet = Fleet(2, 2)
    _, series = fleet.series(fleet.start, fleet.start)
    for name, one in series:
        job, instance = one.labels["job"], one.labels["instance"]
        port = {"dcgm-exporter": "9400", "node-exporter": "9100"}[job]
        assert instance.endswith(f":{port}")
        if name.startswith("DCGM_"):
            assert job == "dcgm-exporter"


def test_up_is_there_for_every_target() -> None:
    fleet = Fleet(3, 1)
    text = "".join(fleet.openmetrics(fleet.start, fleet.start))
    assert sum(line.startswith("up{") for line in text.splitlines()) == 6


def test_a_new_xid_is_a_new_series() -> None:
    fleet = demo_fleet()
    _, series = fleet.series(fleet.start, fleet.start + 3600.0, node_exporter=False)
    codes = [
        one.labels["err_code"]
        for name, one in series
        if name == "DCGM_FI_DEV_XID_ERRORS" and one.labels["gpu"] == "7"
        and one.labels.get("Hostname") == "node-4"
    ]  # fmt: skip
    assert codes == ["0", "79"]


@pytest.mark.parametrize(("end", "step"), [(-1.0, 15.0), (60.0, 0.0), (60.0, float("nan"))])
def test_senseless_spans_are_refused(end: float, step: float) -> None:
    fleet = Fleet(1, 1)
    with pytest.raises(UsageError, match="no samples between"):
        fleet.openmetrics(fleet.start, fleet.start + end, step).__next__()


def test_cpu_seconds_of_a_host_add_up_to_the_time_passed() -> None:
    fleet = Fleet(1, 2)
    times, series = fleet.series(fleet.start, fleet.start + 600.0, 60.0)
    cpu = [one for name, one in series
           if name == "node_cpu_seconds_total" and one.labels["cpu"] == "3"]  # fmt: skip
    assert {one.labels["mode"] for one in cpu} == {"idle", "iowait", "system", "user"}
    total = sum(one.values for one in cpu)
    assert total[-1] - total[0] == pytest.approx(times[-1] - times[0])


def test_an_hour_of_the_demo_is_written_in_seconds() -> None:
    fleet = demo_fleet()
    begun = time.perf_counter()
    lines = sum(part.count("\n") for part in fleet.openmetrics(fleet.start, fleet.start + 3600.0))
    assert lines > 500_000
    assert time.perf_counter() - begun < 30.0
