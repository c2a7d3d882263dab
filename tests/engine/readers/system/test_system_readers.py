"""Readers of CPU and memory listings: every sample is known, damage and noise do no harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.catalogue import Catalogue
from engine.readers.system import SYSTEM_READERS
from tests.engine.readers.conftest import ReadText
from tests.support.listings import SAMPLES, faults_of_damage, said_of

# Sample in tests/data/read, the kind it is of, and its first cause.
KNOWN = {
    "cpu-stat.txt": ("cpu_quota", "cpu_quota_throttled"),
    "proc-pressure.txt": ("pressure", "storage_slow"),
    "free.txt": ("free", "host_memory_pressure"),
    "vmstat.txt": ("vmstat", "host_memory_pressure"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_sample_is_known_by_its_kind_alone(name: str, read_text: ReadText) -> None:
    kind, cause = KNOWN[name]
    answer = read_text((SAMPLES / name).read_text(encoding="utf-8"))
    assert answer.kinds == (kind,)
    assert answer.causes[:1] == (cause,)
    assert answer.unread_lines == 0


@pytest.mark.parametrize("name", KNOWN)
def test_a_damaged_sample_is_read_as_far_as_it_goes(name: str, catalogue: Catalogue) -> None:
    assert faults_of_damage(SYSTEM_READERS, name, catalogue, copies=120) == []


@given(lines=st.lists(st.text(max_size=80), max_size=30))
def test_random_text_has_no_finding(lines: list[str], catalogue: Catalogue) -> None:
    assert said_of(SYSTEM_READERS, lines, catalogue) == []


def test_a_single_line_of_vmstat_is_not_taken_for_now(read_text: ReadText) -> None:
    header, columns, first, *_ = (SAMPLES / "vmstat.txt").read_text(encoding="utf-8").splitlines()
    answer = read_text("\n".join([header, columns, first.replace("9   12", "9000 9000")]))
    assert answer.causes == ()
    assert "since boot" in answer.findings[0].says
