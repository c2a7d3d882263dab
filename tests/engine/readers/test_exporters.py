"""Text of exporters other than DCGM's, families, and the exporter's own log."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.readers import read
from engine.readers.base import Context
from engine.readers.exporter_log import ExporterLogReader
from tests.support import packaged

DATA = Path(__file__).parents[2] / "data" / "read"
CATALOGUE = packaged.catalogue()
SAMPLES = {
    "dcgm-exporter.prom": ("thermal_slowdown_sw",),
    "dcgm-exporter-log.txt": ("metrics_missing",),
    "amd-metrics-exporter.prom": ("ecc_uncorrectable", "power_bound"),
    "node-exporter.prom": ("host_memory_pressure", "storage_full", "ib_link_down"),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_gives_its_causes(name: str) -> None:
    assert read((DATA / name).read_bytes(), CATALOGUE).causes == SAMPLES[name]


@pytest.mark.parametrize("size", ["\n", "\r\n"])
def test_line_ends_do_not_matter(size: str) -> None:
    text = (DATA / "node-exporter.prom").read_text(encoding="utf-8").replace("\n", size)
    assert read(text.encode(), CATALOGUE).causes == SAMPLES["node-exporter.prom"]


def test_names_out_of_labels_are_cut_and_printable() -> None:
    mount = "/" + "x" * 500 + "\\n\x1b[31m"
    text = "".join(
        f'node_filesystem_{what}{{device="d",fstype="ext4",mountpoint="{mount}"}} {value}\n'
        for what, value in (("size_bytes", 1e12), ("avail_bytes", 1e6))
    )
    answer = read(text.encode(), CATALOGUE)
    assert answer.causes == ("storage_full",)
    shown = str(answer.findings[0].data["mount"])
    assert len(shown) <= 80
    assert shown.isprintable()


def test_the_same_input_gives_the_same_answer() -> None:
    text = b"".join((DATA / name).read_bytes() for name in SAMPLES)
    assert read(text, CATALOGUE) == read(text, CATALOGUE)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=120), max_size=20))
def test_random_text_is_no_log_of_the_exporter(lines: list[str]) -> None:
    reader = ExporterLogReader(Context(CATALOGUE))
    for number, line in enumerate(lines, 1):
        reader.feed(number, line)
    assert reader.finish().findings == []


@settings(max_examples=100, deadline=None)
@given(st.data(), st.sampled_from(list(SAMPLES)))
def test_a_damaged_sample_never_raises(data: st.DataObject, name: str) -> None:
    text = (DATA / name).read_text(encoding="utf-8")
    for _ in range(data.draw(st.integers(1, 4))):
        at, size = data.draw(st.integers(0, len(text))), data.draw(st.integers(0, 60))
        text = text[:at] + data.draw(st.text(max_size=20)) + text[at + size :]
    answer = read(text.encode("utf-8", "replace"), CATALOGUE)
    assert all(cause in CATALOGUE.taxonomy for cause in answer.causes)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                [
                    "node_memory_MemTotal_bytes",
                    "node_memory_MemAvailable_bytes",
                    "node_memory_SwapTotal_bytes",
                    "node_memory_SwapFree_bytes",
                    "node_load1",
                    "node_filesystem_size_bytes",
                    "node_filesystem_avail_bytes",
                    "node_infiniband_state_id",
                    "node_infiniband_rate_bytes_per_second",
                    "gpu_ecc_uncorrect_total",
                    "gpu_gfx_activity",
                    "gpu_package_power",
                    "gpu_afid_errors",
                    "pcie_speed",
                    "DCGM_FI_DEV_XID_ERRORS",
                    "DCGM_FI_PROF_SM_ACTIVE",
                ]
            ),
            st.floats(),
            st.integers(0, 3),
        ),
        max_size=40,
    )
)
def test_any_values_give_an_answer(rows: list[tuple[str, float, int]]) -> None:
    text = "".join(
        f'{name}{{gpu_id="{i}",gpu_partition_id="0",device="d{i}",mountpoint="/"}} {value!r}\n'
        for name, value, i in rows
    )
    answer = read(text.encode(), CATALOGUE)
    assert all(cause in CATALOGUE.taxonomy for cause in answer.causes)
