"""``sweep``: find every sick entity, worst first, by root cause."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bot.answer import (
    Align,
    Answer,
    Block,
    Bullet,
    Bullets,
    Heading,
    Line,
    Steps,
    Table,
    Text,
    Tone,
    code,
    line,
    strong,
)
from bot.commands import parts, partsunseen
from bot.phrases import count, entities
from bot.times import utc
from engine.errors import UsageError
from engine.model import Entity, Incident, Step, Sweep, Verdict, to_json
from engine.topology import parse_target
from engine.units import duration

if TYPE_CHECKING:
    from engine.diagnosis import Engine
    from engine.samples import Matcher
    from engine.sources.logs.port import LogSource
    from engine.sources.port import Source

# Shown per incident, and with everything; the rest is a `why` away.
_EVIDENCE = (2, 3)
_STEPS = (1, 2)
_NOUNS = {"gpu": "GPU", "fabric": "fabric", "filesystem": "file system"}


async def run(
    *,
    engine: Engine,
    source: Source,
    at: float | None,
    window_s: float,
    where: Sequence[Matcher] = (),
    source_option: str = "",
    logs: LogSource | None = None,
    everything: bool = False,
) -> Answer:
    """Look at everything that a source knows, or at what ``where`` selects.

    Args:
        engine: the rules to judge by.
        source: where the readings come from.
        at: the moment to judge (Unix seconds); None for the source's newest.
        window_s: how far back to look (s).
        where: label matchers that every series must fit.
        source_option: what names this source on a command line, for the commands offered.
        logs: where Xids of kernel logs come from, if anything is configured.
        everything: list all readings that were missing, and more of each incident.

    Raises:
        SourceError: the source does not answer.
    """
    found = await engine.sweep(source, at=at, window_s=window_s, where=tuple(where), logs=logs)
    return answer(found, source_option, everything=everything)


def answer(sweep: Sweep, source_option: str = "", *, everything: bool = False) -> Answer:
    """Return the incidents of a sweep as an answer; ``source_option`` goes into its commands."""
    unjudged = bool(sweep.unseen) or not any(sweep.checked.values())
    verdict = Verdict.UNKNOWN if unjudged else Verdict.HEALTHY
    return Answer(
        title=_title(sweep),
        blocks=tuple(_blocks(sweep, source_option, everything)),
        data=to_json(sweep),
        level=parts.worst((i.diagnosis for i in sweep.incidents), verdict, notes=False),
    )


def _title(sweep: Sweep) -> Line:
    when = "" if sweep.at is None else f" at {utc(sweep.at)}"
    looked = _looked_at(sweep.checked)
    if not looked:
        head = strong("Nothing could be checked", Tone.WARNING)
        return line(head, f"{when}: no readings found{_without_verdict(sweep)}")
    if not sweep.incidents:
        head = strong("No incident", Tone.WARNING if sweep.unseen else Tone.GOOD)
        return line(head, f" among {looked}{when}", _without_verdict(sweep))
    worst = max(sweep.incidents, key=lambda i: parts.severity_level(i.diagnosis.severity))
    head = strong(count(len(sweep.incidents), "incident"), Tone.BAD)
    said = line(head, f" among {looked}{when}", _without_verdict(sweep), "; worst: ")
    return (*said, *parts.cause_line(worst.diagnosis, None))


def _looked_at(checked: dict[str, int]) -> str:
    return ", ".join(
        count(amount, _NOUNS.get(kind, kind)) for kind, amount in checked.items() if amount
    )


def _without_verdict(sweep: Sweep) -> str:
    return f", {len(sweep.unseen)} without a verdict" if sweep.unseen else ""


def _blocks(sweep: Sweep, source_option: str, everything: bool) -> Iterator[Block]:
    if not any(sweep.checked.values()):
        yield Text(line("Older readings are judged with ", code("--at"), " and the time of them."))
    if sweep.incidents:
        yield Text(line("Incidents, worst first"))
        yield _table(sweep.incidents)
    for number, incident in enumerate(sweep.incidents, 1):
        head = parts.cause_line(incident.diagnosis, None)
        yield Heading((*line(f"{number}. "), *head))
        yield from _incident(incident, sweep.at, source_option, everything)
    yield from parts.warning_blocks(sweep.warnings)
    if sweep.unseen:
        yield Heading(line("No verdict for"), 2)
        yield Bullets((Bullet(line(entities(sweep.unseen, 32))),))
    yield from partsunseen.unseen_blocks(sweep.unknown, everything=everything)
    yield parts.about(_about(sweep))


def _table(incidents: Sequence[Incident]) -> Table:
    return Table(
        columns=("#", "severity", "cause", "on", "members", "confidence"),
        rows=tuple(
            (
                line(str(number)),
                line(parts.severity(incident.diagnosis.severity)),
                line(code(incident.diagnosis.cause)),
                line(incident.diagnosis.entity.shown),
                line(str(len(incident.members))),
                line(str(incident.diagnosis.confidence)),
            )
            for number, incident in enumerate(incidents, 1)
        ),
        align=(Align.RIGHT, Align.LEFT, Align.LEFT, Align.LEFT, Align.RIGHT, Align.LEFT),
    )


def _incident(
    incident: Incident, at: float | None, source_option: str, everything: bool
) -> Iterator[Block]:
    found = incident.diagnosis
    yield Text(line(found.says))
    if found.since is not None:
        yield Text(parts.since_line(found.since, at))
    if len(incident.members) > 1:
        yield Text(line(f"Members ({len(incident.members)}): {entities(incident.members, 16)}"))
    shown = found.evidence[: _EVIDENCE[everything]]
    yield Bullets(tuple(parts.evidence(e, found.entity, query=False) for e in shown))
    yield Steps((*found.next[: _STEPS[everything]], *_question(found.entity, source_option)))


def _question(entity: Entity, source_option: str) -> Iterator[Step]:
    """Yield the command that shows all evidence, unless no target says what the entity is.

    Names come from labels: one that `parse_target` takes is no option, and is quoted for the shell.
    """
    name = f"{entity.cluster}::{entity.name}" if entity.cluster else entity.name
    try:
        parse_target(name)
    except UsageError:
        return
    command = f"gpuwhy why {shlex.quote(name)} {source_option}".rstrip()
    yield Step(f"see all evidence for {entity.name}", command)


def _window(sweep: Sweep) -> str:
    """Return what was looked at; where nothing was found, nothing tells the moment."""
    if sweep.at is None and not any(sweep.checked.values()):
        return duration(sweep.window_s)
    return parts.period(sweep.at, sweep.window_s)


def _about(sweep: Sweep) -> Iterator[tuple[str, Line]]:
    verdicts = ", ".join(f"{n} {verdict}" for verdict, n in sweep.verdicts.items() if n)
    if verdicts:
        yield "GPUs", line(verdicts)
    yield "window", line(_window(sweep))
    yield from parts.engine_pairs(sweep.engine, sweep.queries, sweep.waves)
