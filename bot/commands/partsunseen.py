"""The part of an answer that says what could not be seen, and how to see it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from bot.answer import Block, Bullet, Bullets, Code, Heading, Span, Text, code, line, muted
from bot.phrases import count, some
from engine.model import Unknown

# Points of what was not seen, unless all of it is wanted.
_UNSEEN = 5
# A line of dcgm-exporter's counters file: field, Prometheus type, help text.
_COUNTERS_LINE = re.compile(r"[A-Z][A-Z0-9_]+,\s*(?:gauge|counter|label|histogram)\s*,.*")


def unseen_blocks(unknown: Sequence[Unknown], *, everything: bool = False) -> Iterator[Block]:
    """Yield what could not be seen, and the exact lines that would show it.

    The most telling comes first; unless ``everything`` is wanted, only that, and how many readings
    more are missing.

    Signals that are missing for the same reason and block the same causes share a point; if it is
    not the export that is missing, everything that is missing for one reason does.
    """
    if not unknown:
        return
    blocked: dict[tuple[str, str, str, str], dict[str, None]] = {}
    for gap in unknown:
        fix = "" if _COUNTERS_LINE.fullmatch(gap.fix) else gap.fix
        key = (gap.needs, gap.cause, gap.why, fix)
        blocked.setdefault(key, {}).update(dict.fromkeys(gap.blocks))
    points: dict[tuple[str, ...], tuple[list[str], dict[str, None]]] = {}
    for (signal, cause, why, fix), causes in blocked.items():
        apart = tuple(causes) if cause == "metrics_missing" else ()
        signals, all_causes = points.setdefault((cause, why, fix, *apart), ([], {}))
        signals.append(signal or cause)
        all_causes.update(causes)
    found = sorted(points.items(), key=_telling)
    shown = found if everything or len(found) <= _UNSEEN + 1 else found[:_UNSEEN]
    yield Heading(line("Not seen"), 2)
    yield Bullets(
        tuple(
            _unseen(signals, cause, why, fix, tuple(causes))
            for (cause, why, fix, *_), (signals, causes) in shown
        )
    )
    told = {(signal, cause, why) for (cause, why, *_), (signals, _) in shown for signal in signals}
    lines = dict.fromkeys(
        gap.fix
        for gap in unknown
        if (gap.needs or gap.cause, gap.cause, gap.why) in told
        and _COUNTERS_LINE.fullmatch(gap.fix)
    )
    if lines:
        yield Text(line("Add to the counters file of dcgm-exporter to see it:"))
        yield Code("\n".join(lines), "csv")
    left = sum(len(signals) for _, (signals, _) in found[len(shown) :])
    if left:
        more = count(left, "more reading is", "more readings are")
        yield Text(line(f"{more} missing; on the command line ", code("--all"), " lists them."))


def needs(unknown: Iterable[Unknown]) -> list[str]:
    """Return the signals that were missing, each once, in order."""
    return list(dict.fromkeys(gap.needs for gap in unknown if gap.needs))


def _telling(point: tuple[tuple[str, ...], tuple[list[str], dict[str, None]]]) -> tuple[bool, int]:
    """Sort what no verdict can do without (it blocks no cause by name) first, then by causes."""
    causes = point[1][1]
    return bool(causes), -len(causes)


def _unseen(
    signals: Sequence[str], cause: str, why: str, fix: str, causes: Sequence[str]
) -> Bullet:
    head: list[Span | str] = [code(some(signals)), f": {why}", muted(f" ({cause})")]
    if causes:
        head.append(f"; cannot tell: {some(causes)}")
    under = (Bullet(line("fix: ", fix)),) if fix else ()
    return Bullet(line(*head), under)
