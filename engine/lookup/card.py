"""One shape for every knowledge entry that can answer a question: the card.

Lookup entries are cards as they stand; the vendor's tables (fields, Xids, bits, models, signals,
causes) are turned into cards by `engine.lookup.tables`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.lookup.placeholders import fill

# Programs that look at the machine that they run on.
_ON_THE_HOST = frozenset(
    """amd-smi dcgmi dcgmproftester dcgmproftester12 dmesg ethtool ibstat ibstatus journalctl lspci
    nvidia-smi perfquery py-spy rdma rocm-smi""".split()  # noqa: SIM905 - a list of words reads better
)
_SUBCOMMAND = re.compile(r"[a-z][a-z-]*")
_VERSION = re.compile(r"(?<=[a-z])\d+$")


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command as written in knowledge, placeholders and all."""

    argv: tuple[str, ...]
    does: str
    env: Mapping[str, str] = field(default_factory=dict)
    show: str | None = None
    risk: str = "none"
    privilege: str | None = None
    overhead: str | None = None
    versions: str | None = None

    def line(self, values: Mapping[str, str] | None = None) -> str:
        """Return the line to paste, placeholders filled or written as upper-case words.

        Where the host is known and the program looks at the machine that it runs on, the line goes
        there by ssh.
        """
        host = self._elsewhere(values)
        if self.show:
            shown = fill(self.show.rstrip("\n"), values, quote=True)
            return f"ssh {shlex.quote(host)} {shlex.quote(shown)}" if host else shown
        words = [f"{name}={_word(value, values)}" for name, value in self.env.items()]
        plain = " ".join([*words, *(_word(word, values) for word in self.argv)])
        return f"ssh {shlex.quote(host)} {plain}" if host else plain

    def words(self, values: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """Return the argument vector, filled, with ssh in front as in `line`."""
        filled = tuple(fill(word, values) for word in self.argv)
        host = self._elsewhere(values)
        return ("ssh", host, shlex.join(filled)) if host else filled

    def _elsewhere(self, values: Mapping[str, str] | None) -> str:
        """Return the host to run on, or nothing if that is known not, or not to matter."""
        here = self.argv[0].rpartition("/")[2] not in _ON_THE_HOST
        if here or "{host}" in (self.show or " ".join(self.argv)):
            return ""
        return (values or {}).get("host", "")


def _word(word: str, values: Mapping[str, str] | None) -> str:
    return shlex.quote(fill(word, values))


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric to look at, with its unit and what is healthy and what is a problem."""

    name: str
    unit: str = ""
    healthy: str | None = None
    problem: str | None = None
    field: int | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """An entry as answers need it. ``key`` is ``concern/id``; ``raw`` is the entry as written."""

    key: str
    title: str
    text: str
    kind: str = "reference"
    vendor: str = "any"
    names: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    commands: tuple[CommandLine, ...] = ()
    metrics: tuple[Metric, ...] = ()
    raw: Mapping[str, Any] = field(default_factory=dict)

    @property
    def concern(self) -> str:
        """The concern, which is also the reference page."""
        return self.key.partition("/")[0]

    @property
    def tools_needed(self) -> tuple[str, ...]:
        """Every tool by the names it is called by: as listed, its program, program and subcommand.

        ``dcgmi diag`` is also ``dcgmi``; ``dcgmproftester12`` is also ``dcgmproftester``.
        """
        found = [*self.tools]
        for command in self.commands:
            program, *words = command.argv
            found.append(program.rpartition("/")[2])
            if words and _SUBCOMMAND.fullmatch(words[0]):
                found.append(f"{found[-1]} {words[0]}")
        found += [name.split()[0] for name in found]
        found += [plain for name in found if (plain := _VERSION.sub("", name)) != name]
        return tuple(dict.fromkeys(found))

    @property
    def errata(self) -> tuple[str, ...]:
        """What people are told wrongly, and what holds, one sentence or two each."""
        return tuple(
            f"{_sentence(e['claim'])} In fact: {_sentence(e['right'])} {_sentence(e['why'])}"
            for e in self.raw.get("errata") or ()
        )

    @property
    def sources(self) -> tuple[str, ...]:
        """The public documents that the entry rests on."""
        return tuple(self.raw.get("source") or ())

    def get(self, key: str) -> Any:
        """Return a further key of the entry, or None."""
        return self.raw.get(key)


def lookup_card(concern: str, entry: Mapping[str, Any]) -> Card:
    """Return a lookup entry (`engine.catalogue.lookupschema.LookupEntry`) as a card."""
    return Card(
        key=f"{concern}/{entry['id']}",
        title=entry["title"],
        text=" ".join(entry["text"].split()),
        kind=entry["kind"],
        vendor=entry.get("vendor", "any"),
        names=tuple(entry.get("names") or ()),
        asked=tuple(entry.get("asked") or ()),
        tools=tuple(entry.get("tools") or ()),
        commands=tuple(command_line(c) for c in entry.get("commands") or ()),
        metrics=tuple(
            Metric(m["name"], m["unit"], m.get("healthy"), m.get("problem"), m.get("field"))
            for m in entry.get("metrics") or ()
        ),
        raw=entry,
    )


def command_line(command: Mapping[str, Any]) -> CommandLine:
    """Return a command of an entry."""
    return CommandLine(
        argv=tuple(command["argv"]),
        does=command["does"],
        env=command.get("env") or {},
        show=command.get("show"),
        risk=command.get("risk", "none"),
        privilege=command.get("privilege"),
        overhead=command.get("overhead"),
        versions=command.get("versions"),
    )


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if text.endswith((".", "!", "?")) else f"{text}."
