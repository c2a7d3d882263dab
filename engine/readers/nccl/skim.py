"""Take the usual lines of a log in bulk: channels, collectives, and what every rank says at start.

A log of thousands of ranks is nearly all such lines. They are found by two or three regular
expressions over blocks of bytes; what differs only in who printed it is looked at once.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from engine.readers.nccl.lines import host_of_head

# After this mark each alternative is a line that a rank prints a few times, not once a channel.
_SETUP: Final = (
    # Not the lines that name every connection.
    rb"(?:Using network |NET/(?!IB ?: (?:NCCL Dev|ncclDev|IbDev|Dev )|Plugin)|GPU Direct RDMA "
    rb"|[NR]CCL version|cudaDriverVersion |socket(?:Start|Poll|Finali[sz]e)?Connect|Call to "
    rb"|Bootstrap ?: Using|Initialized NET plugin|NVLS multicast support |DMA-BUF is available"
    rb"|\d{1,3} coll channels|Connected all rings, use|Pattern \d|GPU/[^\n :]{1,24} :GPU/"
    rb"|MNNVL |NCCL_|RCCL_|Invalid value |Warning: ENV "
    rb"|(?:\[Rank \d{1,7}\] )?(?:nccl\w{1,40} )?comm 0x[0-9a-f]{1,16} rank \d{1,7} n[rR]anks "
    rb"|Init timings[^\n]{1,80} total \d{2}|[\w./-]{1,120}\.(?:cc|h|cu|cpp):\d{1,6} -> [1-8]"
    rb"|P2P is disabled|P2P not supported"
    rb"|[A-Z]{2,10}/Plugin ?: (?:Could not find|No plugin|Plugin load|Failed to find)"
    rb"|Could not enable P2P|peer query failed|Could not find a path)[^\n]{0,1024}"
)
# The most frequent lines are turned away first.
_PREFIXED = re.compile(rb"CCL INFO (?!Chan|Trees|Ring |All|Red)(" + _SETUP + rb")")
# The same without a prefix, which people cut off when they quote; looked for in short pastes.
_BARE = re.compile(rb"(?m)^[ \t]{0,8}(?:(?:export|set|-x) )?(" + _SETUP + rb")")
_SHORT: Final = 65_536
_NODES = re.compile(rb" nNodes (\d{1,6}) ")
_VIA = re.compile(rb" via ([^\n]{1,96})")
# What follows (RCCL: the communicator's address) is cut off.
_TRANSPORT = re.compile(
    rb"(?:direct shared memory|P2P/(?:direct pointer|indirect|\w{1,16})|SHM|COLLNET/[^/\n]{1,40}"
    rb"|NET/[^/\n]{1,40}/\d{1,4})"
    rb"(?:\(\d{1,6}\))?(?:/[A-Za-z]{1,16}){0,4}(?:\(PCI\))?"
)
_PAIR = re.compile(
    rb": (\d{1,7})\[\w{1,16}\] -> (\d{1,7})\[\w{1,16}\] \[(?:send|receive)\] via NET/"
)
_COLLECTIVE = re.compile(
    rb"CCL INFO (\w{1,40}: opCount [0-9a-f]{1,16}) sendbuff \S{1,20} recvbuff \S{1,20}"
    rb" (count \d{1,18} datatype \d{1,3}) op \d{1,3} root \d{1,7} comm (\S{1,20})"
)

Collective = tuple[bytes, bytes, bytes]
"""``AllReduce: opCount 2a``, ``count 4194304 datatype 7``, and the communicator's address."""

TakeSetup = Callable[[str | None, str, int], None]
"""Gets the host (None if unknown), the message and the line of a set-up line."""


