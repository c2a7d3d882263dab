"""Lines of a kernel log that are no Xids, logs in every wrapping, and healthy logs."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.catalogue import Catalogue
from engine.model import Read
from engine.readers.base import Context
from engine.readers.kernel import KernelReader
from tests.support.cases import Case, check, plain
from tests.support.yamlfiles import parse

DATA = Path(__file__).parents[2] / "data"
SAMPLES = sorted((DATA / "read").glob("kernel-log*.txt"))


def kernel_read(text: str, catalogue: Catalogue) -> Read:
    """Read text with the kernel reader alone, offering it every line."""
    reader = KernelReader(Context(catalogue))
    unread = 0
    for number, line in enumerate(text.split("\n"), 1):
        unread += not reader.feed(number, line) and bool(line.strip())
    result = reader.finish()
    return Read(
        kinds=tuple(result.kinds),
        findings=tuple(result.findings),
        causes=tuple(dict.fromkeys(result.causes)),
        unread_lines=unread,
        notes=tuple(result.notes),
    )


def _variants() -> list[object]:
    raw = parse((DATA / "variants" / "kernel_log.yaml").read_text(encoding="utf-8"))
    return [
        pytest.param(
            Case(
                id=one["name"],
                kind="kernel_log",
                input=one["input"],
                decode=one.get("decode", {}),
                causes=tuple(one.get("causes", ())),
                causes_not=tuple(one.get("causes_not", ())),
                all_of=tuple(one.get("all_of", ())),
                none_of=tuple(one.get("none_of", ())),
                target=None,
                metrics=None,
            ),
            id=one["name"],
        )
        for one in raw["variants"]
    ]


@pytest.mark.parametrize("one", _variants())
def test_a_variant_is_answered_in_full(one: Case, catalogue: Catalogue) -> None:
    answer = kernel_read(one.input, catalogue)
    assert check(one, answer, plain(answer), catalogue) == []


@pytest.mark.parametrize("one", _variants())
def test_every_line_of_a_variant_has_a_trigger(one: Case, catalogue: Catalogue) -> None:
    """What the reader says when offered every line, it says when offered those with triggers."""
    import re

    reader = KernelReader(Context(catalogue))
    pattern = re.compile(KernelReader.pattern)
    for number, line in enumerate(one.input.split("\n"), 1):
        raw = line.encode()
        if reader.open or any(t in raw for t in reader.triggers) or pattern.search(raw):
            reader.feed(number, line)
    assert [f.says for f in reader.finish().findings] == [
        f.says for f in kernel_read(one.input, catalogue).findings
    ]


def test_a_healthy_boot_reports_nothing(catalogue: Catalogue) -> None:
    text = (DATA / "read" / "kernel-log-healthy-boot.txt").read_text(encoding="utf-8")
    for prefix in ("", "Mar 03 04:05:06 n1 kernel: "):
        answer = kernel_read("\n".join(prefix + line for line in text.split("\n")), catalogue)
        assert answer.findings == ()
        assert answer.kinds == ("kernel_log",)


# What fills the logs of a node that is well.
NOISE = (
    '{p}audit: type=1400 audit({n}.1:2): apparmor="ALLOWED" operation="open" profile="x" pid={n}',
    "{p}IPv6: ADDRCONF(NETDEV_CHANGE): cali{n}: link becomes ready",
    "{p}docker0: port 2(veth{n}) entered forwarding state",
    "{p}eth0: renamed from veth{n}",
    "{p}veth{n}: Link is up",
    "{p}mlx5_core 0000:18:00.0: mlx5_cmd_out_err:838:(pid {n}): QUERY_VPORT_COUNTER(0x770) op_mod(0x0) ok",
    "{p}EXT4-fs (dm-{n}): mounted filesystem with ordered data mode",
    "{p}nvme nvme0: 96/0/0 default/read/poll queues",
    "{p}NVRM: GPU0 nvAssertFailedNoLog: Assertion failed: 0 == 1 @ kernel_{n}.c:12",
    "{p}perf: interrupt took too long (2503 > 2500), lowering kernel.perf_event_max_sample_rate to {n}",
    "{p}python[{n}]: segfault at 0 ip 00007f sp 00007f error 4 in libc.so.6",
    "{p}TCP: request_sock_TCP: Possible SYN flooding on port {n}. Sending cookies.",
    "{p}nfs: server nas1 OK",
    "{p}Lustre: scratch-OST0001-osc-ffff: Connection restored to 10.0.1.5@o2ib (at 10.0.1.5@o2ib)",
    "{p}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {n} MiB",
    "{p}kubelet: dhcp xid 0x{n} requested lease, xid 79",
)
PREFIXES = (
    "[{t:12.6f}] ",
    "Mar 03 04:05:06 n1 kernel: [{t:12.6f}] ",
    "2025-03-03T04:05:06.123456+00:00 n1 kernel: ",
)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_one_xid_in_noise_is_found_and_nothing_else(prefix: str, catalogue: Catalogue) -> None:
    chance = random.Random(7)
    lines = [
        chance.choice(NOISE).format(p=prefix.format(t=1000 + i / 10), n=chance.randrange(10**5))
        for i in range(20_000)
    ]
    at = 12_345
    stamp = prefix.format(t=2234.5)
    lines[at] = f"{stamp}NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=x, GPU has fallen off the bus."
    answer = kernel_read("\n".join(lines), catalogue)
    (finding,) = answer.findings
    assert (finding.id, finding.line, finding.entity and finding.entity.pci) == (
        "79",
        at + 1,
        "0000:3b:00",
    )
    assert answer.causes == ("gpu_off_bus",)


FRAGMENTS = sorted(
    {
        line
        for path in SAMPLES
        for line in path.read_text(encoding="utf-8").split("\n")
        if line.strip()
    }
    | {line for p in _variants() for line in p.values[0].input.split("\n") if line.strip()}
)


@settings(max_examples=60, deadline=None)
@given(
    lines=st.lists(st.sampled_from(FRAGMENTS), max_size=12),
    cuts=st.lists(st.integers(0, 200), max_size=12),
    junk=st.lists(st.text(max_size=30), max_size=4),
)
def test_broken_lines_never_raise(
    lines: list[str], cuts: list[int], junk: list[str], catalogue: Catalogue
) -> None:
    broken = [line[cut % (len(line) + 1) :] for line, cut in zip(lines, cuts, strict=False)]
    broken += [line[: cut % (len(line) + 1)] for line, cut in zip(lines, cuts, strict=False)]
    broken += [a + b for a, b in zip(junk, lines, strict=False)]
    answer = kernel_read("\n".join([*broken, *lines]), catalogue)
    plain(answer)


@settings(max_examples=80, deadline=None)
@given(text=st.text(max_size=400))
def test_random_text_shows_nothing(text: str, catalogue: Catalogue) -> None:
    assert kernel_read(text, catalogue).findings == ()


@pytest.mark.parametrize("word", [m.decode() for m in KernelReader.triggers])
def test_a_hostile_line_of_one_word_is_read_in_no_time(word: str, catalogue: Catalogue) -> None:
    import time

    line = (word * 32_768)[:32_768]
    began = time.perf_counter()
    kernel_read("\n".join([line] * 5), catalogue)
    assert time.perf_counter() - began < 2.0
