"""One GPU that several exporters tell of: which of them counts, signal by signal.

Samples of two exporters are never mixed in one signal: between 0 and 5 of one error counter every
scrape would be a rise. The fresher exporter counts; of two as fresh the worse reading does, so that
the other cannot hide a fault. A mask takes every bad reason that either shows. What differs by more
than sampling explains is told (`engine.signals.sourced` says what that is).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from engine.catalogue.types import Signal
from engine.samples import Floats, Matcher, RawSeries
from engine.signals.labels import Place
from engine.signals.pieces import Piece
from engine.signals.sourced import Sourced, differ, measured, rank, shown

# Two that were scraped within this are as fresh as each other: a usual scrape of a minute and some.
_AS_FRESH_S = 75.0
# Masks of two exporters are held together over as long: what one saw counts until its next sample.
_CARRY_S = _AS_FRESH_S
# Of these signals less is worse.
_LESS_IS_WORSE = frozenset({"pcie_link_gen", "pcie_link_width", "amd_health"})
# The bit of a mask that says that nothing is wrong: it counts where every exporter shows it.
_IDLE = "gpu_idle"
_USED = {
    "fresher": "the fresher one is used",
    "newer": "both are as fresh: the newer is used, and proves not that all is well",
    "first": "both are as fresh: the first is used, and proves not that all is well",
    "worse": "both are as fresh: the worse is used",
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
            sources = Sourced.of(own, at)
            if len(sources) < 2:
                continue
            signal = signals[name]
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
    if signal.kind == "mask" and (told or _bits_differ(fresh)):
        return [_masks(sources, bits)], "mask" if told else ""
    if signal.kind == "code" and (told or _bits_differ(sources)):
        return [_codes(sources)], "code" if told else ""
    exact = measured(signal)
    if exact and not told:  # they say the same: the one with most samples, the freshest
        sources.sort(key=lambda s: (s not in fresh, -s.ts.size, s.key))
    elif not exact:
        sign = 1.0 if signal.id in _LESS_IS_WORSE else -1.0
        sources.sort(key=lambda s: (s not in fresh, sign * rank(s, signal), s.key))
    first, second = sources[:2]
    how = "fresher"
    if second in fresh:
        how = "worse" if not exact else "newer"
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


def _bits_differ(sources: Sequence[Sourced]) -> bool:
    """Return whether one source has values that another never had."""
    return len({frozenset(s.values.tolist()) for s in sources}) > 1


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


def _codes(sources: Sequence[Sourced]) -> Piece:
    """Return one sticky code of several: the last that came new to any of them.

    A source that begins does not tell when its code came, and one that returns to 0 was started
    again: neither is an event.
    """
    samples = sorted(
        (ts, value, k)
        for k, source in enumerate(sources)
        for ts, value in zip(source.ts.tolist(), source.values.tolist(), strict=True)
    )
    now = [float(source.values[0]) for source in sources]
    code = max(now)
    times, codes = [], []
    for ts, value, k in samples:
        if value != now[k]:
            now[k] = value
            code = value or (code if any(now) else 0.0)
        times.append(ts)
        codes.append(code)
    shows = next((s for s in sources if code in s.values), sources[0])
    return _made(shows.pieces[0], np.array(times), np.array(codes))


def _made(piece: Piece, times: Floats, values: Floats) -> Piece:
    """Return a series that stands for those of several exporters."""
    old = piece.series
    made = RawSeries(old.name, old.labels, times, values / piece.scale, timed=old.timed)
    return replace(piece, series=made)
