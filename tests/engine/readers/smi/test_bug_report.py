"""``nvidia-bug-report.log``: everything in it is found, once, and nothing that is not there."""

from __future__ import annotations

import gzip
from collections import Counter
from pathlib import Path

import pytest

from engine.catalogue import Catalogue
from engine.model import Read, Severity
from engine.readers import read
from tests.support.readings import judge

SAMPLE = (Path(__file__).parents[3] / "data" / "read" / "nvidia-bug-report.txt").read_bytes()
FRAME = """\
____________________________________________

Start of NVIDIA bug report log file.  Please include this file, along
with a detailed description of your problem, when reporting a graphics

nvidia-bug-report.sh Version: 36118961

Date: Tue Jun  2 09:52:10 UTC 2026
uname: Linux gpu-17 5.15.0-119-generic #129-Ubuntu SMP x86_64 GNU/Linux

____________________________________________

Scanning kernel log files for NVIDIA kernel messages:

  /var/log/kern.log:
{log}

  journalctl -b -0:
{journal}

____________________________________________

dmesg:

{dmesg}
____________________________________________

End of NVIDIA bug report log file.
"""
XID = "NVRM: Xid (PCI:0000:ca:00): 79, pid=1, GPU has fallen off the bus."


@pytest.fixture(scope="module")
def answer(catalogue: Catalogue) -> Read:
    return read(gzip.compress(SAMPLE, mtime=0), catalogue, judge)


def test_each_thing_is_found_once(answer: Read) -> None:
    found = Counter((f.kind, f.id) for f in answer.findings if f.severity is not Severity.INFO)
    assert found == {
        ("xid", "94"): 1,
        ("xid", "63"): 1,
        ("xid", "45"): 1,
        ("pcie_link", "bandwidth_limited"): 1,
        ("pcie_aer", "aer_corrected"): 1,
        ("lspci", "narrow"): 1,
        ("lspci", "aer_corrected"): 1,
        ("nvidia_smi_q", "ecc_uncorrected"): 1,
        ("nvidia_smi_q", "recovery_drain"): 1,
        ("nvidia_smi_q", "remap_pending"): 1,
        ("nvidia_smi_q", "pcie_narrow"): 1,
    }


def test_findings_name_the_right_gpu(answer: Read) -> None:
    for found in answer.findings:
        if found.severity is Severity.INFO:
            continue
        narrow = found.kind.startswith("pcie") or found.kind == "lspci" or "narrow" in found.id
        assert ("4b:00" if narrow else "ca:00") in found.says


def test_the_report_says_whose_it_is(answer: Read) -> None:
    (note,) = [note for note in answer.notes if "bug report" in note]
    assert "gpu-17" in note
    assert "Jun  2 09:52:10" in note
    assert "17 repeats left out" in note
    assert answer.kinds[0] == "nvidia_bug_report"


def test_causes_are_those_of_the_sample(answer: Read) -> None:
    assert answer.causes[0] == "ecc_contained"
    assert set(answer.causes) == {
        "ecc_contained",
        "row_remap_pending",
        "pcie_degraded",
        "pcie_errors",
        "ecc_uncorrectable",
        "gpu_needs_reset",
        "idle",
    }


def xids(text: str, catalogue: Catalogue) -> int:
    found = [f for f in read(text.encode(), catalogue).findings if f.kind == "xid"]
    return sum(f.data.get("count", 1) for f in found)


def framed(log: str, journal: str, dmesg: str) -> str:
    return FRAME.format(log=log, journal=journal, dmesg=dmesg)


def test_copies_of_one_event_are_one(catalogue: Catalogue) -> None:
    text = framed(
        f"Jun  2 02:14:07 gpu-17 kernel: [690127.441112] {XID}",
        f"Jun 02 02:14:08 gpu-17 kernel: {XID}",
        f"[690127.441112] {XID}",
    )
    assert xids(text, catalogue) == 1


def test_times_in_iso_form_are_compared_too(catalogue: Catalogue) -> None:
    text = framed(
        f"2026-06-02T02:14:07.441112+00:00 gpu-17 kernel: {XID}",
        f"Jun 02 02:14:07 gpu-17 kernel: {XID}",
        "",
    )
    assert xids(text, catalogue) == 1


def test_the_same_words_at_another_time_are_another_event(catalogue: Catalogue) -> None:
    text = framed(
        f"Jun  2 02:14:07 gpu-17 kernel: {XID}",
        f"Jun 02 02:14:07 gpu-17 kernel: {XID}\nJun 02 05:00:00 gpu-17 kernel: {XID}",
        f"[690127.441112] {XID}\n[700073.100000] {XID}",
    )
    assert xids(text, catalogue) == 2


def test_what_one_copy_repeats_itself_counts(catalogue: Catalogue) -> None:
    text = framed("", "", f"[10.100000] {XID}\n[20.100000] {XID}\n[30.100000] {XID}")
    assert xids(text, catalogue) == 3


def test_without_the_frame_nothing_is_left_out(catalogue: Catalogue) -> None:
    text = f"dmesg:\n\n[10.100000] {XID}\ndmesg:\n\n[10.100000] {XID}\n"
    assert xids(text, catalogue) == 2


def test_two_reports_are_two(catalogue: Catalogue) -> None:
    one = framed("", "", f"[10.100000] {XID}")
    assert xids(one + one, catalogue) == 2
    notes = read((one + one).encode(), catalogue).notes
    assert any("2 NVIDIA bug reports" in note for note in notes)
