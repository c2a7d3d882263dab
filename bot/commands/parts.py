"""Parts of an answer that several commands share: a diagnosis, what was not seen, the engine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from textwrap import shorten

from bot.answer import (
    Block,
    Bullet,
    Bullets,
    Fields,
    Heading,
    Level,
    Line,
    Note,
    NoteKind,
    Span,
    Steps,
    Text,
    Tone,
    bullets,
    code,
    line,
    muted,
    plain,
    strong,
)
from bot.phrases import count
from bot.times import utc
from engine.model import (
    Alternative,
    Diagnosis,
    Effect,
    EngineInfo,
    Entity,
    Evidence,
    Severity,
    Verdict,
)
from engine.units import duration

# Letters of a threshold's origin that fit beside a reading.
_BRIEF = 70
_SEVERITY_TONE = {
    Severity.CRITICAL: Tone.BAD,
    Severity.HIGH: Tone.BAD,
    Severity.MEDIUM: Tone.WARNING,
    Severity.LOW: Tone.WARNING,
    Severity.INFO: Tone.INFO,
}
_SEVERITY_LEVEL = {
    Severity.CRITICAL: Level.CRITICAL,
    Severity.HIGH: Level.HIGH,
    Severity.MEDIUM: Level.MEDIUM,
    Severity.LOW: Level.LOW,
    Severity.INFO: Level.DEGRADED,
}
VERDICT_TONE = {
    Verdict.DEGRADED: Tone.BAD,
    Verdict.HEALTHY: Tone.GOOD,
    Verdict.IDLE: Tone.GOOD,
    Verdict.UNKNOWN: Tone.WARNING,
}


def severity(word: Severity | str) -> Span:
    """Return a severity in its tone; a word that is no severity stays neutral."""
    tones = {str(key): tone for key, tone in _SEVERITY_TONE.items()}
    return strong(str(word), tones.get(str(word), Tone.NEUTRAL))


def worst(diagnoses: Iterable[Diagnosis], verdict: Verdict, *, notes: bool) -> Level:
    """Return the level of an answer with these diagnoses and this verdict."""
    levels = [_SEVERITY_LEVEL[d.severity] for d in diagnoses]
    if verdict is Verdict.UNKNOWN:
        levels.append(Level.UNKNOWN)
    elif notes:
        levels.append(Level.INFO)
    return max(levels, default=Level.CLEAR)


def severity_level(word: Severity) -> Level:
    """Return the level of a finding of that severity."""
    return _SEVERITY_LEVEL[word]


def cause_line(diagnosis: Diagnosis, target: Entity | None) -> Line:
    """Return "title (id, severity, confidence)", with the entity where it is not the target."""
    own = target is not None and diagnosis.entity.key == target.key
    return cause_at(diagnosis, "" if own else f" on {diagnosis.entity.shown}")


def cause_at(diagnosis: Diagnosis, where: str) -> Line:
    """Return the same, with other words for where it is."""
    return line(
        strong(diagnosis.title),
        where,
        " (",
        code(diagnosis.cause),
        ", ",
        severity(diagnosis.severity),
        f", {diagnosis.confidence})",
    )


def diagnosis_blocks(diagnosis: Diagnosis, target: Entity, at: float | None) -> Iterator[Block]:
    """Yield what is said about a cause, its proof, its consequences and what to do."""
    yield Text(line(diagnosis.says))
    if diagnosis.since is not None:
        yield Text(since_line(diagnosis.since, at))
    if diagnosis.evidence:
        yield Heading(line("Evidence"), 2)
        yield bullets(evidence(e, target) for e in diagnosis.evidence)
    if diagnosis.against:
        yield Heading(line("Speaks against it"), 2)
        yield bullets(evidence(e, target) for e in diagnosis.against)
    if diagnosis.effects:
        yield Heading(line("Follows from it"), 2)
        yield Bullets(tuple(_effect(e) for e in diagnosis.effects))
    if diagnosis.next:
        yield Heading(line("Next"), 2)
        yield Steps(diagnosis.next)
    if diagnosis.alternatives:
        yield Heading(line("Could also be"), 2)
        yield Bullets(tuple(_alternative(a) for a in diagnosis.alternatives))
    yield Text(line(muted("Rule "), muted(diagnosis.rule), *_references(diagnosis.references)))


def evidence(found: Evidence, target: Entity, *, query: bool = True) -> Bullet:
    """Return a reading as a point: what it says, with all numbers, and where the threshold is from.

    The query that shows the reading stands under it.
    """
    where = "" if found.entity.key == target.key else f"{found.entity.shown}: "
    source = f"; threshold: {_brief(found.source)}" if found.source else ""
    under = (Bullet(line(code(found.query))),) if query and found.query else ()
    return Bullet(line(where, found.says, muted(f" [{found.signal}{source}]")), under)


def since_line(since: float, at: float | None) -> Line:
    """Return when it began, absolute and relative to the moment judged."""
    if at is None or at < since:
        return line(f"Since {utc(since)}.")
    return line(f"Since {utc(since)}, {duration(at - since)} before {utc(at)}.")


def period(at: float | None, window_s: float) -> str:
    """Return what was looked at: "from … to …", or that the samples have no times."""
    if at is None:
        return "in the samples given, which have no times"
    return f"from {utc(at - window_s)} to {utc(at)}"


def warning_blocks(warnings: Iterable[str]) -> Iterator[Block]:
    """Yield what the source or the reader complained about."""
    for text in dict.fromkeys(warnings):
        yield Note(NoteKind.WARNING, line(text))


def engine_pairs(engine: EngineInfo, queries: int, waves: int) -> tuple[tuple[str, Line], ...]:
    """Return how the answer was made."""
    asked = f"{count(queries, 'query', 'queries')} in {count(waves, 'wave')}"
    return (
        ("read", line(muted(asked if queries else "without a request"))),
        ("engine", line(muted(f"{engine.version}, rules {engine.rules}, {engine.inference}"))),
    )


def _brief(source: str) -> str:
    """Return the first clause of where a threshold comes from; JSON has all of it."""
    return shorten(re.split(r"[;,]", source, maxsplit=1)[0], _BRIEF, placeholder=" …")


def about(pairs: Iterable[tuple[str, Line]]) -> Fields:
    """Return the facts at the end of an answer."""
    return Fields(tuple(pairs))


def _effect(effect: Effect) -> Bullet:
    head = line(code(effect.cause), f" on {effect.entity.shown}")
    return Bullet(head, tuple(_effect(e) for e in effect.effects))


def _alternative(other: Alternative) -> Bullet:
    under = (Bullet(line(code(other.command))),) if other.command else ()
    return Bullet(line(code(other.cause), f": {other.told_apart_by}"), under)


def _references(references: Sequence[str]) -> Iterator[Span]:
    if references:
        yield plain("; ")
        yield muted("sources: " + "; ".join(references))
