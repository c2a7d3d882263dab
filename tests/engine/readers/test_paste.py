"""Mixed pastes, dirty bytes, and what is refused."""

from __future__ import annotations

import gzip
import os
import tarfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.catalogue import Catalogue
from engine.errors import GpuwhyError, InputError
from engine.model import Read, to_json
from engine.readers import Reading, read
from engine.readers.exporter import ExporterReader
from engine.readers.guard import Guard
from engine.readers.text import MAX_LINE
from tests.support import packaged
from tests.support.cases import family

ReadText = Callable[[str], Read]
XID = b"NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
METRIC = b'DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-1"} 63'
INPUTS = [c.input for name in ("xid_lines", "throttle", "dcgm_metrics") for c in family(name)]


def test_kinds_may_be_mixed(catalogue: Catalogue) -> None:
    paste = b"hello\n# from node-3\n" + XID + b"\n\n" + METRIC + b"\nHW Slowdown : Active\n"
    answer = read(paste, catalogue)
    assert answer.kinds == ("xid", "metrics", "nvidia_smi_q", "throttle")
    assert answer.causes[0] == "gpu_off_bus"
    assert answer.unread_lines == 1


@pytest.mark.parametrize(
    "paste",
    [
        XID + b"\r\n",
        b"\x1b[33m[  1.0] \x1b[0m\x1b[31mNVRM: \x1b[0m" + XID[6:] + b"\x1b[0m",
        b"\xef\xbb\xbf" + XID,
        b"\xff\xfe\xfa caf\xe9 " + b"\n" + XID,
        XID.decode().encode("utf-16"),
        b"x" * (MAX_LINE * 3) + b"\n" + XID,
    ],
    ids=["crlf", "colours", "mark", "latin-1", "utf-16", "long line"],
)
def test_dirty_text_is_read(paste: bytes, catalogue: Catalogue) -> None:
    if paste.startswith(b"\xff\xfe\xfa"):
        paste = paste[3:]
    answer = read(paste, catalogue)
    assert answer.causes == ("gpu_off_bus",)


def test_a_cut_line_is_said(catalogue: Catalogue) -> None:
    said = (f"1 line(s) over {MAX_LINE} bytes were cut: their start was read.",)
    for length in (MAX_LINE * 3, MAX_LINE * 30):
        answer = read(b"x" * length + b"NVRM: Xid\n" + XID, catalogue)
        assert (answer.notes, answer.unread_lines) == (said, 1)
        assert answer.causes == ("gpu_off_bus",)
    harmless = read(b"x" * (MAX_LINE * 3) + b"\n" + XID, catalogue)
    assert (harmless.notes, harmless.unread_lines) == ((), 1)


@pytest.mark.parametrize(
    ("paste", "says"),
    [
        (b"NVRM: Xid\n\x7fELF\2\1\1\0\0\0\0\0\0", "binary: NUL byte in line 2"),
        (b"\x1f\x8b\x08\x00abcdefgh", "gzip input is damaged"),
        (b"\x28\xb5\x2f\xfdabc", "zstd input is damaged"),
        (b"BZh91AY&SY", "bzip2-compressed"),
        (gzip.compress(gzip.compress(XID, mtime=0), mtime=0), "packed twice"),
        (gzip.compress(b"a\n" * (50 << 20), mtime=0), "looks like a bomb"),
        (zstandard.compress(b"a\n" * (50 << 20)), "looks like a bomb"),
    ],
)
def test_what_is_no_text_is_refused(paste: bytes, says: str, catalogue: Catalogue) -> None:
    with pytest.raises(InputError, match=says):
        read(paste, catalogue)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gzip", "zstd"])
def test_packed_text_is_read(pack: Callable[[bytes], bytes], catalogue: Catalogue) -> None:
    text = (b"noise\n" * 200_000) + XID
    packed = pack(text[:1000]) + pack(text[1000:])
    for size in (1, 1 << 20):
        chunks = [packed[i : i + size] for i in range(0, len(packed), size)]
        answer = read(chunks, catalogue)
        assert answer.causes == ("gpu_off_bus",)
        assert answer.findings[0].line == 200_001


