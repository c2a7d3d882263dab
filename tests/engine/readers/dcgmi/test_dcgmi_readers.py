"""Readers of ``dcgmi``: samples are known, damage and noise do no harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.catalogue import Catalogue
from engine.readers.base import Context
from engine.readers.dcgmi import (
    DIAG_JSON,
    HEALTH_JSON,
    DcgmiMessageReader,
    DiagReader,
    DiscoveryReader,
    DmonReader,
    HealthReader,
    NvlinkReader,
    StatsReader,
)
from tests.engine.readers.conftest import ReadText
from tests.support.listings import SAMPLES, faults_of, faults_of_damage, said_of

READERS = (
    DiagReader,
    HealthReader,
    DmonReader,
    NvlinkReader,
    DiscoveryReader,
    StatsReader,
    DcgmiMessageReader,
)
# Sample in tests/data/read, the kind it is of, and its first cause.
KNOWN = {
    "dcgmi-diag.txt": ("dcgmi_diag", "ecc_uncorrectable"),
    "dcgmi-diag-3.txt": ("dcgmi_diag", "row_remap_failure"),
    "dcgmi-diag.json": ("dcgmi_diag", "pcie_errors"),
    "dcgmi-health.txt": ("dcgmi_health", "ecc_uncorrectable"),
    "dcgmi-health.json": ("dcgmi_health", "thermal_slowdown_sw"),
    "dcgmi-dmon.txt": ("dcgmi_dmon", "thermal_slowdown_hw"),
    "dcgmi-nvlink-s.txt": ("dcgmi_nvlink", "nvlink_down"),
    "dcgmi-nvlink-e.txt": ("dcgmi_nvlink", "nvlink_errors"),
    "dcgmi-discovery.txt": ("dcgmi_discovery", "gpu_off_bus"),
    "dcgmi-stats.txt": ("dcgmi_stats", "thermal_slowdown_sw"),
    "dcgmi-policy.txt": ("dcgmi", "gpu_off_bus"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_sample_is_known_by_its_kind_alone(name: str, read_text: ReadText) -> None:
    kind, cause = KNOWN[name]
    answer = read_text((SAMPLES / name).read_text(encoding="utf-8"))
    assert answer.kinds == (kind,)
    assert answer.causes[:1] == (cause,)


@pytest.mark.parametrize("name", [n for n in KNOWN if n.endswith(".txt")])
def test_a_damaged_sample_is_read_as_far_as_it_goes(name: str, catalogue: Catalogue) -> None:
    assert faults_of_damage(READERS, name, catalogue) == []


@given(lines=st.lists(st.text(max_size=80), max_size=30))
def test_random_text_has_no_finding(lines: list[str], catalogue: Catalogue) -> None:
    assert said_of(READERS, lines, catalogue) == []


_KEYS = st.sampled_from(
    (
        "DCGM Diagnostic",
        "DCGM GPU Diagnostic",
        "test_categories",
        "tests",
        "results",
        "status",
        "warnings",
        "warning",
        "error_id",
        "entity_id",
        "gpu_ids",
        "iterations",
        "metadata",
        "body",
        "header",
        "Overall Health",
        "GPU",
        "children",
        "value",
        "overflow",
        "Errors",
    )
)
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(("Fail", "Pass", "0,1,٣", "Health Monitor Report", "Failure", "GPU 0", "")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=25,
)


@given(value=st.dictionaries(_KEYS, _VALUES, max_size=5))
def test_no_document_is_too_odd(value: object, catalogue: Catalogue) -> None:
    for kind in (DIAG_JSON, HEALTH_JSON):
        if kind.detect(value):
            result = kind.read(value, Context(catalogue), 1)
            assert [fault for f in result.findings for fault in faults_of(f, catalogue)] == []


def test_a_skipped_diagnostic_is_not_healthy(read_text: ReadText) -> None:
    answer = read_text(
        "| Diagnostic                | Result                                         |\n"
        "+===========================+================================================+\n"
        "| Targeted Stress           | Skip - All                                     |\n"
    )
    assert "healthy" not in answer.causes
    assert "these say nothing" in answer.findings[0].says


def test_hosts_of_a_parallel_shell_are_told_apart(read_text: ReadText) -> None:
    text = (SAMPLES / "dcgmi-nvlink-s.txt").read_text(encoding="utf-8")
    sound = text.replace("D", "U")
    both = zip(text.splitlines(), sound.splitlines(), strict=True)
    answer = read_text("\n".join(f"node-1: {a}\nnode-2: {b}" for a, b in both))
    [down] = [f for f in answer.findings if f.cause == "nvlink_down"]
    assert down.entity is not None
    assert down.entity.name == "node-1:1"


def test_a_long_monitor_stays_bounded(read_text: ReadText) -> None:
    row = "GPU 0     1980   61     612.3  99\n"
    answer = read_text("#Entity   SMCLK  TMPTR  POWER  GPUTL\nID\n" + row * 20_000)
    assert answer.findings[0].data["rows"] == 20_000
