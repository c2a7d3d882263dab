"""``rules``: list, show and lint the rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from bot.answer import (
    Align,
    Answer,
    Block,
    Bullet,
    Bullets,
    Code,
    Fields,
    Heading,
    Level,
    Steps,
    Table,
    Text,
    Tone,
    bullets,
    code,
    line,
    muted,
    plain,
    strong,
)
from bot.commands import parts, ruleoverlays
from bot.phrases import count
from engine.catalogue.nearest import did_you_mean
from engine.errors import GpuwhyError, UsageError
from engine.model import Step, to_json
from engine.units import duration

if TYPE_CHECKING:
    from pathlib import Path

    from engine.catalogue.lint_base import LintProblem
    from engine.catalogue.types import Catalogue, CauseRule, Limit, Pattern, SymptomRule


def list_rules(catalogue: Catalogue) -> Answer:
    """Return every rule, causes first, each sorted by id; then those that are switched off.

    What overlays change is listed below, with the file that won.
    """
    causes = sorted(catalogue.causes.values(), key=lambda rule: rule.id)
    symptoms = sorted(catalogue.symptoms.values(), key=lambda rule: rule.id)
    off = ruleoverlays.disabled_rows(catalogue)
    rows = [_cause_row(rule) for rule in causes] + [_symptom_row(rule) for rule in symptoms] + off
    columns = ("kind", "id", "version", "status", "class", "scope", "severity", "title")
    head = f"{count(len(causes), 'cause')} and {count(len(symptoms), 'symptom')}"
    head += f", {len(off)} switched off" if off else ""
    return Answer(
        title=line(strong(head), muted(f", rules {catalogue.hash}")),
        blocks=(
            Table(
                columns=columns,
                rows=tuple(tuple(line(cell) for cell in row) for row in rows),
                align=tuple(Align.RIGHT if c == "version" else Align.LEFT for c in columns),
            ),
            *ruleoverlays.changes(catalogue),
        ),
        data={
            "schema": "gpuwhy/rules-list/1",
            "hash": catalogue.hash,
            "rules": [
                {
                    **dict(zip(columns, row, strict=True)),
                    "version": int(row[2]) if row[2] else None,
                    "file": ruleoverlays.file_of(row[0], row[1], catalogue),
                }
                for row in rows
            ],
            "limits": ruleoverlays.limits_of_overlays(catalogue),
        },
    )


def show(name: str, catalogue: Catalogue) -> Answer:
    """Return one rule in full: what it asks for, where its numbers come from, what it leads to.

    Raises:
        UsageError: there is no such rule.
    """
    name = name.partition("@")[0].removeprefix("cause/")
    if name in catalogue.causes:
        cause = catalogue.causes[name]
        return Answer(
            title=line(strong(cause.title), " (", code(cause.name), ")"),
            blocks=tuple(_cause_blocks(cause, catalogue)),
            data={"schema": "gpuwhy/rules-show/1", "kind": "cause", **_jsonable(cause)},
        )
    if name in catalogue.symptoms:
        symptom = catalogue.symptoms[name]
        title = line(strong(symptom.title), " (", code(f"{symptom.id}@{symptom.version}"), ")")
        return Answer(
            title=title,
            blocks=tuple(_symptom_blocks(symptom, catalogue)),
            data={
                "schema": "gpuwhy/rules-show/1",
                "kind": "symptom",
                **_jsonable(symptom),
                "limits": [to_json(limit) for limit in _limits(symptom, catalogue)],
            },
        )
    if off := ruleoverlays.show_disabled(name, catalogue):
        return off
    known = (*catalogue.causes, *catalogue.symptoms)
    hint = did_you_mean(name, known, otherwise="gpuwhy rules list names them all")
    raise UsageError(f"no rule {name!r}", hint=hint, code="unknown_rule")


def lint(overlays: Sequence[Path]) -> Answer:
    """Check knowledge and rules, the site's overlays included; every problem is listed.

    Raises:
        UsageError: an overlay is no such folder.
    """
    from engine.catalogue.lint import lint as find_problems  # noqa: PLC0415 - yaml, pydantic

    return lint_answer(find_problems(overlays))


def lint_answer(
    problems: Sequence[LintProblem],
    *,
    what: str = "knowledge and rules",
    schema: str = "gpuwhy/rules-lint/1",
) -> Answer:
    """Return what the linter found as an answer; errors make it fail."""
    errors = [problem for problem in problems if problem.severity == "error"]
    warnings = len(problems) - len(errors)
    found = f"{count(len(errors), 'error')} and {count(warnings, 'warning')}"
    head = strong(found, Tone.BAD if errors else Tone.WARNING)
    if not problems:
        head = strong("No problems", Tone.GOOD)
    return Answer(
        title=line(head, f" in {what}"),
        blocks=(Bullets(tuple(_problem(p) for p in problems)),) if problems else (),
        data={"schema": schema, "problems": [to_json(p) for p in problems]},
        level=Level.CRITICAL if errors else Level.CLEAR,
        errors=(_failed(len(errors), what),) if errors else (),
    )


def _failed(errors: int, what: str) -> GpuwhyError:
    """Return what makes the check fail; the errors themselves are in the answer already."""
    return GpuwhyError(
        f"{count(errors, 'error')} in {what}", hint="mend what is listed above", code="catalogue"
    )


def _problem(problem: LintProblem) -> Bullet:
    where = code(f"{problem.file}:{problem.line}:{problem.column}")
    hint = f"; {problem.hint}" if problem.hint else ""
    tone = Tone.BAD if problem.severity == "error" else Tone.WARNING
    return Bullet(
        line(
            where,
            ": ",
            plain(problem.severity, tone),
            f": {problem.message}{hint}",
            muted(f" ({problem.check})"),
        )
    )


def _cause_row(rule: CauseRule) -> tuple[str, ...]:
    return (
        "cause",
        rule.id,
        str(rule.version),
        rule.status,
        str(rule.class_),
        rule.scope,
        str(rule.severity),
        rule.title,
    )


def _symptom_row(rule: SymptomRule) -> tuple[str, ...]:
    return ("symptom", rule.id, str(rule.version), rule.status, "", rule.scope, "", rule.title)


def _cause_blocks(rule: CauseRule, catalogue: Catalogue) -> Iterator[Block]:
    meaning = catalogue.taxonomy.get(rule.id)
    if meaning:
        yield Text(line(meaning.is_))
    yield Fields(
        (
            ("class", line(str(rule.class_))),
            ("scope", line(rule.scope)),
            ("severity", line(parts.severity(rule.severity))),
            ("status", line(rule.status)),
            ("says", line(rule.says)),
            ("file", line(str(rule.place or ""))),
        )
    )
    yield Heading(line("Holds if any of these patterns does"), 2)
    yield Bullets(tuple(_pattern(pattern) for pattern in rule.patterns))
    yield from ruleoverlays.thinned_block(rule, catalogue)
    for title, names in (
        ("Explains", rule.explains),
        ("Has these effects", rule.effects),
        ("Speaks against it", rule.against),
    ):
        if names:
            yield Heading(line(title), 2)
            yield bullets(line(code(name)) for name in names)
    if rule.next:
        yield Heading(line("Next"), 2)
        yield Steps(tuple(Step(s.do, s.command, risk=s.risk, capture=s.capture) for s in rule.next))
    if rule.alternatives:
        yield Heading(line("Could also be"), 2)
        yield bullets(line(code(a.cause), f": {a.told_apart_by}") for a in rule.alternatives)
    yield from _background(rule)


def _symptom_blocks(rule: SymptomRule, catalogue: Catalogue) -> Iterator[Block]:
    yield Code(rule.when, "python")
    hold = duration(rule.hold_s) if rule.hold_s else "not required"
    used = [c.id for c in catalogue.causes.values() if any(rule.id in p.refs for p in c.patterns)]
    yield Fields(
        (
            ("scope", line(rule.scope)),
            ("held for", line(hold)),
            ("threshold", line(rule.threshold)),
            *((f"limit.{limit.id}", line(_limit(limit))) for limit in _limits(rule, catalogue)),
            *((("basis", line(", ".join(rule.basis))),) if rule.basis else ()),
            ("status", line(rule.status)),
            ("used by", line(", ".join(sorted(used)) or "no cause")),
            ("file", line(str(rule.place or ""))),
        )
    )
    yield from _background(rule)


def _limits(rule: SymptomRule, catalogue: Catalogue) -> list[Limit]:
    """Return the thresholds that a symptom compares with, by id."""
    from engine.condition import compile_condition  # noqa: PLC0415 - numpy

    condition = compile_condition(rule.when, catalogue, rule.when_place)
    return [catalogue.limits[name] for name in sorted(condition.limits)]


def _limit(limit: Limit) -> str:
    from engine.condition.units import written  # noqa: PLC0415 - numpy

    return f"{written(limit.value, limit.unit)} ({limit.source[0]}; {limit.file})"


def _background(rule: CauseRule | SymptomRule) -> Iterator[Block]:
    for title, texts in (
        ("Known false positives", rule.false_positives),
        ("References", rule.references),
        ("Tests", tuple(f"{test.name}: {test.expect}" for test in rule.tests)),
    ):
        if texts:
            yield Heading(line(title), 2)
            yield bullets(line(text) for text in texts)


def _pattern(pattern: Pattern) -> Bullet:
    words = (
        ("all of", pattern.all),
        ("any of", pattern.any),
        ("known to be false", pattern.none),
        ("unless", pattern.unless),
    )
    said = "; ".join(f"{word} {', '.join(names)}" for word, names in words if names)
    return Bullet(line(f"{pattern.confidence}: {said}"))


def _jsonable(rule: CauseRule | SymptomRule) -> dict[str, Any]:
    return dict(to_json(rule))
