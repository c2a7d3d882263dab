"""``rules why-not``: why a rule did not fire for a target, part by part, with the numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bot.answer import (
    Answer,
    Block,
    Bullet,
    Bullets,
    Code,
    Heading,
    Level,
    Line,
    Text,
    Tone,
    code,
    line,
    muted,
    plain,
    strong,
)
from bot.commands import parts
from bot.phrases import count
from engine.diagnosis.whynotmodel import Outcome, Part, PatternCheck, RuleCheck, WhyNot
from engine.model import Truth, to_json

if TYPE_CHECKING:
    from engine.diagnosis import Engine
    from engine.sources.port import Source

# A node has eight GPUs; of a larger target the first are shown in full, all are in the document.
_SHOWN = 8
_STATE_TONE = {"met": Tone.GOOD, "blocks": Tone.BAD, "open": Tone.WARNING}
_OUTCOME_TONE = {
    Outcome.FIRED: Tone.BAD,
    Outcome.FOLLOWS: Tone.BAD,
    Outcome.HELD_BACK: Tone.WARNING,
    Outcome.UNKNOWN: Tone.WARNING,
    Outcome.DISABLED: Tone.WARNING,
}
_ROLES = {
    "all": "needed",
    "any": "one of these",
    "none": "must be false",
    "unless": "must not be true",
    "itself": "condition",
}


async def run(
    rule: str,
    target: str,
    *,
    engine: Engine,
    source: Source,
    at: float | None,
    window_s: float,
) -> Answer:
    """Say why a rule did not fire.

    Args:
        rule: id of a cause or a symptom.
        target: as the user wrote it (see `engine.topology`).
        engine: the rules.
        source: where the readings come from.
        at: the moment judged (Unix seconds); None for the source's newest.
        window_s: how far back to look (s).

    Raises:
        UsageError: there is no such rule or target.
        SourceError: the source does not answer.
    """
    from engine.diagnosis.whynot import why_not  # noqa: PLC0415 - so that --help starts fast

    return answer(await why_not(engine, rule, target, source, at=at, window_s=window_s))


def answer(found: WhyNot) -> Answer:
    """Return what was found as an answer."""
    name = f" for {found.target.name}" if found.target else ""
    outcome = found.outcome.value.replace("_", " ")
    title = line(
        strong(found.title),
        " (",
        code(found.rule),
        ")",
        name,
        ": ",
        strong(outcome, _OUTCOME_TONE.get(found.outcome, Tone.NEUTRAL)),
    )
    unknown = found.outcome is Outcome.UNKNOWN
    return Answer(
        title=title,
        blocks=tuple(_blocks(found)),
        data=to_json(found),
        level=Level.UNKNOWN if unknown else Level.CLEAR,
    )


def _blocks(found: WhyNot) -> Iterator[Block]:
    yield Text(line(found.says))
    for gone in found.goes_without:
        yield Text(line(f"It goes without {gone}."))
    for check in found.checks[:_SHOWN]:
        if len(found.checks) > 1:
            yield Heading(line(strong(check.entity.name), f": {check.says}"))
        for pattern in check.patterns:
            if pattern.confidence is not None:
                yield Heading(_pattern(pattern), 2)
            yield Bullets(tuple(_part(part) for part in pattern.parts))
        yield from _fixes(check)
    if (more := len(found.checks) - _SHOWN) > 0:
        yield Text(line(f"{count(more, 'more entity', 'more entities')}: see --json."))
    if found.target is not None:
        yield Text(line(muted(f"Looked at {parts.period(found.at, found.window_s)}.")))
    yield from parts.warning_blocks(found.warnings)


def _pattern(pattern: PatternCheck) -> Line:
    tone = {"holds": Tone.BAD, "open": Tone.WARNING}.get(pattern.state, Tone.NEUTRAL)
    return line(f"Pattern {pattern.number} ({pattern.confidence}): ", plain(pattern.state, tone))


def _part(part: Part) -> Bullet:
    note = f" ({part.note})" if part.note else ""
    head = line(
        plain(part.state, _STATE_TONE[part.state]),
        ": ",
        code(part.ref),
        f" is {part.truth}, {_ROLES[part.role]}{note}",
    )
    # What is unknown is told by what is missing; the comparison only says so again.
    known = [d for d in part.decided if d.truth is not Truth.UNKNOWN]
    open_ = part.state != "met"
    readings = [
        Bullet(
            line(
                d.says, muted(f" [{d.signal}; threshold: {d.source}]" if d.source and open_ else "")
            ),
            (Bullet(line(code(d.query))),) if d.query and open_ else (),
        )
        for d in known
    ]
    missing = [Bullet(line(code(lack.signal), f": {lack.why}")) for lack in part.lacks]
    return Bullet(head, (*readings, *missing))


def _fixes(check: RuleCheck) -> Iterator[Block]:
    """Yield the lines that would bring what is missing where it matters, each once."""
    lines = dict.fromkeys(
        lack.fix
        for pattern in check.patterns
        for part in pattern.parts
        if part.state == "open"
        for lack in part.lacks
        if lack.fix
    )
    if lines:
        yield Text(line("This would bring what is missing:"))
        yield Code("\n".join(lines), "csv")
