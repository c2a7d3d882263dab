"""What was read as an answer: title, findings in the order of their causes, verdicts, notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from bot.answer import (
    Answer,
    Block,
    Bullet,
    Bullets,
    Heading,
    Level,
    Line,
    Note,
    NoteKind,
    Span,
    Text,
    Tone,
    bullets,
    code,
    line,
    muted,
    strong,
)
from bot.commands import parts, partsunseen
from bot.commands.decode import words
from bot.phrases import count, some
from engine.errors import GpuwhyError
from engine.model import Entity, Finding, Kind, Read, Severity, Unknown, to_json

_KNOWN = (
    "known are kernel logs, nvidia-smi, amd-smi and dcgmi, exporter metrics, NCCL logs and "
    "nccl-tests, traces (nsys, PyTorch, ncu, py-spy), storage and network tools"
)
_SEVERITIES = tuple(Severity)
# Id of the finding that a text ends in the middle (`engine.readers.tracefile`).
_TEXT_CUT = "text_cut"
# Sources of a finding that are shown.
_SOURCES = 2
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Part:
    """What one input shows; without a name, what several show together."""

    name: str | None
    read: Read


def answer(
    found: Sequence[Part],
    causes: Sequence[str],
    *,
    errors: Sequence[GpuwhyError] = (),
    everything: bool = False,
) -> Answer:
    """Return what was read as an answer.

    Args:
        found: one part an input, at least one.
        causes: those of all parts, best first.
        errors: what could not be read.
        everything: list all readings that were missing.
    """
    reads = [part.read for part in found]
    return Answer(
        title=_title(reads, causes),
        blocks=tuple(_blocks(found, causes, everything)),
        data=_data(found, causes),
        level=_level(reads),
        errors=tuple(errors),
    )


def _data(found: Sequence[Part], causes: Sequence[str]) -> dict[str, Any]:
    if len(found) == 1:
        return dict(to_json(found[0].read))
    reads = [part.read for part in found]
    merged = Read(
        kinds=_unique(k for r in reads for k in r.kinds),
        findings=(),
        causes=tuple(causes),
        unread_lines=sum(r.unread_lines for r in reads),
        errata=_unique(e for r in reads for e in r.errata),
        diagnoses=tuple(d for r in reads for d in r.diagnoses),
        notes=_unique(n for r in reads for n in r.notes),
        unknown=_unknown(reads),
    )
    data = dict(to_json(merged))
    data["findings"] = [
        {**to_json(finding), "file": part.name} for part in found for finding in part.read.findings
    ]
    return data


def _level(reads: Sequence[Read]) -> Level:
    severities = [f.severity for r in reads for f in r.findings]
    severities += [d.severity for r in reads for d in r.diagnoses]
    levels = [parts.severity_level(s) for s in severities]
    unread = any(not r.findings and not r.diagnoses and r.unread_lines for r in reads)
    unread = unread or not any(r.kinds for r in reads)
    return max([*levels, Level.UNKNOWN if unread else Level.CLEAR])


def _title(reads: Sequence[Read], causes: Sequence[str]) -> Line:
    kinds = _unique(kind for r in reads for kind in r.kinds)
    findings = sum(len(r.findings) + len(r.diagnoses) for r in reads)
    unread = sum(r.unread_lines for r in reads)
    if not kinds:
        lines = ": nothing to read"
        if unread:
            lines = f": {count(unread, 'line')} of no known kind; {_KNOWN}"
        return line(strong("Nothing recognised", Tone.WARNING), lines)
    found = strong(count(findings, "finding") if findings else "No finding")
    spans: list[Span | str] = [found, f" ({some(kinds)})"]
    places = _places(reads)
    if places:
        spans.append(f" on {some(places, 3)}")
    if any(f.id == _TEXT_CUT for r in reads for f in r.findings):
        spans.append("; it ends in the middle")
    if causes:
        spans += ["; cause: ", code(causes[0])]
        if causes[1:]:
            spans.append(f", then {some(causes[1:], 4)}")
    return line(*spans)


def _places(reads: Sequence[Read]) -> tuple[str, ...]:
    """Return the names of what is told of: of what is wrong, if anything is."""
    told = [(f.severity, f.entity) for r in reads for f in r.findings if f.entity]
    told += [(d.severity, d.entity) for r in reads for d in r.diagnoses]
    told.sort(key=lambda one: _SEVERITIES.index(one[0]))
    wrong = [entity for severity, entity in told if severity is not Severity.INFO]
    named = [entity for entity in wrong or [e for _, e in told] if entity and _named(entity)]
    return _unique(entity.name for entity in named)


def _blocks(found: Sequence[Part], causes: Sequence[str], everything: bool) -> Iterator[Block]:
    for part in sorted(found, key=lambda part: (part.name is not None, _worst(part.read))):
        if len(found) > 1 and not _silent(part.read):
            yield Heading(line(part.name or "All together"))
        if part.read.findings:
            yield Heading(line("Findings"), 2)
            yield Bullets(tuple(_finding(f) for f in _in_order(part.read.findings, causes)))
        for diagnosis in part.read.diagnoses:
            yield Heading(line(*parts.cause_line(diagnosis, None)))
            yield from parts.diagnosis_blocks(diagnosis, diagnosis.entity, None)
        for note in part.read.notes:
            yield Note(NoteKind.INFO, line(note))
        if part.read.unread_lines:
            said = f"{count(part.read.unread_lines, 'line')} not recognised"
            yield Note(NoteKind.INFO, line(said))
    errata = _unique(e for part in found for e in part.read.errata)
    if errata:
        yield Heading(line("Often told otherwise"), 2)
        yield bullets(line(erratum) for erratum in errata)
    yield from partsunseen.unseen_blocks(
        _unknown([part.read for part in found]), everything=everything
    )
    if len(causes) > 1:
        yield Text(line("Causes, best first: ", ", ".join(causes)))


def _in_order(findings: Sequence[Finding], causes: Sequence[str]) -> list[Finding]:
    """Return findings in the order of their causes; the rest keep their places after those.

    That the text itself is cut comes before all.
    """

    def place(finding: Finding) -> int:
        if finding.id == _TEXT_CUT:
            return -1
        known = finding.cause in causes
        return causes.index(str(finding.cause)) if known else len(causes)

    return sorted(findings, key=place)


def _worst(read: Read) -> int:
    """Return the place of the worst severity of a part."""
    found = [f.severity for f in read.findings] + [d.severity for d in read.diagnoses]
    return min(map(_SEVERITIES.index, found), default=len(_SEVERITIES))


def _silent(read: Read) -> bool:
    """Whether there is nothing to say about an input by itself."""
    return not (read.findings or read.diagnoses or read.notes or read.unread_lines)


def _finding(finding: Finding) -> Bullet:
    entity = finding.entity
    told = entity is None or not _named(entity) or entity.name in finding.says
    where = [] if entity is None or told else [entity.name]
    if finding.line is not None:
        where.insert(0, f"line {finding.line}")
    cause: list[Span | str] = [", ", code(finding.cause)] if finding.cause else []
    head = line(
        f"{', '.join(where)}: " if where else "",
        finding.says,
        " (",
        parts.severity(finding.severity),
        *cause,
        ")",
    )
    under = []
    if finding.action:
        under.append(Bullet(line("do: ", finding.action)))
    known = {k: v for k, v in finding.data.items() if v is not None and v not in ("", [], {})}
    if known:
        under.append(Bullet(line(muted(words(known)))))
    if finding.sources:
        listed = list(finding.sources[:_SOURCES])
        if len(finding.sources) > _SOURCES:
            listed.append(f"{len(finding.sources) - _SOURCES} more in --json")
        under.append(Bullet(line(muted("sources: " + "; ".join(listed)))))
    return Bullet(head, tuple(under))


def _named(entity: Entity) -> bool:
    return entity.kind is not Kind.FLEET


def _unknown(reads: Sequence[Read]) -> tuple[Unknown, ...]:
    return _unique(gap for r in reads for gap in r.unknown)


def _unique(items: Iterable[_T]) -> tuple[_T, ...]:
    return tuple(dict.fromkeys(items))