class Skim:
    """What the usual lines add up to, bounded."""

    # Few: each costs a pass over everything that is read.
    MARKS: Final = (b"CCL", b"] via ", b"NET/")
    TAIL: Final = 16_384
    SETUP_LIMIT: Final = 65_536
    PAIRS: Final = 4_096

    def __init__(self, take_setup: TakeSetup) -> None:
        self._take = take_setup
        self._known: set[tuple[str | None, bytes]] = set()
        self._heads: dict[bytes, str | None] = {}
        self._transports: dict[bytes, bytes] = {}
        self.transports: Counter[bytes] = Counter()
        self.first_lines: dict[bytes, int] = {}
        self.pairs: dict[tuple[bytes, bytes], int] = {}
        self.collectives = 0
        self.first_collective = 0
        self.last: dict[bytes, Collective] = {}
        self.tail: deque[Collective] = deque(maxlen=self.TAIL)
        self.nodes = 0
        self.overflow = 0
        self.info_lines = 0

    def block(self, number: int, block: bytes) -> int:
        """Take a block of whole lines; return about how many of its lines are of NCCL."""
        lines = 0
        if b" via " in block:
            found = _VIA.findall(block)
            lines += len(found)
            self._via(number, block, found)
        if b": opCount " in block:
            lines += self._collectives(number, block)
        lines += self._setup(number, block)
        info = block.count(b"CCL INFO ")
        self.info_lines += info
        return max(lines, info)

    def bare(self, number: int, text: str) -> bool:
        """Take a set-up line without a prefix; return whether it is one."""
        found = _BARE.match(text.encode("utf-8", "replace"))
        if found is not None and (None, found[1]) not in self._known:
            self._known.add((None, found[1]))
            self._take(None, found[1].rstrip().decode("utf-8", "replace"), number)
        return found is not None

    def _via(self, number: int, block: bytes, found: list[bytes]) -> None:
        for text, count in Counter(found).items():
            transport = self._transports.get(text)
            if transport is None:
                match = _TRANSPORT.match(text)
                transport = match[0] if match else b""
                if len(self._transports) < self.PAIRS:
                    self._transports[text] = transport
            if not transport:
                continue
            if transport not in self.transports:
                if len(self.transports) >= self.PAIRS:
                    self.overflow += count
                    continue
                at = block.find(b" via " + transport)
                self.first_lines[transport] = number + block.count(b"\n", 0, max(0, at))
            self.transports[transport] += count
        if b" via NET/" in block and len(self.pairs) < self.PAIRS:
            for pair in islice(_PAIR.finditer(block), 32):
                self.pairs.setdefault((pair[1], pair[2]), number)

    def _collectives(self, number: int, block: bytes) -> int:
        found: list[Collective] = _COLLECTIVE.findall(block)
        if not found:
            return 0
        if not self.collectives:
            at = block.find(b": opCount ")
            self.first_collective = number + block.count(b"\n", 0, at)
        self.collectives += len(found)
        self.tail.extend(found)
        last = {one[2]: one for one in found}
        if len(self.last) < self.SETUP_LIMIT:
            self.last.update(last)
        else:
            self.last.update((comm, one) for comm, one in last.items() if comm in self.last)
        return len(found)

    def _setup(self, number: int, block: bytes) -> int:
        lines = 0
        at, line = 0, number
        for start, head, said in self._setup_lines(block):
            lines += 1
            # A log in JSON closes the string after the line.
            text = said.partition(b'\\n"')[0]
            host = self._host(head)
            key = (host, text)
            if key in self._known:
                continue
            if len(self._known) >= self.SETUP_LIMIT:
                self.overflow += 1
                continue
            self._known.add(key)
            nodes = _NODES.search(text)
            if nodes is not None:
                self.nodes = max(self.nodes, int(nodes[1]))
            if start < at:
                at, line = 0, number
            line += block.count(b"\n", at, start)
            at = start
            self._take(host, text.rstrip().decode("utf-8", "replace"), line)
        return lines

    def _setup_lines(self, block: bytes) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield where a set-up line's message starts, what stands before it, and the message."""
        for found in _PREFIXED.finditer(block):
            start = found.start()
            yield start, block[block.rfind(b"\n", 0, start) + 1 : start - 1], found[1]
        if len(block) <= _SHORT:
            for found in _BARE.finditer(block):
                yield found.start(1), b"", found[1]

    def _host(self, head: bytes) -> str | None:
        if head in self._heads:
            return self._heads[head]
        host = host_of_head(head[-512:].decode("utf-8", "replace"))
        if len(self._heads) < self.SETUP_LIMIT:
            self._heads[head] = host
        return host
