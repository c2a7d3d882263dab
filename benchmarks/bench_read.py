"""How fast logs are read, on one core, and in how much memory; beside ``grep -c`` on the same file.

Rate and memory are those of a whole process, less the time an empty input takes in one (start,
knowledge): what a second megabyte costs is measured, not the first.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.cold import measure
from benchmarks.harness import Row

MEGABYTES = 200
ROUNDS = 3
TARGET_MB_S = 100.0
TARGET_MEMORY = 150 << 20
_READ = (
    "import sys; from pathlib import Path; from engine.catalogue import load_catalogue; "
    "from engine.readers import read; read(Path(sys.argv[1]), load_catalogue())"
)
_XID = (
    "Nov 29 03:12:01 node-3 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python3, "
    "GPU has fallen off the bus.\n"
)
_KERNEL = (
    "Nov 29 {t} node-3 kernel: usb 1-{a}: new high-speed USB device number {b} using xhci_hcd",
    "Nov 29 {t} node-3 systemd[1]: Started Session {b} of user root.",
    "Nov 29 {t} node-3 sshd[{b}]: Accepted publickey for ops from 10.1.{a}.7 port {b} ssh2",
    ("Nov 29 {t} node-3 kernel: [UFW BLOCK] IN=eth0 OUT= MAC=aa:bb:cc SRC=10.0.{a}.9 DST=10.0.0.1 "
    "LEN=40 TOS=0x00 PREC=0x00 TTL=244 ID={b} PROTO=TCP SPT={b} DPT=22 WINDOW=1024 RES=0x00 SYN"),
    'Nov 29 {t} node-3 containerd[992]: time="2026-11-29T03:12:01Z" level=info msg="cleanup {b}"',
    "Nov 29 {t} node-3 kernel: perf: interrupt took too long ({b} > 2500), lowering the rate",
)  # fmt: skip
_NCCL = (
    "node-{a}:{p}:{q} [{g}] NCCL INFO Channel {c:02}/0 : {r}[{g}] -> {s}[{h}] via P2P/CUMEM",
    (
        "node-{a}:{p}:{q} [{g}] NCCL INFO Channel {c:02}/0 : {r}[{g}] -> {s}[{h}] [send] via "
        "NET/IB/{h}/GDRDMA"
    ),
    (
        "node-{a}:{p}:{q} [{g}] NCCL INFO Channel {c:02}/0 : {s}[{h}] -> {r}[{g}] [receive] via "
        "NET/IB/{h}/GDRDMA"
    ),
    (
        "node-{a}:{p}:{q} [{g}] NCCL INFO AllReduce: opCount {r:x} sendbuff 0x7f2a00000000 "
        "recvbuff 0x7f2a10000000 count {p} datatype 7 op 0 root 0 comm 0x55d0c0ffee00 [nranks=512] "
        "stream 0x55d0deadbeef"
    ),
    "node-{a}:{p}:{q} [{g}] NCCL INFO Trees [0] {r}/-1/-1->{s}->-1 [1] {r}/-1/-1->{s}->-1",
    "node-{a}:{p}:{q} [{g}] NCCL INFO Connected all rings",
)


def kernel_log(lines: int) -> Iterator[str]:
    """Yield lines of a machine's log with one Xid in the middle."""
    rng = random.Random(1)
    for number in range(lines):
        if number == lines // 2:
            yield _XID
        stamp = f"{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}"
        yield (
            rng.choice(_KERNEL).format(t=stamp, a=rng.randrange(250), b=rng.randrange(65_536))
            + "\n"
        )


def nccl_log(lines: int) -> Iterator[str]:
    """Yield lines of ``NCCL_DEBUG=INFO`` of many ranks, with one warning."""
    rng = random.Random(2)
    for number in range(lines):
        if number == lines // 2:
            yield (
                "node-3:984:1357 [4] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion "
                "from peer 10.0.0.9<44206> with status=12 opcode=129 len=65536 vendor err 129\n"
            )
        rank = rng.randrange(512)
        yield rng.choice(_NCCL).format(
            a=rank // 8, p=10_000 + rank, q=20_000 + rank, g=rank % 8, c=rng.randrange(16), r=rank,
            s=(rank + 1) % 512, h=(rank + 1) % 8,
        ) + "\n"  # fmt: skip


def rows() -> list[Row]:
    """Read both logs and count one word in them with grep."""
    out: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty"
        empty.touch()
        for name, lines, word in (
            ("kernel log", kernel_log, "Xid"),
            ("NCCL log", nccl_log, "NCCL WARN"),
        ):
            file = Path(folder) / name.replace(" ", "-")
            _fill(file, "".join(lines(50_000)))
            ours, nothing, grep = measure(
                ROUNDS,
                [sys.executable, "-c", _READ, str(file)],
                [sys.executable, "-c", _READ, str(empty)],
                # Into a pipe: grep stops at the first match if it writes to /dev/null.
                ["sh", "-c", 'grep -c "$1" "$2" | cat', "sh", word, str(file)],
            )
            megabytes = file.stat().st_size / 1e6
            rate = megabytes / max(ours.seconds - nothing.seconds, 1e-9)
            out.append(
                Row(
                    f"read, {name} of {megabytes:.0f} MB",
                    f"{rate:.0f} MB/s",
                    f"grep -c {megabytes / grep.seconds:.0f} MB/s",
                    f"{(ours.seconds - nothing.seconds) / grep.seconds:.1f} x",
                    f">= {TARGET_MB_S:.0f} MB/s",
                    rate >= TARGET_MB_S,
                )
            )
            out.append(
                Row(
                    f"read, {name}, peak memory",
                    f"{ours.memory / 1e6:.0f} MB",
                    f"empty input {nothing.memory / 1e6:.0f} MB",
                    f"+ {(ours.memory - nothing.memory) / 1e6:.0f} MB",
                    "< 150 MiB",
                    ours.memory < TARGET_MEMORY,
                )
            )
            file.unlink()
    return out


def _fill(file: Path, text: str) -> None:
    raw = text.encode()
    with file.open("wb") as stream:
        for _ in range(max(1, round(MEGABYTES * 1e6 / len(raw)))):
            stream.write(raw)
