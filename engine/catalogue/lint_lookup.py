"""Checks of what people look up: commands that work, queries that parse, links and pages."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from engine.catalogue.lint_base import Check, Subject
from engine.catalogue.types import Catalogue
from engine.errors import Problem
from engine.lookup.placeholders import PATTERN, PLACEHOLDERS

Entry = Mapping[str, Any]

_JUDGE = "promtool"
_JUDGE_S = 60.0
_FEWEST_ASKED = 2


def lookup_entries(catalogue: Catalogue) -> Iterator[tuple[str, Entry]]:
    """Yield every lookup entry with its key."""
    for concern, entries in catalogue.entries.items():
        for key, entry in entries.items():
            if "kind" in entry and "text" in entry:
                yield f"{concern}/{key}", entry


def command_lines(entry: Entry) -> Iterator[str]:
    """Yield the lines of an entry's commands as they are pasted, placeholders in braces."""
    for command in entry.get("commands") or ():
        env = [f"{name}={value}" for name, value in (command.get("env") or {}).items()]
        yield command.get("show") or " ".join([*env, shlex.join(command["argv"])])


class WithdrawnUse(Check):
    """A command that does not work, or no longer, is never recommended."""

    name = "withdrawn-use"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield commands of knowledge and rules that a withdrawn usage matches."""
        withdrawn = [
            (re.compile(entry["pattern"]), entry)
            for entry in subject.catalogue.entries.get("withdrawn", {}).values()
        ]
        for key, entry in lookup_entries(subject.catalogue):
            for line in command_lines(entry):
                for pattern, why in withdrawn:
                    if pattern.search(line):
                        message = f"command '{line}' is withdrawn ({why['title']})"
                        yield subject.entry_problem(key, message, why["instead"])
        for rule in subject.catalogue.causes.values():
            commands = [s.command for s in rule.next] + [a.command for a in rule.alternatives]
            for line in filter(None, commands):
                for pattern, why in withdrawn:
                    if pattern.search(line) and rule.place:
                        p = rule.place
                        message = f"command '{line}' is withdrawn ({why['title']})"
                        yield Problem(p.file, p.line, p.column, message, why["instead"])


class UnknownPlaceholder(Check):
    """Only known placeholders are filled; any other would be pasted as it stands."""

    name = "unknown-placeholder"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield words in braces that are no placeholder."""
        for key, entry in lookup_entries(subject.catalogue):
            for command in entry.get("commands") or ():
                for text in (*command["argv"], command.get("show") or ""):
                    for name in PATTERN.findall(text):
                        if name not in PLACEHOLDERS:
                            known = ", ".join(sorted(PLACEHOLDERS))
                            message = f"unknown placeholder {{{name}}}"
                            yield subject.entry_problem(key, message, f"use one of {known}")


class Unasked(Check):
    """An entry is found by the words that people ask with."""

    name = "unasked"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield entries without examples of questions."""
        for key, entry in lookup_entries(subject.catalogue):
            needed = _FEWEST_ASKED if entry["kind"] not in {"threshold", "reference"} else 0
            if len(entry.get("asked") or ()) < needed:
                message = f"'{key}' has fewer than {_FEWEST_ASKED} questions under 'asked'"
                yield subject.entry_problem(key, message, "add how people ask for it")


class Undescribed(Check):
    """Every concern has a page in the reference, with a title and an introduction."""

    name = "undescribed-concern"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield concerns that ``concerns`` does not describe, and descriptions of none."""
        described = subject.catalogue.entries.get("concerns", {})
        for concern, entries in subject.catalogue.entries.items():
            if described and concern not in described:
                key = f"{concern}/{next(iter(entries))}"
                message = f"concern '{concern}' is not described"
                yield subject.entry_problem(key, message, "add it to knowledge/concerns.yaml")
        for concern in described:
            if concern not in subject.catalogue.entries:
                message = f"there is no concern '{concern}'"
                yield subject.entry_problem(f"concerns/{concern}", message, "take it out")


class PromqlParses(Check):
    """Every query can be pasted into Prometheus. Prometheus' own promtool is the judge."""

    name = "promql"

    def run(self, subject: Subject) -> Iterator[Problem]:
        """Yield expressions that promtool refuses; none are judged where it is not installed."""
        found = list(expressions(subject.catalogue))
        judge = shutil.which(_JUDGE)
        if not found or not judge or _refusal(judge, [text for _, text in found]) is None:
            return
        for key, text in found:
            said = _refusal(judge, [text])
            if said:
                yield subject.entry_problem(key, f"PromQL does not parse: {said}", text)


def expressions(catalogue: Catalogue) -> Iterator[tuple[str, str]]:
    """Yield every PromQL expression of the knowledge base with its entry's key."""
    for key, entry in lookup_entries(catalogue):
        for query in entry.get("queries") or ():
            yield key, query["promql"]
        if "expr" in entry:
            yield key, entry["expr"]


def _refusal(judge: str, texts: Sequence[str]) -> str | None:
    """Return what promtool has against expressions, or None if it accepts them all."""
    rules = [{"record": f"query_{number}", "expr": text} for number, text in enumerate(texts)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rules.yaml")
        path.write_text(yaml.safe_dump({"groups": [{"name": "q", "rules": rules}]}), "utf-8")
        done = subprocess.run(  # noqa: S603 - an absolute path and a file of ours
            [judge, "check", "rules", str(path)],
            capture_output=True,
            text=True,
            timeout=_JUDGE_S,
            check=False,
        )
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return lines[-1] if lines else f"{_JUDGE} failed with status {done.returncode}"


LOOKUP_CHECKS: tuple[type[Check], ...] = (
    WithdrawnUse,
    UnknownPlaceholder,
    Unasked,
    Undescribed,
    PromqlParses,
)