def test_a_packed_log_that_breaks_off_is_read_as_far_as_it_goes(catalogue: Catalogue) -> None:
    whole = gzip.compress(XID + b"\n" + os.urandom(40_000).hex().encode())
    answer = read(whole[: len(whole) // 2], catalogue)
    assert answer.causes == ("gpu_off_bus",)
    assert answer.notes[-1].startswith("The gzip input breaks off (its end is missing)")


def test_a_run_of_nul_bytes_left_by_a_crash_is_skipped(catalogue: Catalogue) -> None:
    log = b"Nov 29 03:12:01 node-3 kernel: usb\n" * 4_000 + bytes(4096) + XID
    assert read(log, catalogue).causes == ("gpu_off_bus",)


def test_a_file_is_read_and_a_missing_one_named(tmp_path: Path, catalogue: Catalogue) -> None:
    file = tmp_path / "dmesg"
    file.write_bytes(XID)
    assert read(file, catalogue).causes == ("gpu_off_bus",)
    with pytest.raises(InputError, match=r"cannot read .*absent: No such file"):
        read(tmp_path / "absent", catalogue)


def test_nothing_is_a_valid_answer(catalogue: Catalogue) -> None:
    answer = read(b"", catalogue)
    assert answer.kinds == answer.findings == answer.causes == ()
    assert read(b"only prose\n\nand more\n", catalogue).unread_lines == 2


def test_noise_claims_nothing_and_hides_nothing(catalogue: Catalogue) -> None:
    noise = b"[1.0] usb 1-1: new high-speed USB device number 4 using xhci_hcd (id 79)\n" * 40_000
    answer = read([noise, XID + b"\n", noise], catalogue)
    (finding,) = answer.findings
    assert finding.line == 40_001
    assert answer.unread_lines == 80_000


@pytest.mark.parametrize("size", [1, 7, 100])
def test_chunks_may_be_cut_anywhere(size: int, catalogue: Catalogue) -> None:
    text = "\n".join(INPUTS).encode()
    chunks = [text[i : i + size] for i in range(0, len(text), size)]
    assert to_json(read(chunks, catalogue)) == to_json(read(text, catalogue))


def test_the_same_text_gives_the_same_answer(catalogue: Catalogue) -> None:
    text = "\n".join(INPUTS).encode()
    assert read(text, catalogue) == read(text, catalogue)


CATALOGUE = packaged.knowledge()
LINES = sorted({line for text in INPUTS for line in text.splitlines()})


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_give_an_answer_or_a_plain_error(data: bytes) -> None:
    with suppress(GpuwhyError):
        to_json(read(data, CATALOGUE))


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Some lines from the field, each with a piece cut out, doubled or replaced."""
    lines = draw(st.lists(st.sampled_from(LINES), min_size=1, max_size=6))
    out = []
    for line in lines:
        a = draw(st.integers(0, len(line)))
        b = draw(st.integers(a, len(line)))
        middle = draw(st.sampled_from(["", line[a:b] * 2, "0x", "))((", ": ", "999999999", "é"]))
        out.append(line[:a] + middle + line[b:])
    return "\n".join(out)


@settings(max_examples=300, deadline=None)
@given(mutated())
def test_mutated_lines_never_crash_and_never_yield_an_xid_that_is_not_there(text: str) -> None:
    answer = read(text.encode(), CATALOGUE)
    to_json(answer)
    for finding in answer.findings:
        code = finding.data.get("xid")
        if code is not None:
            assert str(code) in text
        if finding.kind == "sxid":
            assert str(finding.data["sxid"]) in text


def _both(first: str, second: str, catalogue: Catalogue) -> tuple[list[Read], Read | None]:
    reading = Reading(catalogue)
    reading.add("a", first.encode())
    reading.add("b", second.encode())
    return reading.finish()


def test_kernel_logs_of_two_files_are_not_mixed(catalogue: Catalogue) -> None:
    line = "NVRM: Xid (PCI:0000:1a:00): 48, pid=1, DBE (double bit error)\n"
    parts, together = _both(line, "hello\n" + line, catalogue)
    assert together is None
    assert [[f.line for f in part.findings] for part in parts] == [[1], [2]]
    assert all("2 times" not in f.says for part in parts for f in part.findings)


def test_logs_of_the_ranks_of_a_job_are_read_together(catalogue: Catalogue) -> None:
    head = (
        "NCCL INFO ncclCommInitRank comm 0x55d0 rank {r} nranks 3 cudaDev 0 busId 1b000 commId 0x7f"
    )
    log = "node-{r}:10:10 [0] " + head + " - Init START\n"
    alone, _ = _both(log.format(r=0), "nothing\n", catalogue)
    parts, together = _both(log.format(r=0), log.format(r=2), catalogue)
    said = [f for part in [*parts, together] if part for f in part.findings]
    assert any(f.data.get("missing_ranks") == [1] for f in said), [f.data for f in said]
    assert any(f.data.get("missing_ranks") == [1, 2] for f in alone[0].findings)


def test_a_line_that_a_shared_reader_names_is_that_of_its_file(catalogue: Catalogue) -> None:
    warn = "n1:1:1 [0] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left"
    parts, _ = _both("one\ntwo\n", f"one\n{warn} on device\n", catalogue)
    assert [f.line for f in parts[0].findings] == []
    assert [f.line for f in parts[1].findings if f.line] == [2]


def test_an_input_that_cannot_be_read_does_not_harm_the_others(catalogue: Catalogue) -> None:
    reading = Reading(catalogue)
    reading.add("a", b"NVRM: Xid (PCI:0000:1a:00): 79, GPU has fallen off the bus.\n")
    with pytest.raises(InputError):
        reading.add("b", b"\xff\xd8\x00\x00\x00\x00")
    parts, _ = reading.finish()
    assert [part.causes for part in parts] == [("gpu_off_bus",)]


def test_a_folder_is_refused_with_what_to_do(catalogue: Catalogue, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="folder") as caught:
        read(tmp_path, catalogue)
    assert "*" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "dress",
    [
        lambda text: "".join(f"> {row}\n" for row in text.splitlines()),
        lambda text: "".join(f">> {row}\n" for row in text.splitlines()),
        lambda text: text.replace("Slowdown", "\x1b[01;31m\x1b[KSlow\x1b[m\x1b[Kdown"),
        lambda text: f"```{text}```",
        lambda text: f"```text\n{text}\n```\n",
        lambda text: text.replace("    HW", "\u00a0\u00a0\u00a0\u00a0HW"),
    ],
    ids=["quoted", "quoted twice", "coloured by grep", "fence", "fence lines", "no-break spaces"],
)
def test_dressed_up_text_is_read_as_the_bare_one(
    dress: Callable[[str], str], catalogue: Catalogue
) -> None:
    text = (
        "    Clocks Event Reasons\n        Idle : Not Active\n    HW Slowdown : Active\n"
        "        HW Thermal Slowdown : Active\n        HW Power Brake Slowdown : Not Active"
    )
    bare = read(text.encode(), catalogue)
    answer = read(dress(text).encode(), catalogue)
    assert answer.causes == bare.causes == ("thermal_slowdown_hw",)
    assert answer.unread_lines == bare.unread_lines


@pytest.mark.parametrize("first", [True, False])
def test_the_worst_of_two_tools_stands_first(first: bool, catalogue: Catalogue) -> None:
    segv = "NVRM: Xid (PCI:0000:1a:00): 31, pid=7, name=python, Ch 00000008, MMU Fault\n"
    lost = (
        "Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.  Reboot the system"
    )
    pasted = [segv, lost + " to recover this GPU\n"]
    answer = read("".join(pasted if first else pasted[::-1]).encode(), catalogue)
    assert answer.causes[0] == "gpu_off_bus"


def test_a_secret_does_not_leak_where_a_text_is_cut(catalogue: Catalogue) -> None:
    token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    head = (
        "n1:1:1 [0] misc/socket.cc:1 NCCL WARN socketStartConnect: Connect to 10.3.1.9<4411> failed"
    )
    for fill in range(30, 80):
        answer = read(f"{head} : {'x' * fill} {token}\n".encode(), catalogue)
        assert "ghp_ab" not in repr(answer)


def test_a_tar_archive_is_refused_with_what_to_do(catalogue: Catalogue, tmp_path: Path) -> None:
    log = tmp_path / "kern.log"
    log.write_bytes(XID)
    with tarfile.open(tmp_path / "logs.tar.gz", "w:gz") as archive:
        archive.add(log, "kern.log")
    with pytest.raises(InputError, match="tar archive") as caught:
        read(tmp_path / "logs.tar.gz", catalogue)
    assert "tar xf" in (caught.value.hint or "")


def test_a_reader_that_fails_does_not_take_the_others_with_it(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bool:
        raise ValueError("not a line of mine")

    monkeypatch.setattr(Guard, "strict", False)
    monkeypatch.setattr(ExporterReader, "feed", fail)
    answer = read(METRIC + b"\n" + XID + b"\n" + METRIC + b"\n", catalogue)
    assert answer.causes == ("gpu_off_bus",)
    assert any("ExporterReader failed" in note for note in answer.notes)
    monkeypatch.setattr(Guard, "strict", True)
    with pytest.raises(ValueError, match="not a line of mine"):
        read(METRIC + b"\n", catalogue)


def test_a_last_line_without_its_end_tells_as_much_as_with_it(catalogue: Catalogue) -> None:
    lines = (
        b"NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n"
        b"MI250 node, rocm 6.1, in-tree amdgpu"
    )
    (with_end,) = read(lines + b"\n", catalogue).findings
    (without,) = read(lines, catalogue).findings
    assert without == with_end
    assert "RCCL on AMD GPUs" in without.says
