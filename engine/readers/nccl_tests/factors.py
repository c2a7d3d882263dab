"""Bus bandwidth factors: check busbw against algbw, and tell ranks and collective from the two.

busbw = algbw x factor, a constant of the collective and the number of ranks:
``knowledge/nccl/busbw_factors.yaml``, from NVIDIA/nccl-tests doc/PERFORMANCE.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.readers.nccl_tests.rows import Placement, Row

# Factor of n ranks: whole + share / n.
_FACTORS = {
    "all_reduce": (2, -2),
    "all_gather": (1, -1),
    "reduce_scatter": (1, -1),
    "alltoall": (1, -1),
    "alltoallv": (1, -1),
    "gather": (1, -1),
    "scatter": (1, -1),
    "broadcast": (1, 0),
    "reduce": (1, 0),
    "sendrecv": (1, 0),
    "hypercube": (1, 0),
}
# Half of the last printed digit.
_HALF_CENT = 0.005
# Below this algbw (GB/s) two printed decimals say too little about a ratio.
_TELLING_GBS = 1.0
_MOST_RANKS = 65_536


@dataclass(frozen=True, slots=True)
class Ratio:
    """busbw / algbw of a table with what rounding leaves open."""

    low: float
    high: float

    def holds(self, factor: float) -> bool:
        """Whether a factor fits the printed figures."""
        return self.low <= factor <= self.high

    @property
    def middle(self) -> float:
        """The ratio itself."""
        return (self.low + self.high) / 2


def factor(collective: str, ranks: int) -> float:
    """Return busbw / algbw of a collective over ``ranks`` ranks."""
    whole, share = _FACTORS[collective]
    return whole + share / max(1, ranks)


def ratio_of(rows: Sequence[Row]) -> Ratio | None:
    """Return the ratio of the row with the highest algbw; None if all are too small to tell."""
    best: Placement | None = None
    for row in rows:
        for one in row.placements:
            if one.algbw >= _TELLING_GBS and (best is None or one.algbw > best.algbw):
                best = one
    if best is None:
        return None
    # Figures from 1000 on are printed with fewer decimals.
    error = _HALF_CENT if best.algbw < 1000 else 0.5
    low = (best.busbw - error) / (best.algbw + error)
    return Ratio(max(0.0, low) - 1e-9, (best.busbw + error) / (best.algbw - error) + 1e-9)


def ranks_from(ratio: Ratio, collective: str) -> int | None:
    """Return the only number of ranks that fits; None if there is none, or more than one."""
    fits = [n for n in range(1, 257) if ratio.holds(factor(collective, n))]
    return fits[0] if len(fits) == 1 else None


def fits(ratio: Ratio, collective: str, ranks: int) -> bool:
    """Whether busbw and algbw belong to that many ranks."""
    return ratio.holds(factor(collective, min(ranks, _MOST_RANKS)))


def collective_from(row: Row, ratio: Ratio | None) -> str | None:
    """Return the collective that a row without a name can only be.

    Only AllReduce has a factor over 1. Reduction and root tell others apart; what they leave open
    (AllGather or AlltoAll, two ranks of AllReduce or SendRecv) is not guessed.
    """
    rooted = row.root is not None and row.root >= 0
    reduces = row.redop not in {"", "none"}
    if rooted and reduces:
        return "reduce"
    if ratio is None:
        return None
    if ratio.low > 1.0 and reduces:
        return "all_reduce"
    if ratio.high < 1.0 and reduces:
        return "reduce_scatter" if ratio.low > 0.01 else None
    if rooted and ratio.holds(1.0):
        return "broadcast"
    return None
