"""``rules test``: run the tests that sit in the rules, those of overlays included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bot.answer import (
    Answer,
    Block,
    Heading,
    Level,
    Line,
    Tone,
    bullets,
    code,
    line,
    strong,
)
from bot.commands.ruleoverlays import file_of
from bot.commands.rules import show
from bot.phrases import count
from engine.catalogue.types import is_packaged
from engine.errors import CatalogueError, UsageError
from engine.model import to_json

if TYPE_CHECKING:
    from engine.catalogue.types import Catalogue
    from engine.diagnosis.ruletest import RuleTestResult


def run(names: Sequence[str], catalogue: Catalogue) -> Answer:
    """Run the tests of some rules, or of all if none is named.

    A failed test makes the answer's level ``critical``; what had to be left out of overlays is an
    error of the answer. A test of a shipped rule that fails only with the overlays is told.

    Raises:
        UsageError: there is no such rule, or it is switched off.
    """
    from engine.diagnosis.ruletest import run_rule_tests  # noqa: PLC0415 - numpy

    names = [_known(name, catalogue) for name in names]
    results = run_rule_tests(catalogue, ids=list(names) or None)
    not_ok = [result for result in results if not result.ok]
    changed = _changed_by_overlays(not_ok, catalogue) if not_ok else []
    failed = [result for result in not_ok if result not in changed]
    return Answer(
        title=_test_title(results, failed, changed),
        blocks=(
            *_failure_blocks(failed, catalogue),
            *_failure_blocks(changed, catalogue, "Overlays change what shipped rules say"),
        ),
        data={
            "schema": "gpuwhy/rules-test/1",
            "passed": len(results) - len(not_ok),
            "failed": len(failed),
            "changed": len(changed),
            "results": [
                {
                    **to_json(result),
                    "changed": result in changed,
                    "place": _place(result, catalogue),
                }
                for result in results
            ],
        },
        level=Level.CRITICAL if failed else Level.CLEAR,
        errors=(CatalogueError(catalogue.own_problems),) if catalogue.own_problems else (),
    )


def _known(name: str, catalogue: Catalogue) -> str:
    """Return the id of a rule that can be tested."""
    shown = show(name, catalogue)
    if shown.data.get("status") == "disabled":
        said = f"rule {name!r} is switched off by {shown.data['file']}"
        raise UsageError(said, hint="it has no tests to run; leave the overlay out to test it")
    return str(shown.data["id"])


def _place(result: RuleTestResult, catalogue: Catalogue) -> str:
    """Return where a test stands, as ``file:line:column``; empty if it is not known."""
    rule = catalogue.causes.get(result.rule) or catalogue.symptoms.get(result.rule)
    tests = rule.tests if rule else ()
    return next((str(t.place) for t in tests if t.name == result.test and t.place), "")


def _test_title(
    results: Sequence[RuleTestResult],
    failed: Sequence[RuleTestResult],
    changed: Sequence[RuleTestResult],
) -> Line:
    rules = count(len({result.rule for result in results}), "rule")
    if failed:
        head = strong(f"{len(failed)} of {count(len(results), 'test')} failed", Tone.BAD)
    else:
        head = strong(f"{count(len(results) - len(changed), 'test')} passed", Tone.GOOD)
    more = f"; {count(len(changed), 'test')} of shipped rules changed by overlays"
    return line(head, f", {rules}", more if changed else "")


def _failure_blocks(
    failed: Sequence[RuleTestResult], catalogue: Catalogue, title: str = ""
) -> Iterator[Block]:
    if failed:
        if title:
            yield Heading(line(title), 2)
        yield bullets(
            line(code(_place(r, catalogue)), ": ", code(r.rule), f", {r.test}: {r.message}")
            for r in failed
        )


def _changed_by_overlays(
    failed: Sequence[RuleTestResult], catalogue: Catalogue
) -> list[RuleTestResult]:
    """Return the failed tests of shipped rules that pass without the overlays.

    A site that changes a threshold, or switches a symptom off, means to change what shipped rules
    say; their tests are not the site's to mend.
    """
    if not (catalogue.of_overlays or catalogue.disabled):
        return []
    from engine.catalogue import load_catalogue  # noqa: PLC0415 - only where a test failed
    from engine.diagnosis.ruletest import run_rule_tests  # noqa: PLC0415 - numpy

    shipped = load_catalogue()
    known = {*shipped.causes, *shipped.symptoms}
    names = {
        r.rule
        for r in failed
        if r.rule in known
        and any(is_packaged(file_of(kind, r.rule, catalogue)) for kind in ("cause", "symptom"))
    }
    passed = {(r.rule, r.test) for r in run_rule_tests(shipped, sorted(names)) if r.ok}
    return [r for r in failed if (r.rule, r.test) in passed]
