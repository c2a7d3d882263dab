"""``ask``: from a question in words to the entries that answer it, or to "not sure"."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any

from engine.catalogue.types import Catalogue
from engine.errors import UsageError
from engine.lookup.calc import from_words
from engine.lookup.card import Card
from engine.lookup.follow import follow_up
from engine.lookup.index import Hit, Index
from engine.lookup.model import Ask, AskAnswer, Reading, Run
from engine.lookup.placeholders import fill
from engine.lookup.tables import cards

MAX_CHARACTERS = 2000
SHOWN = 3
_REMEMBERED = 8
# Below these the nearest entries are offered, but none is called the answer: how well the entry
# fits, how much of the question it is about, and how much the question says at all. Of the
# questions outside the field nearly none passes.
SURE_SCORE = 0.31
SURE_GROUNDED = 0.4
SURE_WEIGHT = 10.0
# A question this like one of the entry's own may be short, one that is the same even more so.
SURE_ALIKE = 0.75
SURE_SHORT = 6.5
SURE_SHORTEST = 3.0
# Below this, and where the question names no subject of the field, the nearest entries have nothing
# to do with it: none is offered.
NEAR_SCORE = 0.22


class Library:
    """The knowledge base, ready to be asked. Building it takes a fraction of a second; keep it."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue
        vocabulary = catalogue.entries.get("vocabulary", {})
        synonyms = {str(entry["id"]): entry["words"] for entry in vocabulary.values()}
        subjects = (str(entry["id"]) for entry in vocabulary.values() if entry.get("subject"))
        concerns = catalogue.entries.get("concerns", {})
        cues = {str(entry["id"]): entry.get("cues", ()) for entry in concerns.values()}
        self.index = Index(cards(catalogue), synonyms, subjects, cues, key=catalogue.hash)
        self._cards = {card.key: card for card in self.index.cards}

    def card(self, key: str) -> Card:
        """Return the card of an answer."""
        return self._cards[key]

    def ask(
        self,
        question: str,
        *,
        after: str | None = None,
        values: Mapping[str, str] | None = None,
    ) -> Ask:
        """Answer a question.

        Args:
            question: the question, at most 2,000 characters.
            after: the questions that were asked before it, a line each, if it may follow them.
            values: what the question is about, for the placeholders of commands: ``gpu``, ``host``.

        Raises:
            UsageError: the question is empty or too long.
        """
        clean = " ".join("".join(c if c.isprintable() else " " for c in question).split())
        if not clean:
            raise UsageError("nothing was asked", hint='for example: gpuwhy ask "what is xid 79"')
        check_length(clean)
        before = self._meant_by(after[-MAX_CHARACTERS:]) if after else ""
        meant = follow_up(clean, before, self.index) if before else None
        boost = meant.boost if meant else None
        hits = self.index.search(meant.text if meant else clean, boost=boost)
        sure = bool(hits) and is_sure(hits)
        calculation = from_words(clean, self.catalogue)
        if hits and not sure and hits[0].score < NEAR_SCORE and not hits[0].measures.met:
            hits = ()
        return Ask(
            question=clean,
            answers=tuple(to_answer(hit.card, hit.score, values) for hit in hits[:SHOWN]),
            sure=sure or calculation is not None,
            calculation=calculation,
            after=before if meant else None,
        )

    def _meant_by(self, questions: str) -> str:
        """Return what the last of some questions means, each after the one before it."""
        meant = ""
        for question in filter(None, map(str.strip, questions.splitlines()[-_REMEMBERED:])):
            follows = follow_up(question, meant, self.index) if meant else None
            meant = follows.text if follows else question
        return meant


def check_length(question: str) -> None:
    """Refuse what is too long for a question.

    Raises:
        UsageError: it has more than 2,000 characters.
    """
    if len(question) > MAX_CHARACTERS:
        raise UsageError(
            f"a question may have {MAX_CHARACTERS} characters, this one has {len(question)}",
            hint="to read a log or other pasted text use: gpuwhy read",
        )


_KEPT = 4
_libraries: dict[str, Library] = {}
_building = Lock()


def library(catalogue: Catalogue) -> Library:
    """Return the library of a catalogue, built once for the same content; thread-safe."""
    with _building:
        found = _libraries.get(catalogue.hash)
        if found is None:
            if len(_libraries) >= _KEPT:
                _libraries.pop(next(iter(_libraries)))
            found = _libraries[catalogue.hash] = Library(catalogue)
        return found


def is_sure(hits: tuple[Hit, ...]) -> bool:
    """Return whether the first hit is what was asked for."""
    first = hits[0]
    if first.measures.grounded < SURE_GROUNDED:
        return False
    said = first.weight >= SURE_WEIGHT and first.score >= SURE_SCORE
    own = first.measures.same > 0 and first.weight >= SURE_SHORTEST
    own = own or (first.weight >= SURE_SHORT and first.measures.alike >= SURE_ALIKE)
    return said or own or first.measures.named + first.measures.coded > 0


def to_answer(card: Card, score: float, values: Mapping[str, str] | None = None) -> AskAnswer:
    """Return a card as an answer, placeholders of its commands filled from ``values``."""
    runs = tuple(
        Run(
            command.line(values),
            command.words(values),
            command.does,
            command.risk,
            command.privilege,
            command.overhead,
            command.versions,
        )
        for command in card.commands
    )
    return AskAnswer(
        id=card.key,
        title=card.title,
        score=round(min(score, 1.0), 3),
        text=card.text,
        tools=card.tools_needed,
        commands=tuple(run.command for run in runs),
        metrics=tuple(metric.name for metric in card.metrics),
        errata=card.errata,
        sources=card.sources,
        runs=runs,
        readings=tuple(
            Reading(m.name, m.unit, m.healthy, m.problem, m.field) for m in card.metrics
        ),
        queries=(
            *(query["promql"] for query in card.get("queries") or ()),
            *filter(None, (card.get("expr"),)),
        ),
        snippets=tuple(fill(code["text"], values) for code in card.get("code") or ()),
        steps=tuple(card.get("steps") or ()),
        flags=tuple(f"{flag['flag']}: {flag['does']}" for flag in card.get("flags") or ()),
        values=tuple(_value(value) for value in card.get("values") or ()),
        caution=card.get("caution"),
        instead=card.get("instead"),
        vendor=card.vendor,
        versions=card.get("versions"),
        status=card.get("status") or "single",
        see=tuple(card.get("see") or ()),
    )


def _value(value: Mapping[str, Any]) -> str:
    said = f"{value['name']}: {value['value']} {value.get('unit') or ''}".rstrip()
    return f"{said} ({value['note']})" if value.get("note") else said
