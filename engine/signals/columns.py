"""From the series of many signals to the columns of a frame, in few passes over all samples.

numpy costs about as much for three samples as for three hundred, and a question brings some forty
signals of a few GPUs: scaling, testing and counting are done for all signals at once. The samples
of a whole fleet are taken in portions that stay in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

import numpy as np

from engine.catalogue.types import Signal
from engine.samples import Column, Floats, Frame, Ints
from engine.signals import clean
from engine.signals.pieces import Origins, Piece

_owner = attrgetter("tag.owner")
# So many samples are worked on together (0.5 MB a column): numpy's calls no longer matter, and what
# one pass wrote is in the cache for the next.
TOGETHER = 1 << 16


def fill(frame: Frame, signals: Mapping[str, Signal], pieces: Mapping[str, list[Piece]]) -> None:
    """Add the columns of some signals to a frame; record what was dropped and where it was found.

    Args:
        frame: gets columns, ``dropped`` and ``origins``.
        signals: all signals, by id.
        pieces: signal id to its series; the lists are put in the order of their owners.
    """
    for name in sorted(pieces):
        pieces[name].sort(key=_owner)
    frame.origins = Origins(frame.origins, pieces)
    sizes = {name: [piece.series.values.size for piece in pieces[name]] for name in sorted(pieces)}
    for names in _portions(sizes):
        lengths = [size for name in names for size in sizes[name]]
        _fill(frame, signals, {name: pieces[name] for name in names}, lengths)


def _portions(sizes: Mapping[str, Sequence[int]]) -> Iterator[list[str]]:
    """Yield the signals in order, as many together as have about `TOGETHER` samples."""
    names: list[str] = []
    samples = 0
    for name, lengths in sizes.items():
        names.append(name)
        samples += sum(lengths)
        if samples >= TOGETHER:
            yield names
            names, samples = [], 0
    if samples:
        yield names


def _fill(
    frame: Frame,
    signals: Mapping[str, Signal],
    pieces: Mapping[str, list[Piece]],
    lengths: Sequence[int],
) -> None:
    """Add the columns of a few signals, their series in the order of their owners.

    ``lengths`` says how many samples each series has.
    """
    names = list(pieces)
    listed = [piece for name in names for piece in pieces[name]]
    n = len(frame)
    number = np.repeat(np.arange(len(names)), [len(pieces[name]) for name in names])
    owners = np.array([piece.tag.owner for piece in listed], dtype=np.int64)
    # A cell is one signal of one GPU: cells ascend through all that follows.
    cells = np.repeat(number * n + owners, lengths)
    raw = np.concatenate([piece.series.values for piece in listed])
    values = raw * np.repeat([piece.scale for piece in listed], lengths)
    per_signal = np.bincount(number, weights=lengths, minlength=len(names)).astype(np.int64)
    bad = no_reading([signals[name] for name in names], per_signal, raw, values)
    if frame.timed:
        times = np.concatenate(
            [
                piece.series.ts if piece.series.timed else np.full(piece.series.ts.size, frame.at)
                for piece in listed
            ]
        )
        inside = (times >= frame.at - frame.window_s) & (times <= frame.at)
    else:
        times = np.zeros(values.size)
        inside = np.ones(values.size, dtype=bool)
    lost = bad & inside
    if lost.any():
        _record(frame, names, cells[lost], raw[lost])
    _cut(frame, names, *_only(inside & ~bad, cells, times, values))


def no_reading(
    signals: Sequence[Signal], counts: Ints, values: Floats, scaled: Floats
) -> clean.Bools:
    """Return which samples are no readings, given how many samples each signal has.

    Args:
        signals: what the samples are of.
        counts: how many each signal has, in this order.
        values: all samples, as they were exported.
        scaled: the same in the signals' units.
    """
    low = np.array([-np.inf if s.low is None else s.low for s in signals])
    high = np.array([np.inf if s.high is None else s.high for s in signals])
    bad = scaled < np.repeat(low, counts)
    bad |= scaled > np.repeat(high, counts)
    if not (clean.below_markers(values) and clean.below_markers(scaled)):
        gauge = np.array([s.kind != "counter" for s in signals])
        bad |= clean.blank(values) | clean.blank(scaled)
        bad |= clean.blank32(values) & np.repeat(gauge, counts)
    code = np.array([s.kind == "code" for s in signals])
    if code.any():
        # A fraction is no code: what was averaged says nothing.
        bad |= (scaled != np.floor(scaled)) & np.repeat(code, counts)
    return bad


def _record(frame: Frame, names: Sequence[str], cells: Ints, values: Floats) -> None:
    """Record what was dropped; cells ascend."""
    found, starts = np.unique(cells, return_index=True)
    for cell, lost in zip(found.tolist(), np.split(values, starts[1:]), strict=True):
        signal, owner = divmod(cell, len(frame))
        frame.dropped[names[signal], owner] = clean.dropped(lost)


def _cut(frame: Frame, names: Sequence[str], cells: Ints, times: Floats, values: Floats) -> None:
    """Cut the samples of all signals, cells ascending, into one column a signal."""
    n = len(frame)
    if frame.timed:
        cells, times, values = _in_time(cells, times, values, len(names) * n)
    counts = np.bincount(cells, minlength=len(names) * n).reshape(len(names), n)
    offsets = np.zeros((len(names), n + 1), dtype=np.int64)
    np.cumsum(counts, axis=1, out=offsets[:, 1:])
    ends = np.cumsum(offsets[:, -1])
    for k, name in enumerate(names):
        part = slice(int(ends[k] - offsets[k, -1]), int(ends[k]))
        if part.stop > part.start:
            frame.columns[name] = Column(times[part], values[part], offsets[k])


def _in_time(cells: Ints, times: Floats, values: Floats, n: int) -> tuple[Ints, Floats, Floats]:
    """Order the samples of every cell by time; of several at one moment the largest stays.

    Nearly all cells have one series and are in order: only the others are touched.

    Args:
        cells: which cell each sample is of, ascending.
        times: Unix s; may be written to.
        values: may be written to.
        n: how many cells there are.
    """
    amiss = (cells[1:] == cells[:-1]) & (times[1:] <= times[:-1])
    if not amiss.any():
        return cells, times, values
    unordered = np.zeros(n, dtype=bool)
    unordered[cells[1:][amiss]] = True
    where = np.flatnonzero(unordered[cells])
    order = where[np.lexsort((values[where], times[where], cells[where]))]
    times[where], values[where] = times[order], values[order]
    last = np.ones(cells.size, dtype=bool)
    last[:-1] = (cells[1:] != cells[:-1]) | (times[1:] != times[:-1])
    return _only(last, cells, times, values)


def _only(
    keep: clean.Bools, cells: Ints, times: Floats, values: Floats
) -> tuple[Ints, Floats, Floats]:
    """Return some of the samples, nothing copied if they are all."""
    if keep.all():
        return cells, times, values
    return cells[keep], times[keep], values[keep]


def column(values: Floats, times: Floats, owners: Ints, n: int, *, merge: bool) -> Column:
    """Order samples by owner and time.

    Args:
        values: float64[m].
        times: Unix s, float64[m].
        owners: entity of each sample, int64[m].
        n: how many entities there are.
        merge: of several samples at one moment keep the largest; else keep all, in given order.
    """
    if merge:
        order = np.lexsort((values, times, owners))
        values, times, owners = values[order], times[order], owners[order]
        last = np.ones(owners.size, dtype=bool)
        last[:-1] = (np.diff(owners) != 0) | (np.diff(times) != 0)
        values, times, owners = values[last], times[last], owners[last]
    else:
        order = np.argsort(owners, kind="stable")
        values, times, owners = values[order], times[order], owners[order]
    offsets = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(owners, minlength=n), out=offsets[1:])
    return Column(times, values, offsets)
