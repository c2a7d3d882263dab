"""One run of a test: its rows and footer, what is known of it, and what follows from both."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from statistics import median

from engine.readers.nccl_tests import factors
from engine.readers.nccl_tests.prose import Figures
from engine.readers.nccl_tests.rows import Layout, Placement, Row
from engine.readers.nccl_tests.setup import NAMES, Setup

MAX_ROWS = 4_096
# Rows of a table whose busbw differ by less than this belong to its plateau.
_FLAT = 0.05
# The time of a row up to this times that of the smallest is latency, not transfer.
_LATENCY = 2.0
_ONE_NODE = 8
# A peak this many times the figures of large messages is a collapse.
COLLAPSE = 1.5
_COLLAPSED_ROWS, _LARGE = 3, 64 << 20
# Largest deviation that old releases accept, by type, times ranks - 1 (v2.0.0 src/common.cu).
_ACCEPTED = {"half": 1e-2, "bfloat16": 1e-2, "float": 1e-5, "double": 1e-12}


@dataclass
class Run:
    """What was read of one run.

    Attributes:
        line: where it starts, from 1.
        out_of_bounds: failed checks in the footer; None if there is no footer.
        average: "Avg bus bandwidth" (GB/s); ``failed`` if the test itself calls it too low.
        dropped: rows beyond `MAX_ROWS`.
    """

    setup: Setup
    line: int
    layout: Layout | None = None
    rows: list[Row] = field(default_factory=list)
    figures: Figures = field(default_factory=Figures)
    out_of_bounds: int | None = None
    average: float | None = None
    average_line: int | None = None
    failed: bool = False
    dropped: int = 0

    @property
    def started(self) -> bool:
        """Whether figures of this run were seen, so that a new announcement is a new run."""
        said = self.figures.any or self.figures.average is not None
        return bool(self.rows) or self.average is not None or said

    @property
    def footed(self) -> bool:
        """Whether its footer was seen."""
        return self.average is not None or self.out_of_bounds is not None

    @property
    def judged(self) -> bool:
        """Whether there is anything to say about it."""
        return self.started or self.out_of_bounds is not None

    def add(self, row: Row) -> None:
        """Keep a row."""
        if len(self.rows) < MAX_ROWS:
            self.rows.append(row)
        else:
            self.dropped += 1

    @cached_property
    def ratio(self) -> factors.Ratio | None:
        """Ratio of busbw to algbw in the table."""
        return factors.ratio_of(self.rows)

    @cached_property
    def largest(self) -> Row | None:
        """The row of the largest message, the first of several."""
        moved = [r for r in self.rows if r.best.time_us > 0]
        return max(moved, key=lambda r: r.size, default=None)

    @cached_property
    def collective(self) -> str | None:
        """Id of the collective: named, or the only one that the figures allow."""
        if self.setup.collective or self.largest is None:
            return self.setup.collective
        return factors.collective_from(self.largest, self.ratio)

    @property
    def collective_named(self) -> bool:
        """Whether the text itself names the collective."""
        return self.setup.collective is not None

    @property
    def name(self) -> str:
        """The collective for people."""
        return NAMES.get(self.collective or "", "collective not named")

    @cached_property
    def zero(self) -> bool:
        """Whether bus bandwidth is 0 by arithmetic: data moved, and every busbw is 0."""
        moved = [p for r in self.rows for p in r.placements if p.algbw >= 0.05]
        whole = factors.factor(self.collective, 1) if self.collective else 0.0
        return bool(moved) and whole == 0.0 and all(p.busbw == 0 for p in moved)

    @cached_property
    def ranks(self) -> int | None:
        """Number of ranks: as told, else the only one that the ratio allows."""
        if self.zero or self.setup.separate:
            return 1
        told = self.setup.ranks
        if told is None or (told == 1 and self.ratio is not None and self.ratio.low > 0):
            return self.inferred_ranks or told
        # A bandwidth above 0 is not of one rank: "1 GPU" was that of each node.
        if told == 1 and not self.rows and (self.figures.busbw or self.figures.peak):
            return self.setup.nodes if (self.setup.nodes or 1) > 1 else None
        return told

    @cached_property
    def inferred_ranks(self) -> int | None:
        """The only number of ranks that fits busbw / algbw."""
        if self.ratio is None or self.collective is None:
            return None
        return factors.ranks_from(self.ratio, self.collective)

    @property
    def ranks_told(self) -> bool:
        """Whether the number of ranks stands in the text."""
        return self.ranks is not None and self.ranks == self.setup.ranks

    @property
    def nodes(self) -> int | None:
        """Number of nodes; one is also meant where a text names so many GPUs and no more."""
        told = self.setup.nodes
        if told == 1 and (self.ranks or 0) > _ONE_NODE and not self.setup.listed:
            # "On one node we get 478" is a comparison.
            told = self.setup.most_nodes or None
        if told is None and self.ranks is not None and self.ranks == self.setup.said_per_node:
            return 1
        return told

    @property
    def per_node(self) -> int | None:
        """GPUs of a node that take part."""
        ranks, nodes = self.ranks, self.nodes
        if ranks and nodes and ranks % nodes == 0:
            return ranks // nodes
        return self.setup.said_per_node

    @cached_property
    def mismatch(self) -> bool:
        """Whether busbw does not belong to algbw for the ranks and collective that are told."""
        if self.ratio is None or self.collective is None or not self.collective_named:
            return False
        if self.setup.ranks is None or self.setup.separate or self.ranks == 1:
            return False
        return not factors.fits(self.ratio, self.collective, self.setup.ranks)

    @cached_property
    def placement(self) -> Placement | None:
        """The figures that the verdict is on: those of the largest message."""
        return self.largest.best if self.largest else None

    @cached_property
    def busbw(self) -> float | None:
        """Bus bandwidth to judge, GB/s; recomputed where the printed one cannot be right."""
        if self.placement is not None:
            if self.mismatch and self.collective and self.setup.ranks:
                return self.placement.algbw * factors.factor(self.collective, self.setup.ranks)
            return self.placement.busbw
        figures = self.figures
        if figures.peak is not None or figures.busbw is not None:
            return max(v for v in (figures.peak, figures.busbw) if v is not None)
        return self.converted

    @property
    def converted(self) -> float | None:
        """The busbw of an algbw that was told alone, GB/s; None if ranks are not told."""
        algbw, ranks = self.figures.algbw, self.ranks
        if algbw is None or not ranks or self.collective is None or self.rows:
            return None
        if self.figures.peak is not None or self.figures.busbw is not None:
            return None
        return algbw * factors.factor(self.collective, ranks)

    @cached_property
    def peak(self) -> float | None:
        """Highest bus bandwidth of any row, or told as such, GB/s."""
        found = [p.busbw for r in self.rows for p in r.placements]
        found += [v for v in (self.figures.peak,) if v is not None]
        return max(found, default=None)

    @cached_property
    def size(self) -> int | None:
        """Bytes of the message that is judged; None if nothing tells them."""
        if self.largest is not None:
            return self.largest.size
        return self.figures.size or self.setup.max_bytes

    @cached_property
    def plateau(self) -> float | None:
        """Median busbw of the large rows that differ little, GB/s; None if it still rises."""
        rows = sorted((r for r in self.rows if r.best.busbw > 0), key=lambda r: r.size)
        flat = [rows[-1].best.busbw] if rows else []
        for row in reversed(rows[:-1]):
            if abs(row.best.busbw - flat[0]) > _FLAT * flat[0]:
                break
            flat.append(row.best.busbw)
        return median(flat) if len(flat) > 1 else None

    @cached_property
    def collapsed(self) -> bool:
        """Whether large messages are far slower than smaller ones, in two rows at least."""
        rows = sorted((r for r in self.rows if r.best.busbw > 0), key=lambda r: r.size)
        if len(rows) < _COLLAPSED_ROWS or rows[-1].size < _LARGE or self.mismatch:
            return False
        peak = max(r.best.busbw for r in rows)
        return all(peak >= COLLAPSE * r.best.busbw for r in rows[-2:])

    @cached_property
    def latency_us(self) -> float | None:
        """Time of small messages (up to 64 KiB), microseconds."""
        small = [r.best.time_us for r in self.rows if 0 < r.size <= 65_536 and r.best.time_us > 0]
        return median(small) if small else None

    @property
    def latency_bound(self) -> bool:
        """Whether even the largest message takes hardly longer than the smallest."""
        if self.largest is None or self.largest.size > 16 << 20:
            return False
        if self.largest.size <= 1 << 20:
            return True
        return (
            self.latency_us is not None and self.largest.best.time_us < _LATENCY * self.latency_us
        )

    @cached_property
    def wrong(self) -> list[tuple[Row, Placement]]:
        """Rows and placements with wrong results."""
        return [(r, p) for r in self.rows for p in r.placements if self._wrong(r, p)]

    def _wrong(self, row: Row, one: Placement) -> bool:
        if one.wrong:
            # In-place AlltoAll is not supported, and was checked all the same by old releases.
            return not (self.collective == "alltoall" and one is not row.placements[0])
        if one.delta is None or self.out_of_bounds == 0 or one is not row.placements[0]:
            return False
        accepted = _ACCEPTED.get(row.type, 0.0) * max(1, (self.ranks or 256) - 1)
        return one.flagged or one.delta > accepted
