"""``ask``: which tool, which command, which threshold, what something means."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

from bot.answer import (
    Answer,
    Block,
    Bullet,
    Bullets,
    Heading,
    Level,
    Line,
    Text,
    code,
    line,
    strong,
)
from bot.commands import entry
from bot.router.spans import Marked
from bot.router.targets import mark_explicit, mark_spoken, shortest
from engine.errors import UsageError
from engine.model import to_json
from engine.topology import Target, parse_target

if TYPE_CHECKING:
    from engine.catalogue.types import Catalogue
    from engine.lookup.ask import Library
    from engine.lookup.model import Ask, AskAnswer

# Words by which somebody asks how a thing is, not how something is done.
_STATE = re.compile(
    r"\b(?:slow\w*|healthy|sick|broken|wrong|bad|ok|okay|fine|why|hot|throttl\w+|degraded|dead|stuck)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
# Letters of an entry that is only pointed at.
_BRIEF = 260
_COMMANDS = 2
# From this share of the first one's score another entry may as well be the one that is meant.
_NEARLY = 0.9
# Looks like host:number, and is a port of a network adapter.
_ADAPTER = re.compile(r"(?:mlx\d|ib\d|eth\d|en[opsx]\d|bnxt|irdma|hfi)", re.IGNORECASE)


def run(text: str, *, catalogue: Catalogue, after: str | None = None) -> Answer:
    """Answer a question from the knowledge base.

    Args:
        text: the question. A target that it names fills the placeholders of commands.
        catalogue: knowledge and rules.
        after: the question before it, if it follows one.

    Raises:
        UsageError: the question is empty or too long.
    """
    from engine.lookup.ask import MAX_CHARACTERS, check_length, library  # noqa: PLC0415 - numpy

    check_length(text)
    shelf = library(catalogue)
    question, target = without_target(text)
    asked = [without_target(one) for one in (after or "")[-MAX_CHARACTERS:].splitlines()]
    found = shelf.ask(
        question or text,
        after="\n".join(words for words, _ in asked) or None,
        values=placeholders(target),
    )
    if target is None and found.after:
        # What follows a question about a target is about the same one.
        target = next((named for _, named in reversed(asked) if named), None)
        found = shelf.ask(question or text, after=found.after, values=placeholders(target))
    return _answer(found, shelf, target)


def without_target(text: str) -> tuple[str, Target | None]:
    """Return a question without the first target that it names, and that target."""
    marked = Marked(text)
    mark_explicit(marked)
    mark_spoken(marked)
    named = [str(value) for value in marked.values("TARGET") if not _ADAPTER.match(str(value))]
    if not named:
        return text, None
    try:
        target = parse_target(named[0])
    except UsageError:
        return text, None
    words = "".join(" " if marked.at(char) else char for char in marked.text)
    return " ".join(words.split()), target


def placeholders(target: Target | None) -> dict[str, str]:
    """Return what a target says about the placeholders of commands."""
    if target is None:
        return {}
    known = {
        "gpu": target.gpu,
        "host": target.host,
        "job": target.job,
        "model": target.service,
        "mount": target.mount,
        "namespace": target.namespace,
        "pod": target.pod,
        "rank": target.rank,
        "uuid": target.uuid,
    }
    return {name: str(value) for name, value in known.items() if value is not None}


def _answer(found: Ask, shelf: Library, target: Target | None) -> Answer:
    return Answer(
        title=_title(found),
        blocks=(*_verdict(target, found), *_blocks(found, shelf, placeholders(target))),
        data=to_json(found),
        level=Level.CLEAR if found.sure else Level.UNKNOWN,
    )


def _verdict(target: Target | None, found: Ask) -> Iterator[Block]:
    """Yield where to turn with a question about the state of one thing: its readings decide."""
    if target is not None and (not found.sure or _STATE.search(found.question)):
        name = shlex.quote(shortest(target))
        yield Text(line("What its readings say: ", code(f"gpuwhy why {name}")))


def _title(found: Ask) -> Line:
    if found.calculation:
        return line(strong(found.calculation.title))
    if not found.answers:
        return line(strong("Nothing in the knowledge base answers this"))
    if not found.sure:
        return line(strong("Not sure what is meant"), "; the nearest entries are:")
    return line(strong(found.answers[0].title))


def _blocks(found: Ask, shelf: Library, values: dict[str, str]) -> Iterator[Block]:
    if found.calculation:
        yield from entry.calculation(found.calculation)
    if not found.answers:
        yield Text(line("It knows GPUs, their metrics and tools, NCCL, serving and storage."))
        yield Text(line("Why a GPU is slow is told by its readings: ", code("gpuwhy why HOST:GPU")))
        return
    if not found.sure:
        yield _nearest(found, 0)
        yield Text(line("Ask with other words, or see one with ", code("gpuwhy kb show ID"), "."))
        return
    first = found.answers[0]
    if found.calculation is None:
        yield from entry.blocks(first, shelf.card(first.id), values, brief=True)
    if found.answers[1:]:
        yield Heading(line("See also"), 2)
        yield _nearest(found, 1)


def _nearest(found: Ask, start: int) -> Bullets:
    """Return the entries from one on; where none is called the answer, with commands to try."""
    return Bullets(
        tuple(
            Bullet(
                line(code(one.id), f": {one.title}"),
                (
                    Bullet(line(_first(one, found))),
                    *(Bullet(line(code(cmd))) for cmd in _short(one) if not found.sure),
                ),
            )
            for one in found.answers[start:]
        )
    )


def _short(one: AskAnswer) -> tuple[str, ...]:
    """Return the first commands of an entry that stand on one line and disturb nothing."""
    harmless = (run.command for run in one.runs if run.risk == "none")
    return tuple(command for command in harmless if "\n" not in command)[:_COMMANDS]


def _first(one: AskAnswer, found: Ask) -> str:
    """Return the first sentences of an entry; all of one that fits nearly as well as the first."""
    if one.score >= _NEARLY * found.answers[0].score:
        return one.text
    said = ""
    for sentence in _SENTENCE.split(one.text):
        if said and len(said) + len(sentence) > _BRIEF:
            break
        said = f"{said} {sentence}".strip()
    return said
