"""Records as NCCL's own sources print them, and everything else, which is none."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.nccl.inspector import parse_record, record_of
from engine.nccl.plugintrace import PluginTrace
from engine.nccl.promtext import PromText
from engine.nccl.records import bucket
from tests.support import inspector

# The example of Inspector's README: NCCL 2.28, without comm_name and timing source.
README = """
{
  "header": {"id": "0x7f8c496ae9f661", "rank": 2, "n_ranks": 8, "nnodes": 1},
  "metadata": {
    "inspector_output_format_version": "v4.0", "git_rev": "",
    "rec_mechanism": "profiler_plugin", "dump_timestamp_us": 1748030377748202,
    "hostname": "example-hostname", "pid": 1639453
  },
  "coll_perf": {
    "coll": "AllReduce", "coll_sn": 1407, "coll_msg_size_bytes": 17179869184,
    "coll_exec_time_us": 61974, "coll_algobw_gbs": 277.210914, "coll_busbw_gbs": 485.119099
  }
}
"""


def test_the_example_of_its_documentation() -> None:
    found = parse_record(README)
    assert found is not None
    assert (found.collective, found.comm, found.rank, found.ranks) == (
        "AllReduce",
        "0x7f8c496ae9f661",
        2,
        8,
    )
    assert (found.sequence, found.size, found.duration_us) == (1407, 17179869184, 61974)
    assert found.busbw == pytest.approx(485.119099)
    assert (found.where, found.timing, found.comm_name) == ("example-hostname", None, None)


def test_a_newer_line_has_a_name_and_a_clock() -> None:
    found = parse_record(inspector.record(3, 9, 500, comm_name="DP Group 0", timing="kernel_cpu"))
    assert found is not None
    assert (found.comm_name, found.timing) == ("DP Group 0", "kernel_cpu")


def test_what_inspector_spells_in_its_own_way_has_nccls_name() -> None:
    found = parse_record(inspector.record(0, 1, 10, collective="All2All", busbw=0.0))
    assert found is not None
    assert found.collective == "AlltoAll"
    assert found.busbw is None, "0 stands for no formula"


def test_point_to_point_has_a_peer_and_is_read() -> None:
    line = inspector.record(0, 7, 80, collective="Send", kind="p2p", p2p_peer=3, size=1 << 20)
    found = parse_record(line)
    assert found is not None
    assert (found.collective, found.size, found.sequence) == ("Send", 1 << 20, 7)


def test_a_bandwidth_that_is_no_number_is_left_out() -> None:
    found = parse_record(inspector.record(0, 1, 10, busbw="nan"))
    assert found is not None
    assert found.busbw is None


def test_a_name_of_control_characters_is_made_visible() -> None:
    found = parse_record(inspector.record(0, 1, 10, host="a\x1b[31mb", comm_name="x" * 500))
    assert found is not None
    assert found.where == "a?[31mb"
    assert found.comm_name == "x" * 128


@pytest.mark.parametrize(
    "changed",
    [
        {"coll_exec_time_us": None},
        {"coll_exec_time_us": "12"},
        {"coll_exec_time_us": -1},
        {"coll_exec_time_us": True},
        {"coll_exec_time_us": 10**30},
        {"coll_msg_size_bytes": 1.5},
        {"coll": ""},
        {"coll": 7},
    ],
)
def test_a_record_without_its_figures_is_none(changed: dict[str, object]) -> None:
    value = json.loads(inspector.record(0, 1, 10))
    value["coll_perf"].update(changed)
    assert record_of(value) is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["header", "metadata", "coll_perf", "p2p_perf", "coll", "rank", "id"])
            | st.text(max_size=8),
            inner,
            max_size=6,
        )
    ),
    max_leaves=20,
)


@given(_JSON)
def test_no_value_makes_it_raise(value: object) -> None:
    record_of(value)


@given(st.binary(max_size=200), st.integers(0, 400), st.integers(0, 255))
def test_no_damage_makes_it_raise(noise: bytes, at: int, byte: int) -> None:
    raw = bytearray(inspector.record(0, 1, 10).encode())
    raw[at % len(raw)] = byte
    parse_record(bytes(raw))
    parse_record(bytes(raw[:at]))
    parse_record(noise)
    for feed in (PromText().feed, PluginTrace().feed):
        list(feed(noise))
        list(feed(bytes(raw)))


def _prom(text: str) -> list[object]:
    reader = PromText()
    return [r for line in text.splitlines() for r in reader.feed(line.encode())]


def test_text_for_node_exporter() -> None:
    (found,) = _prom(inspector.prom(3, 9498.47, 678.263, message_size="4-5GB"))
    assert (found.collective, found.size, found.duration_us) == ("AllReduce", 4 << 30, 9498.47)
    assert (found.busbw, found.where, found.ranks) == (678.263, "node-1:3", 8)
    assert (found.comm, found.algorithm, found.job) == ("DP Group 0", "Ring_Simple", "4711")
    assert found.mean
    assert found.rank is None


@pytest.mark.parametrize(
    ("shown", "size"),
    [("0B", 0), ("512-513B", 512), ("8-9KB", 8 << 10), ("1-2TB", 1 << 40), ("many", None)],
)
def test_sizes_of_that_text(shown: str, size: int | None) -> None:
    found = _prom(inspector.prom(0, 10, 1, message_size=shown))
    assert [r.size for r in found] == ([] if size is None else [size])


def test_point_to_point_of_that_text() -> None:
    text = inspector.prom(0, 1154.87, 464.9).replace("nccl_bus_", "nccl_p2p_bus_")
    text = text.replace("nccl_collective_", "nccl_p2p_").replace(
        'collective="AllReduce"', 'p2p_operation="Send"'
    )
    (found,) = _prom(text)
    assert (found.collective, found.busbw) == ("Send", 464.9)


def _trace(lines: list[str]) -> list[object]:
    reader = PluginTrace()
    return [r for line in lines for r in reader.feed(line.encode())]


@pytest.mark.parametrize("datatype", ["Float32", "ncclFloat32"])
def test_the_example_plugins_trace(datatype: str) -> None:
    found = _trace(list(inspector.trace(2, {11: 1500.0, 12: 700.0}, datatype=datatype)))
    assert [(r.sequence, r.rank, r.duration_us) for r in found] == [(11, 2, 1500.0), (12, 2, 700.0)]
    assert {(r.size, r.timing, r.algorithm) for r in found} == {
        (67108864 * 4, "kernel_gpu", "ring_simple")
    }
    assert found[0].comm == hex(12345678901234567890)


def test_a_trace_without_gpu_clocks_has_the_cpus_times() -> None:
    (found,) = _trace(list(inspector.trace(0, {1: 250.0}, clocks=False)))
    assert (found.duration_us, found.timing) == (250.0, "collective_cpu")


def test_the_first_release_writes_the_type_as_a_number() -> None:
    lines = [line.replace('"Float32"', "7") for line in inspector.trace(0, {1: 250.0})]
    (found,) = _trace(lines)
    assert found.size == 67108864 * 4


def test_an_end_without_a_start_and_a_start_without_an_end_are_nothing() -> None:
    lines = list(inspector.trace(0, {1: 250.0}))
    assert _trace(lines[:-2]) == []
    assert _trace(lines[-2:]) == []


@given(st.integers(0, 1 << 50))
def test_a_bucket_is_the_next_power_of_two(size: int) -> None:
    found = bucket(size)
    assert found >= size
    assert size == 0 or found < 2 * size or found == 1
