"""The reader: lines go to those who know them, and what they found is put in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from engine.readers.base import Context, Result
from engine.readers.nccl import timeouts
from engine.readers.nccl.completions import Completions
from engine.readers.nccl.crashes import Crashes
from engine.readers.nccl.elastic import Elastic
from engine.readers.nccl.environment import Environment
from engine.readers.nccl.fabric import Fabric
from engine.readers.nccl.gdr import Gdr
from engine.readers.nccl.lines import NcclLine, parse
from engine.readers.nccl.messages import Messages
from engine.readers.nccl.network import Network
from engine.readers.nccl.paths import Paths, first_of, named
from engine.readers.nccl.queue_pairs import QueuePairs
from engine.readers.nccl.ranks import Ranks
from engine.readers.nccl.ras import Ras
from engine.readers.nccl.remarks import Remarks, remarks_of
from engine.readers.nccl.results import Callers
from engine.readers.nccl.skim import Skim
from engine.readers.nccl.told import ORDER, Told, harmless, in_order
from engine.readers.nccl.triggers import QUOTED, TRIGGERS
from engine.readers.nccl.unknown import Unknown
from engine.readers.nccl.versions import Versions
from engine.readers.nccl.watchdog import Watchdog

_NO_DURATIONS: Final = (
    "NCCL_DEBUG=INFO prints no durations, so these lines cannot show what is slow. Durations come"
    " from NCCL Inspector or another profiler plugin (NCCL_PROFILER_PLUGIN; then gpuwhy nccl"
    " stats), the Flight Recorder with TORCH_NCCL_ENABLE_TIMING=1, or nsys."
)
_ONLY_INFO: Final = (
    "NCCL's lines here are of level INFO: informational, none of them reports an error."
)
_REPEATS: Final = "Last error:"
_QUOTED: Final = tuple(word.decode() for word in QUOTED)


class NcclReader:
    """Reads logs of NCCL, RCCL and torch.distributed, of one rank or of many together."""

    triggers: ClassVar[tuple[bytes, ...]] = TRIGGERS
    # Who is missing or behind shows only in the logs of all ranks.
    together: ClassVar[bool] = True
    skims: ClassVar[tuple[bytes, ...]] = Skim.MARKS

    def __init__(self, context: Context) -> None:
        self.open = False
        self._skim = Skim(self._setup)
        self._remarks = Remarks()
        self._messages = Messages(context.catalogue, "nccl_messages")
        self._torch = Messages(context.catalogue, "torch_messages")
        self._completions = Completions(context.catalogue)
        self._queue_pairs = QueuePairs()
        self._watchdog = Watchdog()
        self._environment = Environment(context.catalogue)
        self._gdr = Gdr()
        self._network = Network()
        self._fabric = Fabric()
        self._ranks = Ranks()
        self._paths = Paths()
        self._versions = Versions()
        self._callers = Callers()
        self._crashes = Crashes()
        self._ras = Ras()
        self._elastic = Elastic()
        self._unknown = Unknown()
        self._seen = False
        self._warned = False
        self._after_last_error = False

    def skim(self, number: int, block: bytes) -> int:
        """Take the usual lines of a block of whole lines; return how many they are."""
        for line, text in remarks_of(number, block):
            self._remarks.add(line, text)
        found = self._skim.block(number, block)
        self._seen |= found > 0
        return found

    def feed(self, number: int, text: str) -> bool:
        """Take a line that may report an error; return whether it is known."""
        after_last_error, self._after_last_error = self._after_last_error, False
        known = self._take(number, text, after_last_error=after_last_error)
        self.open = self._after_last_error or self._elastic.open or self._ras.open
        return known

    def _take(self, number: int, text: str, *, after_last_error: bool) -> bool:
        if text.lstrip().startswith("#"):
            # A remark, or the head of a communicator in a report of RAS.
            return self._ras.head(number, text)
        line = parse(number, text)
        if line.level == "INFO":
            # It was taken, and counted, with its block.
            return False
        # PyTorch repeats NCCL's warning, in the next line or in this one.
        known = after_last_error and not line.level and self._warning(line)
        known = known or (self._printed(line) if line.level else self._framework(line))
        _, repeats, warning = line.text.partition(_REPEATS)
        if repeats:
            self._after_last_error = not warning.strip()
            known = self._warning(NcclLine(number, warning, rank=line.rank)) or known
        self._seen |= known
        return known or bool(repeats)

    def finish(self) -> Result:
        """Say what all lines together show, root causes first."""
        told = list(self._tell())
        # That an optional plugin is absent stands in every log: worth a word where it is all.
        told = [t for t in told if t.finding.id != "plugin_absent"] or told
        findings = in_order(told)
        kinds = ["nccl"] if self._skim_seen() else []
        kinds += [f.kind for f in findings]
        notes = []
        if self._info_only(told):
            if not findings:
                notes.append(_ONLY_INFO)
            notes.append(_NO_DURATIONS)
        overflow = self._overflow()
        if overflow:
            notes.append(f"{overflow} records of NCCL more than are kept were only counted.")
        return Result(
            kinds=list(dict.fromkeys(kinds)),
            findings=findings,
            causes=list(dict.fromkeys(f.cause for f in findings if f.cause)),
            notes=notes,
        )

    def _setup(self, host: str | None, text: str, number: int) -> None:
        """Take one set-up line; the first who knows it keeps it."""
        self._seen = True
        for taker in (
            self._environment, self._ranks, self._network, self._gdr, self._fabric,
            self._versions, self._paths,
        ):  # fmt: skip
            if taker.info(host, text, number):
                return
        if not self._callers.info(host, text, number, self._messages):
            line = NcclLine(number, text, "INFO", host)
            if not self._queue_pairs.feed(line):
                self._messages.feed(line)

    def _printed(self, line: NcclLine) -> bool:
        """Take a line that NCCL printed itself, at a level above INFO."""
        self._warned = True
        if not (self._warning(line) or self._torch.feed(line)):
            self._unknown.add(line)
        return True

    def _warning(self, line: NcclLine) -> bool:
        return (
            self._completions.feed(line)
            or self._queue_pairs.feed(line)
            or self._messages.feed(line)
        )

    def _framework(self, line: NcclLine) -> bool:
        """Take a line of PyTorch or of the kernel, or a quoted one without its prefix."""
        watched = self._watchdog.feed(line)
        if watched and "NCCL error" not in line.text:
            return True
        return (
            self._torch.feed(line)
            or watched
            or self._crashes.feed(line.number, line.text)
            or self._ras.feed(line.number, line.text)
            or self._elastic.feed(line.number, line.text)
            or (any(word in line.text for word in _QUOTED) and self._warning(line))
            or self._skim.bare(line.number, line.text)
        )

    def _tell(self) -> Iterator[Told]:
        skim, remarks = self._skim, self._remarks
        transports = named(skim)
        network = {n: c for n, c in transports.items() if n.startswith("NET/")}
        rdma = {n: c for n, c in network.items() if not n.startswith("NET/Socket")}
        nodes = remarks.several_nodes
        if nodes is None:
            nodes = self._ranks.several_nodes(skim.nodes)
        self._gdr.amd |= self._versions.amd
        messages = [*self._messages.tell(), *self._torch.tell()]
        errors = [t for t in messages if t.order < ORDER["setup"]]
        failed = bool(errors or self._completions.seen or self._queue_pairs.seen)
        broken = bool(self._completions.seen or self._queue_pairs.seen)
        hang = remarks.hang or self._watchdog.seen
        yield from self._completions.tell(remarks)
        yield from self._queue_pairs.tell(remarks)
        yield from messages
        nranks = max((c.nranks for c in self._ranks.communicators.values()), default=0)
        nranks = nranks or remarks.world_size
        yield from timeouts.tell(
            self._watchdog, nranks, network=broken, memory=remarks.out_of_memory > 0
        )
        yield from self._ras.tell(hang=hang)
        yield from self._elastic.tell()
        yield from self._crashes.tell(self._versions.library)
        yield from self._unknown.tell()
        followed = any(t.order == ORDER["effect"] for t in messages)
        yield from self._callers.tell(explained=failed or followed or self._unknown.seen)
        yield from self._ranks.tell(skim, hang=hang, failed=failed)
        yield from self._versions.tell()
        settings = self._environment.tell(len(self._ranks.hosts))
        yield from map(harmless, settings) if nodes is False else settings
        socket = first_of(skim, "NET/Socket")
        between = self._network.tell(network, socket, nodes=nodes)
        yield from map(harmless, between) if remarks.no_rdma else between
        staged = first_of(skim, "NET/", without="GDRDMA")
        level = self._environment.value("NCCL_NET_GDR_LEVEL")
        yield from self._gdr.tell(rdma, staged, remarks, level)
        yield from self._fabric.tell(remarks)
        yield from self._paths.tell(skim, self._ranks, remarks, nodes=nodes)

    def _skim_seen(self) -> bool:
        return self._seen and bool(
            self._skim.transports or self._skim.collectives or self._skim.info_lines
        )

    def _info_only(self, told: list[Told]) -> bool:
        """Whether only INFO lines stand there, and none of them is told to hold no duration."""
        worse = self._warned or any(t.order < ORDER["setup"] for t in told)
        return self._skim.info_lines > 0 and not worse and not self._skim.collectives

    def _overflow(self) -> int:
        return (
            self._skim.overflow
            + self._messages.overflow
            + self._torch.overflow
            + self._completions.overflow
            + self._queue_pairs.overflow
            + self._watchdog.overflow
            + self._ras.overflow
            + self._unknown.overflow
        )
