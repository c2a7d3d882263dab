"""``why``: diagnose one target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from bot.answer import (
    Answer,
    Block,
    Bullet,
    Heading,
    Line,
    Text,
    bullets,
    code,
    line,
    muted,
    strong,
)
from bot.commands import parts, partsunseen
from bot.phrases import count, entities, some
from bot.times import utc
from engine.model import Change, Diagnosis, Entity, Kind, Verdict, Why, to_json
from engine.units import duration

if TYPE_CHECKING:
    from engine.diagnosis import Engine
    from engine.sources.logs.port import LogSource
    from engine.sources.port import Source

# Names of those that a note is about.
_NAMED = 2


async def run(
    target: str,
    *,
    engine: Engine,
    source: Source,
    at: float | None,
    window_s: float,
    logs: LogSource | None = None,
    everything: bool = False,
) -> Answer:
    """Diagnose a target.

    Args:
        target: a target as the user wrote it (see `engine.topology`).
        engine: the rules to judge by.
        source: where the readings come from.
        at: the moment to judge (Unix seconds); None for the source's newest.
        window_s: how far back to look (s).
        logs: where Xids of kernel logs come from, if anything is configured.
        everything: list all readings that were missing, not only the first few.

    Raises:
        UsageError: the target is not understood or does not exist.
        SourceError: the source does not answer.
    """
    found = await engine.why(target, source, at=at, window_s=window_s, logs=logs)
    core = frozenset(s.id for s in engine.catalogue.signals.values() if s.core)
    return answer(found, core, everything=everything)


def answer(why: Why, core: frozenset[str] = frozenset(), *, everything: bool = False) -> Answer:
    """Return a diagnosis as an answer; ``core`` are the signals that a verdict needs."""
    return Answer(
        title=_title(why, core),
        blocks=tuple(_blocks(why, everything)),
        data=to_json(why),
        level=parts.worst(why.diagnoses, why.verdict, notes=bool(why.notes)),
    )


def _title(why: Why, core: frozenset[str]) -> Line:
    name = why.target.name
    tone = parts.VERDICT_TONE[why.verdict]
    when = parts.period(why.at, why.window_s)
    match why.verdict:
        case Verdict.DEGRADED:
            first, *others = why.diagnoses
            more = f"; {count(len(others), 'more cause')} below" if others else ""
            head = line(strong(name), " is ", strong("degraded", tone), ": ")
            return (*head, *parts.cause_line(first, why.target), *line(more))
        case Verdict.HEALTHY:
            return line(strong(name), " is ", strong("healthy", tone), f" {when}: {_checked(why)}")
        case Verdict.IDLE:
            return line(
                strong(name), " is ", strong("idle", tone), f" {when}: no work, {_checked(why)}"
            )
        case _:
            reason = _no_verdict(why, core)
            return line(
                strong(name), " has no verdict", strong(" (unknown)", tone), f" {when}: {reason}"
            )


def _checked(why: Why) -> str:
    said = f"none of the {why.coverage.checked} causes that could be checked holds"
    missing = partsunseen.needs(why.unknown)
    if not why.coverage.unseen and not missing:
        return f"{said}, and none is left out"
    left = f"; {why.coverage.unseen} could not be checked"
    return said + left + (f" (not seen: {some(missing)})" if missing else "")


def _no_verdict(why: Why, core: frozenset[str]) -> str:
    told = [gap.why for gap in why.unknown if " " in gap.needs or gap.why.endswith(".")]
    if told:
        return told[0]  # what a rule says of it, in a sentence
    gaps = [gap for gap in why.unknown if gap.needs in core] or list(why.unknown)
    reasons: dict[str, list[str]] = {}
    for gap in gaps:
        names = reasons.setdefault(gap.why, [])
        if gap.needs and gap.needs not in names:
            names.append(gap.needs)
    if not reasons:
        return "nothing was found that tells how it is"
    return "; ".join(f"{some(names, 4)}: {why}" if names else why for why, names in reasons.items())


def _blocks(why: Why, everything: bool) -> Iterator[Block]:
    for number, diagnosis in enumerate(why.diagnoses):
        if number:
            yield Heading(line("Also: ", *parts.cause_line(diagnosis, why.target)))
        yield from parts.diagnosis_blocks(diagnosis, why.target, why.at)
    for alike in _alike(why.notes, everything):
        yield from _notes(alike, why)
    if why.verdict is Verdict.DEGRADED and not why.unknown:
        yield Text(line("Every reading that the rules ask for was there."))
    if why.changes:
        yield Heading(line("Changed in the last day"), 2)
        yield bullets(_change(change, why.at) for change in why.changes)
    yield from parts.warning_blocks(why.warnings)
    yield from partsunseen.unseen_blocks(why.unknown, everything=everything)
    yield parts.about(_about(why))


def _alike(notes: Iterable[Diagnosis], everything: bool) -> list[list[Diagnosis]]:
    """Return notes by cause, in order: what all GPUs of a job show is said once."""
    found: dict[tuple[object, ...], list[Diagnosis]] = {}
    for number, note in enumerate(notes):
        key = (note.cause, note.severity, note.confidence, number if everything else 0)
        found.setdefault(key, []).append(note)
    return list(found.values())


def _notes(alike: Sequence[Diagnosis], why: Why) -> Iterator[Block]:
    """Yield what is said of notes of one cause: which they are, and the first with its proof."""
    first = alike[0]
    if len(alike) == 1:
        yield Heading(line("Worth knowing: ", *parts.cause_line(first, why.target)))
    else:
        where = f" on {entities((note.entity for note in alike), _NAMED)}"
        yield Heading(line(f"Worth knowing, {len(alike)} times: ", *parts.cause_at(first, where)))
        said = f"Shown for {first.entity.shown}; on the command line --all shows each."
        yield Text(line(muted(said)))
    yield from parts.diagnosis_blocks(first, why.target, why.at)


def _change(change: Change, at: float | None) -> Bullet:
    before = "" if at is None else f", {duration(max(at - change.at, 0.0))} before"
    return Bullet(line(change.says, muted(f" at {utc(change.at)}{before}")))


def _about(why: Why) -> Iterator[tuple[str, Line]]:
    yield "target", _described(why.target)
    if why.members:
        yield "looked at", line(f"{len(why.members)}: {entities(why.members)}")
    yield "window", line(parts.period(why.at, why.window_s))
    seen = why.coverage
    said = f"{seen.checked} of {count(seen.rules, 'cause')} checked, {_found(why)}"
    yield "coverage", line(f"{said}, {seen.unseen} could not be seen")
    yield from parts.engine_pairs(why.engine, why.queries, why.waves)


def _found(why: Why) -> str:
    """Return how many causes hold; what is only worth knowing is no fault that was found."""
    held = why.causes
    notes = {note.cause for note in why.notes} - held
    # An old Xid is a note of a cause that does not hold now: it is not among those that fired.
    found = max(why.coverage.fired - len(notes), len(held))
    return f"{found} found" + (f", {count(len(notes), 'note')}" if notes else "")


def _described(target: Entity) -> Line:
    facts = [target.model, target.uuid, target.pci, target.mig]
    if target.kind is not Kind.JOB and target.job:
        facts.append(f"job {target.job}")
    if target.kind is not Kind.POD and target.pod:
        facts.append(f"pod {target.namespace or ''}/{target.pod}")
    if target.cluster:
        facts.append(f"cluster {target.cluster}")
    known = [fact for fact in facts if fact]
    return line(code(target.name), muted("".join(f", {fact}" for fact in known)))
