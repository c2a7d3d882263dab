"""Readers of AMD's tools and kernel lines: samples are known, damage and noise do no harm."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.catalogue import Catalogue
from engine.readers.amd_smi import AMD_SMI_JSON, AmdSmiReader
from engine.readers.amdgpu import AmdgpuReader, RocrReader
from engine.readers.base import Context
from engine.readers.host_settings import HostSettingsReader
from tests.engine.readers.conftest import ReadText
from tests.support.listings import SAMPLES, faults_of, faults_of_damage, read_by, said_of

READERS = (AmdgpuReader, RocrReader, AmdSmiReader, HostSettingsReader)
# Sample in tests/data/read, the kind it is of, and its first cause.
KNOWN = {
    "amd-smi.txt": ("amd_smi", "ecc_uncorrectable"),
    "amd-smi-metric.txt": ("amd_smi", "ecc_uncorrectable"),
    "amd-smi-metric.csv": ("amd_smi", None),
    "amd-smi-metric.json": ("amd_smi", "ecc_uncorrectable"),
    "amd-smi-static.txt": ("amd_smi", "memory_overheat"),
    "amd-smi-monitor.txt": ("amd_smi", None),
    "amd-smi-monitor-violations.txt": ("amd_smi", "thermal_slowdown_sw"),
    "amd-smi-bad-pages.txt": ("amd_smi", "row_remap_pending"),
    "amd-smi-topology.txt": ("amd_smi", "p2p_disabled"),
    "amd-smi-xgmi.txt": ("amd_smi", "xgmi_errors"),
    "rocm-smi.txt": ("amd_smi", "idle"),
    "rocm-smi-keys.txt": ("amd_smi", "ecc_uncorrectable"),
    "rocm-smi.csv": ("amd_smi", None),
    "rocm-smi.json": ("amd_smi", "xgmi_errors"),
    "amdgpu-ras.txt": ("amdgpu", "ecc_uncorrectable"),
    "amdgpu-aca.txt": ("amdgpu", "ecc_uncorrectable"),
    "amdgpu-hang.txt": ("amdgpu", "queue_hang_reset"),
    "amdgpu-page-fault.txt": ("amdgpu", "app_fault_xid"),
    "amdgpu-healthy-boot.txt": ("amdgpu", None),
    "rocr.txt": ("rocr", "app_fault_xid"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_sample_is_known_by_its_kind(name: str, read_text: ReadText) -> None:
    kind, cause = KNOWN[name]
    answer = read_text((SAMPLES / name).read_text(encoding="utf-8"))
    assert answer.kinds[0] == kind
    assert {k.partition("_")[0] for k in answer.kinds} == {kind.partition("_")[0]}
    assert answer.causes[:1] == ((cause,) if cause else ())


@pytest.mark.parametrize("name", [n for n in KNOWN if n.endswith((".txt", ".csv"))])
def test_a_damaged_sample_is_read_as_far_as_it_goes(name: str, catalogue: Catalogue) -> None:
    assert faults_of_damage(READERS, name, catalogue) == []


@given(lines=st.lists(st.text(max_size=80), max_size=30))
def test_random_text_has_no_finding(lines: list[str], catalogue: Catalogue) -> None:
    assert said_of(READERS, lines, catalogue) == []


_KEYS = st.sampled_from(
    (
        "gpu",
        "gpu_data",
        "usage",
        "temperature",
        "hotspot",
        "throttle",
        "ppt_violation_activity",
        "ecc",
        "total_uncorrectable_count",
        "ecc_blocks",
        "retired",
        "link_status",
        "card0",
        "XGMI Error count",
        "value",
        "unit",
    )
)
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(("N/A", "ACTIVE", "12 %", "90 C", "1e999", "٣ W", "W")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=25,
)


@given(value=st.dictionaries(_KEYS, _VALUES, max_size=5) | st.lists(_VALUES, max_size=3))
def test_no_document_is_too_odd(value: object, catalogue: Catalogue) -> None:
    if AMD_SMI_JSON.detect(value):
        result = AMD_SMI_JSON.read(value, Context(catalogue), 1)
        assert [fault for f in result.findings for fault in faults_of(f, catalogue)] == []


def test_lines_of_a_gpu_are_kept_apart_from_the_other_hosts(read_text: ReadText) -> None:
    line = "amdgpu 0000:c1:00.0: amdgpu: Saved bad pages {} reaches threshold value 128"
    lines = [f"Mar  3 10:00:00 mi300-{n} kernel: {line.format(128 + n)}" for n in range(3)]
    answer = read_text("\n".join(lines))
    named = [f.entity.name for f in answer.findings if f.entity]
    assert named == [f"mi300-{n} GPU 0000:c1:00.0" for n in range(3)]


def test_a_fault_stands_before_what_follows_from_it(read_text: ReadText) -> None:
    answer = read_text((SAMPLES / "amdgpu-page-fault.txt").read_text(encoding="utf-8"))
    fault, hang = answer.findings
    assert (fault.kind, hang.kind) == ("amdgpu_page_fault", "amdgpu_hang")
    assert hang.cause is None
    assert "follows from the page fault" in hang.says


def test_more_gpus_than_are_kept_are_counted(read_text: ReadText) -> None:
    lines = [
        f"node-{n}: amdgpu {n // 256:04x}:{n % 256:02x}:00.0: amdgpu: GPU reset begin!"
        for n in range(3_000)
    ]
    answer = read_text("\n".join(lines))
    assert any("Only the first 1024 GPUs" in note for note in answer.notes)


def test_a_listing_ends_where_something_else_begins(read_text: ReadText) -> None:
    text = "GPU: 0\n    ECC:\n        TOTAL_UNCORRECTABLE_COUNT: 0\n" + "job says: hello\n" * 6
    answer = read_text(text)
    assert answer.unread_lines == 6


def test_ten_thousand_records_of_one_gpu_stay_one_gpu(catalogue: Catalogue) -> None:
    row = "  0  134 W   37 C   30 C   132 MHz    0 %    0 %\n"
    text = "GPU  POWER   GPU_T   MEM_T   GFX_CLK   GFX%   MEM%\n" + row * 10_000
    [result] = read_by([AmdSmiReader], text, catalogue)
    assert [f.data["gpus"] for f in result.findings] == [1]


def test_a_document_in_a_log_line_is_read_too(read_text: ReadText) -> None:
    value = [{"gpu": 2, "ecc": {"total_uncorrectable_count": 9}}]
    answer = read_text(f"$ amd-smi metric --json\n{json.dumps(value)}\n")
    assert answer.causes == ("ecc_uncorrectable",)
