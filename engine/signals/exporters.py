"""One GPU that several exporters tell of: which of them counts, signal by signal.

Samples of two exporters are never mixed in one signal: between 0 and 5 of one error counter every
scrape would be a rise. Of quantities that are measured the fresher exporter counts. Of counts,
flags and states the worse of all that were read in the last five minutes does, so that none hides a
fault. A mask takes every bad reason that any shows, a code every change. What differs by more than
sampling explains is told (`engine.signals.sourced` says what that is).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

import numpy as np

from engine.catalogue.types import Signal
from engine.samples import Floats, Matcher, RawSeries
from engine.signals.labels import Place
from engine.signals.pieces import Piece
from engine.signals.sourced import Sourced, counted, differ, measured, rank, shown, steps

# Two that were scraped within this are as fresh as each other: a usual scrape of a minute and some.
_AS_FRESH_S = 75.0
# Masks of two exporters are held together over as long: what one saw counts until its next sample.
_CARRY_S = _AS_FRESH_S
# What two exporters show of one event they show no further apart than this.
_EVENT_S = _AS_FRESH_S
# Events of one moment are put so far apart, so that each is a sample.
_APART_S = 0.001
# The bit of a mask that says that nothing is wrong: it counts where every exporter shows it.
_IDLE = "gpu_idle"
_USED = {
    "fresher": "the fresher one is used",
    "newer": "both are as fresh: the newer is used, and proves not that all is well",
    "first": "both are as fresh: the first is used, and proves not that all is well",
    "worse": "the worse is used",
    "mask": "what either shows counts",
    "code": "the latest change in either counts",
}


# Chosen so, a measured reading is no more likely to be right than the other one.
_TORN = frozenset({"newer", "first"})


def settle(
    pieces: Mapping[str, list[Piece]],
    groups: Sequence[Sequence[Place]],
    signals: Mapping[str, Signal],
    bits: Mapping[str, Mapping[str, int]],
    at: float,
) -> tuple[dict[str, list[Piece]], list[str], dict[int, dict[str, str]]]:
    """Return the pieces with those of one exporter for each signal and GPU, and what to say.

    The third are measured readings of which nobody can tell which is right, as both are as fresh:
    owner to signal to what the exporters say.

    Args:
        pieces: series by signal; ``owner`` is an index into ``groups``.
        groups: what the labels of each GPU's series said.
        signals: all signals, by id.
        bits: mask table to bit name to bit value.
        at: the moment judged (Unix s); 0 if samples have no times.
    """
    several = {i for i, group in enumerate(groups) if len(group) > 1}
    scraped = {i for i in several if len({(p.instance, p.scraper) for p in groups[i]}) > 1}
    kept: dict[str, list[Piece]] = {}
    said: dict[tuple[str, ...], list[str]] = {}
    open_: dict[int, dict[str, str]] = {}
    for name, some in pieces.items():
        # Text of two exporters may say of neither where it is from: their names tell them apart.
        doubled = several if len({p.spelling.exporter for p in some}) > 1 else scraped
        mine: dict[int, list[Piece]] = {}
        for piece in some if doubled else ():
            if piece.tag.owner in doubled:
                mine.setdefault(piece.tag.owner, []).append(piece)
        changed: dict[int, list[Piece]] = {}
        for owner, own in sorted(mine.items()):
            signal = signals[name]
            sources = Sourced.of(own, signal, at)
            if len(sources) < 2:
                if sources:
                    changed[owner] = sources[0].pieces
                continue
            table = bits.get(signal.bits or "", {})
            changed[owner], how = _one(sources, signal, table)
            if how:
                board = next((p.uuid for p in groups[owner] if p.uuid), f"GPU {owner}")
                values = ", ".join(shown(sources, signal, table))
                told = f"two exporters disagree on {signal.title} of {board}: {values}"
                if how in _TORN:
                    open_.setdefault(owner, {})[name] = values
                key = (name, how, *(s.exporter for s in sources))
                said.setdefault(key, []).append(f"{told}; {_USED[how]}")
        kept[name] = some
        if changed:
            kept[name] = [piece for piece in some if piece.tag.owner not in changed]
            kept[name] += [piece for own in changed.values() for piece in own]
    return kept, [_with_more(texts) for texts in said.values()], open_


def _with_more(texts: Sequence[str]) -> str:
    """Return the first of many alike, and how many more there are."""
    more = len(texts) - 1
    return texts[0] + (f" (so for {more} more GPU{'s' if more > 1 else ''})" if more else "")


def _one(
    sources: list[Sourced], signal: Signal, bits: Mapping[str, int]
) -> tuple[list[Piece], str]:
    """Return the series of a signal that count, and how they were chosen if sources disagree.

    The sources are put in order, the one that counts first.
    """
    told = differ(sources, signal)
    newest = max(s.newest for s in sources)
    fresh = [s for s in sources if newest - s.newest <= _AS_FRESH_S]
    sources.sort(key=lambda s: (s not in fresh, -s.newest, s.key))
    if signal.kind == "mask" and (told or _changes(sources)):
        return [_masks(sources, bits)], "mask" if told else ""
    if signal.kind == "code" and (told or _changes(sources)):
        return [_codes(sources)], "code" if told else ""
    if signal.id == "xid_count":  # each series counts its own code
        return [piece for s in sources for piece in s.pieces], "mask" if told else ""
    if counted(signal) and any(_changes([s]) for s in sources):
        return [_counts(sources)], "worse" if told else ""
    exact = measured(signal)
    bad = not exact and (counted(signal) or signal.kind != "counter")
    if bad:
        late = any(s.recent.size for s in sources)
        sources.sort(key=lambda s: (late and not s.recent.size, *_worst_first(s, signal)))
    elif not exact:
        sources.sort(key=lambda s: (s not in fresh, *_worst_first(s, signal)))
    elif not told:  # they say the same: the one with most samples, the freshest
        sources.sort(key=lambda s: (s not in fresh, -s.ts.size, s.key))
    first, second = sources[:2]
    how = "fresher"
    if bad or second in fresh:
        how = "newer" if exact else "worse"
    if exact and first.newest == second.newest:
        how = "first"
    return _spliced(sources, level=not told), how if told else ""


def _spliced(sources: Sequence[Sourced], *, level: bool) -> list[Piece]:
    """Return the series of the first source; before it began, of those that say the same."""
    first = sources[0]
    out = [_named(piece, sources) for piece in first.pieces]
    for source in sources[1:] if level else ():
        for piece in source.pieces:
            before = piece.series.ts < first.oldest
            if piece.series.timed and before.any():
                old = piece.series
                cut = RawSeries(old.name, old.labels, old.ts[before], old.values[before])
                out.append(replace(piece, series=cut))
    return out


def _named(piece: Piece, sources: Sequence[Sourced]) -> Piece:
    """Return a piece whose query shows its exporter alone."""
    found = piece.tag.identity(piece.series.labels)
    for label in ("instance", "job"):
        own = piece.series.labels.get(label)
        others = {p.series.labels.get(label) for s in sources for p in s.pieces}
        if own and len(others) > 1 and all(m.label != label for m in found):
            found = (*found, Matcher(label, "=", own))
    return replace(piece, tag=replace(piece.tag, identity=lambda _: found))


def _worst_first(source: Sourced, signal: Signal) -> tuple[float, ...]:
    """Return what puts the worse of two sources first, of two as bad the one seen last."""
    return (*(-bad for bad in rank(source, signal)), -source.newest)


def _changes(sources: Sequence[Sourced]) -> bool:
    """Return whether the sources have more than one value."""
    first = sources[0].values[0]
    return any(bool((s.values != first).any()) for s in sources)


def _masks(sources: Sequence[Sourced], bits: Mapping[str, int]) -> Piece:
    """Return one mask of several: each reason that a source shows, idle if all show it."""
    idle = bits.get(_IDLE, 0)
    times = np.unique(np.concatenate([s.ts for s in sources]))
    reasons = np.zeros(times.size, dtype=np.int64)
    at_rest = np.full(times.size, idle, dtype=np.int64)
    for source in sources:
        newest = np.searchsorted(source.ts, times, side="right") - 1
        known = (newest >= 0) & (times - source.ts[newest] <= _CARRY_S)
        mask = np.where(known, source.values[newest], 0).astype(np.int64)
        reasons |= mask & ~idle
        at_rest &= np.where(known, mask, idle)
    worst = max(sources, key=lambda s: int(s.values[-1]) & ~idle)
    return _made(worst.pieces[0], times, (reasons | at_rest).astype(np.float64))


def _counts(sources: Sequence[Sourced]) -> Piece:
    """Return one counter of several: from any moment on it rises by as much as the worst of them.

    Each is looked at from its end: what it still rises by after a moment.
    """
    times = np.unique(np.concatenate([s.ts for s in sources]))
    left = np.zeros(times.size)
    for source in sources:
        ahead = np.append(np.cumsum(steps(source.values)[::-1])[::-1], 0.0)
        seen = np.searchsorted(source.ts, times, side="right") - 1
        # Of several samples of one moment the last counts; before the first, all is still to come.
        left = np.maximum(left, ahead[np.maximum(seen, 0)])
    top = max(float(s.values[-1]) for s in sources)
    worst = max(sources, key=lambda s: (float(s.values[-1]), s.newest))
    return _made(worst.pieces[0], times, max(top, left.item(0)) - left)


def _codes(sources: Sequence[Sourced]) -> Piece:
    """Return one sticky code of several: the last that came new to any of them.

    A source that begins does not tell when its code came, and one that returns to 0 was started
    again: neither is an event. What comes new while the code is there already is an event unless
    the other showed it shortly before: a 0 stands between.
    """
    samples = sorted(
        (ts, value, k)
        for k, source in enumerate(sources)
        for ts, value in zip(source.ts.tolist(), source.values.tolist(), strict=True)
    )
    now = [float(source.values[0]) for source in sources]
    code = max(now)
    came: dict[float, float] = {}
    times, codes = [], []
    for ts, together in groupby(samples, key=itemgetter(0)):
        new = set()
        for _, value, k in together:
            if value != now[k]:
                now[k] = value
                new.add(value)
        shown = []
        for value in sorted(new - {0.0}):
            if value != code or ts - came.get(value, -np.inf) > _EVENT_S:
                shown += [0.0, value] if value == code else [value]
                came[value] = ts
                code = value
        if not any(now):
            code = 0.0
        if not shown or shown[-1] != code:
            shown.append(code)
        times += [ts - _APART_S * k for k in reversed(range(len(shown)))]
        codes += shown
    shows = next((s for s in sources if code in s.values), sources[0])
    return _made(shows.pieces[0], np.array(times), np.array(codes))


def _made(piece: Piece, times: Floats, values: Floats) -> Piece:
    """Return a series that stands for those of several exporters."""
    old = piece.series
    made = RawSeries(old.name, old.labels, times, values / piece.scale, timed=old.timed)
    return replace(piece, series=made)
