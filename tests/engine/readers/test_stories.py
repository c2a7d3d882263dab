"""What people tell with figures: clocks over time, bandwidth of one node and of two."""

from __future__ import annotations

import pytest

from engine.model import Read
from engine.readers import read
from tests.support import packaged
from tests.support.cases import case, text_faults


@pytest.fixture(scope="module")
def told():
    catalogue = packaged.catalogue()

    def of(text: str) -> Read:
        return read(text.encode(), catalogue)

    return of


@pytest.mark.parametrize("id_", ["slow-006", "slow-011"])
def test_a_reported_story_names_its_cause(told, id_):
    one = case("slowdowns", id_)
    found = told(one.input)
    assert found.causes[0] in one.causes
    assert not set(found.causes) & set(one.causes_not)
    text = "\n".join(f"{f.says} {f.action}" for f in found.findings)
    assert list(text_faults(one, text)) == []


@pytest.mark.parametrize(
    ("rows", "causes"),
    [
        (["10:00:01, 2000 MHz, 0 %", "10:00:02, 700 MHz, 99 %", "10:00:03, 690 MHz, 99 %"], 1),
        # The same in other dress: dates, tabs, percent without a blank.
        (["2026-01-02 10:00:01\t1980 MHz\t1%", "10:00:02;500 MHz;97%", "10:00:03|510 MHz|97%"], 1),
        # Clocks that rise, hold, or give way a little under load.
        (["10:00:01, 345 MHz, 0 %", "10:00:02, 1980 MHz, 99 %", "10:00:03, 1980 MHz, 99 %"], 0),
        (["10:00:01, 1980 MHz, 0 %", "10:00:02, 1600 MHz, 99 %", "10:00:03, 1500 MHz, 99 %"], 0),
        # A fall long after load began may be heat.
        (["10:00:01, 1980 MHz, 99 %", "10:00:02, 1980 MHz, 99 %", "10:30:03, 700 MHz, 99 %"], 0),
        # Two rows say nothing, nor does a clock that rests after the work.
        (["10:00:01, 2000 MHz, 0 %", "10:00:02, 700 MHz, 99 %"], 0),
        (["10:00:01, 1980 MHz, 99 %", "10:00:02, 1970 MHz, 99 %", "10:00:03, 345 MHz, 0 %"], 0),
    ],
)
def test_a_clock_that_falls_as_load_begins_is_capped(told, rows, causes):
    found = told("\n".join(rows))
    assert found.causes == ("platform_power_cap",) * causes


@pytest.mark.parametrize(
    ("text", "id_", "cause"),
    [
        ("2 nodes 10 GB/s (was 180), 1 node unchanged; NCCL 2.22.3", "gdr_off_between_nodes", True),
        ("4 nodes: 22.5 GB/s, was 190; NCCL 2.19.4", "gdr_off_between_nodes", True),
        ("2 nodes 10 GB/s (was 180), GPU Direct RDMA disabled", "gdr_off_between_nodes", True),
        ("multi-node 30 GB/s instead of 180, single node same", "slow_between_nodes", False),
        ("2 nodes 10 GB/s (was 180), 1 node unchanged; NCCL 2.27.3", "slow_between_nodes", False),
    ],
)
def test_a_path_between_nodes_that_became_slow(told, text, id_, cause):
    found = told(text)
    assert [f.id for f in found.findings] == [id_]
    assert (found.causes == ("gdr_disabled",)) is cause


@pytest.mark.parametrize(
    "text", ["2 nodes 178 GB/s (was 180), NCCL 2.22.3", "1 node 10 GB/s (was 180), NCCL 2.22.3"]
)
def test_what_is_no_slow_path_between_nodes_is_not_told(told, text):
    assert "gdr_disabled" not in told(text).causes


def test_a_long_line_of_digits_is_read_in_no_time(told):
    told("2 nodes " + "1 " * 200_000 + "GB/s MHz")
