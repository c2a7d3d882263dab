"""Window functions over a whole column at once: thousands of entities in a few numpy calls.

Each function takes the `Segments` of a window (no row is empty) and returns one number a row.
They give what `engine.condition.series` gives for one entity.
"""

from __future__ import annotations

import numpy as np

from engine.condition.memo import Flags, Groups, Segments
from engine.condition.series import MASK_LIMIT
from engine.samples import Floats, Ints


def reduce_rows(ufunc: np.ufunc, values: Floats, lo: Ints, hi: Ints) -> Floats:
    """Reduce ``values[lo[k]:hi[k]]`` for every k; the ranges ascend and none is empty.

    ``reduceat`` takes pairs of bounds and also reduces what lies between two ranges (dropped by
    the stride); it cannot take an end that equals the length, hence the padding.
    """
    bounds = np.empty(2 * len(lo), dtype=np.int64)
    bounds[::2] = lo
    bounds[1::2] = hi
    reduced: Floats = ufunc.reduceat(np.append(values, 0.0), bounds)[::2]
    return reduced


def last(rows: Segments) -> Floats:
    """Return the newest sample."""
    return rows.column.values[rows.hi - 1]


def average(rows: Segments) -> Floats:
    """Return the mean; that of equal values is exactly their value."""
    first = rows.column.values[rows.lo]
    values, lo, hi = gather(rows)
    away = values - np.repeat(first, rows.sizes)
    return first + reduce_rows(np.add, away, lo, hi) / rows.sizes


def smallest(rows: Segments) -> Floats:
    """Return the least sample."""
    return reduce_rows(np.minimum, rows.column.values, rows.lo, rows.hi)


def largest(rows: Segments) -> Floats:
    """Return the greatest sample."""
    return reduce_rows(np.maximum, rows.column.values, rows.lo, rows.hi)


def quantile(rows: Segments, q: float) -> Floats:
    """Return the q-quantile with linear interpolation, as ``quantile_over_time`` does."""
    values, _, _ = gather(rows)
    sizes = rows.sizes
    # Each row is filled up with what sorts behind its samples.
    ranked = np.full((len(sizes), sizes.max()), np.inf)
    ranked[np.arange(sizes.max()) < sizes[:, np.newaxis]] = values
    ranked.sort(axis=1)
    row = np.arange(len(sizes))
    rank = q * (sizes - 1)
    below = np.floor(rank).astype(np.int64)
    low = ranked[row, below]
    high = ranked[row, np.minimum(below + 1, sizes - 1)]
    found: Floats = low + (high - low) * (rank - below)
    return found


def increase(rows: Segments) -> Floats:
    """Return last minus first, plus what was lost at each counter reset; needs two samples."""
    values = rows.column.values
    lost = np.zeros(len(values))
    np.copyto(lost[1:], values[:-1], where=values[1:] < values[:-1])
    grown = values[rows.hi - 1] - values[rows.lo]
    return grown + reduce_rows(np.add, lost, rows.lo + 1, rows.hi)


def rate(rows: Segments) -> Floats:
    """Return the increase per second between the first and the last sample; needs two."""
    ts = rows.column.ts
    span = ts[rows.hi - 1] - ts[rows.lo]
    return increase(rows) / np.where(span > 0, span, np.nan)


def changes(rows: Segments) -> Floats:
    """Return how often a sample differs from the one before it; needs two samples."""
    values = rows.column.values
    differs = np.zeros(len(values))
    differs[1:] = values[1:] != values[:-1]
    return reduce_rows(np.add, differs, rows.lo + 1, rows.hi)


def any_of(rows: Segments, codes: frozenset[int]) -> Flags:
    """Return whether any sample is one of the codes."""
    return reduce_rows(np.add, _is_code(rows, codes), rows.lo, rows.hi) > 0


def changed_to(rows: Segments, codes: frozenset[int]) -> Flags:
    """Return whether any sample is one of the codes and differs from the one before it."""
    values = rows.column.values
    came = _is_code(rows, codes)
    came[1:] *= values[1:] != values[:-1]
    return reduce_rows(np.add, came, rows.lo + 1, rows.hi) > 0


def _is_code(rows: Segments, codes: frozenset[int]) -> Floats:
    values, wanted = rows.column.values, np.array(sorted(codes), dtype=np.float64)
    where = np.minimum(np.searchsorted(wanted, values), wanted.size - 1)
    found: Floats = (wanted[where] == values).astype(np.float64)
    return found


def stddev(rows: Segments) -> Floats:
    """Return the population standard deviation, as ``stddev_over_time`` does."""
    values, lo, hi = gather(rows)
    away = values - np.repeat(average(rows), rows.sizes)
    return np.sqrt(reduce_rows(np.add, away * away, lo, hi) / rows.sizes)


def has_bits(values: Floats, mask: int) -> Floats:
    """Return 1.0 where a mask has any of the bits set, else 0.0; nonsense has none."""
    sane = np.where((values >= 0) & (values < MASK_LIMIT), values, 0.0)
    found: Floats = ((sane.astype(np.int64) & mask) != 0).astype(np.float64)
    return found


def share(rows: Segments, mask: int) -> Floats:
    """Return the fraction of samples with any of the bits set."""
    flags = has_bits(rows.column.values, mask)
    return reduce_rows(np.add, flags, rows.lo, rows.hi) / rows.sizes


def gather(rows: Segments) -> tuple[Floats, Ints, Ints]:
    """Return the values of all rows end to end, and the new bounds of each row."""
    sizes = rows.sizes
    hi = np.cumsum(sizes)
    lo = hi - sizes
    if (rows.lo[1:] == rows.hi[:-1]).all():  # they are end to end already
        return rows.column.values[rows.lo[0] : rows.hi[-1]], lo, hi
    where = np.arange(hi[-1]) + np.repeat(rows.lo - lo, sizes)
    return rows.column.values[where], lo, hi


def peers(function: str, values: Floats, groups: Groups, least: int) -> Floats:
    """Return median, mad, min or max of the known values of each group.

    Groups with fewer than ``least`` known values get NaN. ``mad`` is the median distance from
    the median, not scaled.
    """
    own = values[groups.order]
    known = np.add.reduceat(~np.isnan(own), groups.starts, dtype=np.int64)
    result = _ranked(function, own, groups, known)
    if function == "mad":
        centre = np.repeat(result, groups.sizes)
        result = _ranked("median", np.abs(own - centre), groups, known)
    return np.where(known >= least, result, np.nan)


def _ranked(function: str, own: Floats, groups: Groups, known: Ints) -> Floats:
    """Pick from each group's sorted values; NaN sorts last, behind the ``known`` ones."""
    group = np.repeat(np.arange(len(groups.starts)), groups.sizes)
    ranked = own[np.lexsort((own, group))]
    top = groups.starts + np.maximum(known - 1, 0)
    if function == "min":
        return ranked[groups.starts]
    if function == "max":
        return ranked[top]
    low = groups.starts + np.maximum(known - 1, 0) // 2
    high = np.minimum(groups.starts + known // 2, top)
    middle: Floats = (ranked[low] + ranked[high]) / 2
    return middle


WINDOWS = {
    "last": last,
    "avg": average,
    "min": smallest,
    "max": largest,
    "rate": rate,
    "increase": increase,
    "changes": changes,
    "stddev": stddev,
}
NEEDS_TWO = frozenset({"rate", "increase", "changes", "stddev"})
NEEDS_TIMES = frozenset({"rate", "increase", "changes"})
