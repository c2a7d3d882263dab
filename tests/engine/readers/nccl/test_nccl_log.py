"""Logs of NCCL, RCCL and torch.distributed: what is found, what is not claimed, what never fails."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.catalogue import Catalogue
from engine.errors import InputError
from engine.readers import read
from engine.readers.base import Context
from engine.readers.nccl import NcclReader, TopologyReader
from engine.readers.nccl.skim import Skim
from engine.readers.nccl.triggers import TRIGGERS
from tests.support.readings import catalogue as shipped

DATA = Path(__file__).parents[3] / "data" / "read"
LOGS = ("nccl-info.log", "nccl-warn.log", "nccl-watchdog.txt", "nccl-coll.log", "rccl.log")
FILES = ("nccl-topology.xml", "nccl-topology-healthy.xml", "nccl-graph.xml")
NOISE = (
    "2026-11-01 03:00:00 INFO epoch 3 step 1200 loss 2.31",
    "Detected NaN in loss, skipping the step",
    "java.lang.OutOfMemoryError: Java heap space",
    "Error: listen EADDRINUSE: address already in use :::3000",
    "3 clients joined the channel",
    "systemd[1]: Timed out waiting for device /dev/sdb.",
    "wait timeout after 30 seconds, giving up",
    "curl: (28) Connect timeout [10 s]",
    "sent via NET/whatever and via P2P networks",
    "gateway: connection closed by remote peer 10.0.0.1<80>",
    "using NCCL_DEBUG is a good idea",
)


def test_the_reader_takes_lines_in_bulk_and_ranks_together(catalogue: Catalogue) -> None:
    reader = NcclReader(Context(catalogue))
    block = (DATA / "nccl-info.log").read_bytes()
    assert any(mark in block for mark in reader.skims)
    assert reader.skim(1, block) == block.count(b"\n")
    assert reader.together


def test_every_message_of_torch_holds_a_trigger(catalogue: Catalogue) -> None:
    texts = [
        (entry["id"], text, entry.get("also", []))
        for entry in catalogue.entries["torch_messages"].values()
        for text in entry["match"]
    ]
    assert len(texts) > 40
    words = [t.decode() for t in TRIGGERS]
    without = [
        (id_, text)
        for id_, text, also in texts
        if not any(word in part for word in words for part in (text, *also))
    ]
    assert without == []


@pytest.mark.parametrize("name", LOGS)
def test_every_line_of_a_sample_is_read(name: str, catalogue: Catalogue) -> None:
    answer = read(DATA / name, catalogue)
    assert answer.unread_lines == 0
    assert answer.kinds


def test_a_healthy_log_is_no_fault_and_holds_no_durations(catalogue: Catalogue) -> None:
    answer = read(DATA / "nccl-info.log", catalogue)
    assert answer.causes == ()
    assert {f.severity.value for f in answer.findings} == {"info"}
    assert any("no durations" in note and "Inspector" in note for note in answer.notes)


def test_the_first_error_stands_first(catalogue: Catalogue) -> None:
    answer = read(DATA / "nccl-warn.log", catalogue)
    assert [f.id for f in answer.findings][:3] == ["completion_12", "completion_5", "peer_closed"]
    assert answer.findings[0].line == 3


def test_noise_is_no_log_of_nccl(catalogue: Catalogue) -> None:
    answer = read("\n".join(NOISE).encode(), catalogue)
    assert [f for f in answer.findings if f.kind in ("nccl", "torch", "nccl_topology")] == []
    assert not {"nccl", "torch"} & set(answer.kinds)


def test_one_warning_in_a_million_lines_of_others_is_found(catalogue: Catalogue) -> None:
    warning = b"n1:7:8 [0] misc/socket.cc:58 NCCL WARN Connection closed by remote peer n4<45012>\n"
    noise = b"2026-11-01 03:00:00 INFO step done\n" * 100_000
    answer = read([noise, warning, noise], catalogue)
    assert [(f.id, f.line) for f in answer.findings] == [("peer_closed", 100_001)]
    assert answer.unread_lines == 200_000


def test_ranks_may_be_interleaved_in_any_order(catalogue: Catalogue) -> None:
    lines = (DATA / "nccl-watchdog.txt").read_text(encoding="utf-8").splitlines()
    answers = set()
    for seed in range(6):
        shuffled = list(lines)
        random.Random(seed).shuffle(shuffled)
        answer = read("\n".join(shuffled).encode(), catalogue)
        answers.add((answer.causes, str(answer.findings[0].data.get("behind_ranks"))))
    assert answers == {(("collective_hang",), "[5]")}


def test_a_large_log_is_the_same_as_its_short_form(catalogue: Catalogue) -> None:
    """Blocks are cut anywhere; channels are counted in all of them."""
    raw = (DATA / "nccl-info.log").read_bytes()
    once = next(f for f in read(raw, catalogue).findings if f.id == "transports")
    many = next(f for f in read([raw] * 200, catalogue).findings if f.id == "transports")
    assert many.data["transports"] == {k: 200 * v for k, v in once.data["transports"].items()}
    assert many.line == once.line


def test_memory_is_bounded(catalogue: Catalogue) -> None:
    reader = NcclReader(Context(catalogue))
    for number in range(6_000):
        reader.feed(
            number,
            f"n{number}:1:2 [0] transport/x{number}.cc:9 NCCL WARN NET/IB : Got completion from"
            f" peer 10.0.{number % 250}.{number // 250}<9> with error 12, opcode 1, len 0, vendor"
            " err 129",
        )
        reader.feed(number, f"n{number}:1:2 [0] a{number}.cc:9 NCCL WARN odd thing {number}")
    result = reader.finish()
    assert len(result.findings) < 200
    assert any("only counted" in note for note in result.notes)


def test_setup_lines_of_many_hosts_are_bounded() -> None:
    taken: list[str] = []
    skim = Skim(lambda _host, text, _line: taken.append(text))
    for number in range(0, 70_000, 1_000):
        block = "".join(
            f"n{i}:1:2 [0] NCCL INFO Using network IB\n" for i in range(number, number + 1_000)
        )
        skim.block(1, block.encode())
    assert len(taken) == skim.SETUP_LIMIT
    assert skim.overflow > 0


def test_out_of_memory_explains_a_time_out(catalogue: Catalogue) -> None:
    answer = read(
        b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total"
        b" capacity of 79.15 GiB of which 1.20 GiB is free.\n"
        b"[Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, "
        b"OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=600000) ran for 600001 milliseconds"
        b" before timing out.\n",
        catalogue,
    )
    assert answer.causes[0] == "gpu_memory_full"
    assert "collective_hang" in answer.causes


def test_controls_and_long_texts_are_not_quoted(catalogue: Catalogue) -> None:
    text = "n1:7:8 [0] odd.cc:5 NCCL WARN bad \x1b]0;title\x07\u202e" + "x" * 30_000
    answer = read(text.encode(), catalogue)
    said = "".join(f.says + f.action + str(f.data) for f in answer.findings)
    assert len(said) < 1_000
    assert not set(said) & set("\x1b\x07\u202e")


SAMPLES = [(DATA / name).read_text(encoding="utf-8") for name in (*LOGS, *FILES)]
PIECES = st.sampled_from(
    (
        "n1:7:8 [0] NCCL INFO ", "n1:7:8 [0] x.cc:3 NCCL WARN ", "[Rank 3] ", "[rank3]: ",
        "WorkNCCL(SeqNum=", "OpType=", "Timeout(ms)=", "last enqueued work: ", "-1", "99999999999",
        "comm 0x1 rank 9999999 nranks 2 ", " - Init START", "commId 0x", "Got completion with error ",
        "status=999", "vendor err ", "ibv_modify_qp failed with ", "MNNVL busId 0x1 fabric UUID a.b cliqueId 0x1 state 9 healthMask 0xffffffff", "via NET/", "via SHM", "\n", "\u0661\u0662",
        "healthMask 0x", "NCCL_IB_HCA set by environment to ", "Using network ", "<system version=",
        '"1"><gpu dev="', '" sm="90" link_width="', "</system>", "Last error:", ": opCount zz ",
        "[1,3]<stdout>:", "GPU Direct RDMA Disabled for HCA 0 'm'", "Pattern 4, crossNic ", "<", ">",
    )
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(PIECES, st.text(max_size=12)), max_size=40))
def test_nothing_in_a_line_makes_it_fail(parts: list[str]) -> None:
    with suppress(InputError):  # what is mostly control characters is refused as binary
        read("".join(parts).encode("utf-8", "replace"), shipped())


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(SAMPLES), st.data())
def test_a_damaged_log_does_not_fail(sample: str, data: st.DataObject) -> None:
    raw = bytearray(sample.encode())
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(raw) - 1))
        kind = data.draw(st.integers(0, 2))
        if kind == 0:
            raw[at] = data.draw(st.integers(1, 255))
        elif kind == 1:
            del raw[at : at + data.draw(st.integers(1, 60))]
            raw = raw or bytearray(b"x")
        else:
            raw[at:at] = data.draw(st.binary(min_size=1, max_size=20)).replace(b"\0", b"")
    read(bytes(raw), shipped())


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=400))
def test_random_text_is_no_finding(text: str) -> None:
    for make in (NcclReader, TopologyReader):
        reader = make(Context(shipped()))
        if isinstance(reader, NcclReader):
            reader.skim(1, text.encode("utf-8", "replace"))
        for number, line in enumerate(text.splitlines(), 1):
            reader.feed(number, line)
        assert reader.finish().causes == []


_BEHIND = """\
[rank3]:[E1111 03:10:11.1 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation \
timeout: WorkNCCL(SeqNum=211, OpType=_ALLGATHER_BASE, NumelIn=32, NumelOut=256, \
Timeout(ms)=1800000) ran for 1800012 milliseconds before timing out.
[rank6]:[E1111 03:10:11.3 ProcessGroupNCCL.cpp:616] [Rank 6] Watchdog caught collective operation \
timeout: WorkNCCL(SeqNum=210, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=1800000) ran \
for 1800042 milliseconds before timing out.
"""
_COMPLETION = """\
[rank0]: Last error:
[rank0]: NET/IB: Got completion from peer 10.0.0.2<47321> with status=12 opcode=0 len=0 vendor err \
129 (Send) hca mlx5_2
"""


@pytest.mark.parametrize("text", [_BEHIND + _COMPLETION, _COMPLETION + _BEHIND])
def test_an_error_that_explains_a_hang_stands_before_it(text: str, catalogue: Catalogue) -> None:
    answer = read(text.encode(), catalogue)
    assert answer.causes == ("ib_link_degraded", "collective_hang")
    assert [f.cause for f in answer.findings] == ["ib_link_degraded", "collective_hang"]
    assert "the time-out only follows" in answer.findings[1].says


def test_a_hang_that_nothing_explains_stands_first(catalogue: Catalogue) -> None:
    answer = read(_BEHIND.encode(), catalogue)
    assert answer.causes == ("collective_hang",)
    assert "only follows" not in answer.findings[0].says
