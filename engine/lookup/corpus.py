"""The searchable form of the cards: their terms and the two BM25 indices over them.

Making it takes a few seconds, reading it a tenth of one, so it is kept in the user's cache folder
beside the compiled knowledge, named by the content that it was made from. One that is missing, from
another version or damaged is made again; a cache that cannot be written costs time only.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import bm25s

import engine
from engine.catalogue.index import cache_folder
from engine.lookup.analysis import Analyser
from engine.lookup.card import Card

# Raised whenever the stored form, or how terms are made, changes.
FORMAT = 3
KEPT = 2
_SHORTEST_WORD = 5
_TERMS = "terms.json"
_DIGEST = "digest"


@dataclass(frozen=True, slots=True)
class Corpus:
    """Terms of the cards, in their order.

    Attributes:
        phrases: for each card the terms of its title, names and questions, a list each.
        heads: terms of what each card is about, each once.
        bodies: all terms of each card, each once.
        words: plain words of titles, names and texts, against which misspelt ones are corrected
            (questions hold slips of their own).
        counts: in how many phrases and cards each term stands.
        by_body: BM25 over whole cards.
        by_phrase: BM25 over all phrases, in order.
    """

    phrases: list[list[list[str]]]
    heads: list[list[str]]
    bodies: list[list[str]]
    words: list[str]
    counts: dict[str, int]
    by_body: bm25s.BM25
    by_phrase: bm25s.BM25

    @classmethod
    def make(cls, cards: Sequence[Card], analyser: Analyser) -> Corpus:
        """Analyse cards."""
        texts = [phrases_of(card) for card in cards]
        phrases = [[analyser.terms(text) for text in of_card] for of_card in texts]
        heads: list[list[str]] = []
        bodies: list[list[str]] = []
        words: set[str] = set()
        for card, own in zip(cards, phrases, strict=True):
            tools = [term for tool in card.tools for term in analyser.terms(tool)]
            asked = [term for phrase in own for term in phrase]
            concern = analyser.terms(card.concern.replace("_", " "))
            heads.append([*asked, *tools, *concern])
            # The title counts twice: it says what the entry is about.
            more = [term for text in _more(card) for term in analyser.terms(text)]
            bodies.append([*own[0], *asked, *tools, *more])
            spelled = (card.title, card.text, *card.names)
            words.update(word for text in spelled for word in plain_words(text))
        flat = [phrase for own in phrases for phrase in own]
        counts = Counter(term for terms in (*flat, *bodies) for term in set(terms))
        return cls(
            phrases,
            [sorted(set(head)) for head in heads],
            [sorted(set(body)) for body in bodies],
            sorted(words),
            dict(sorted(counts.items())),
            _bm25(bodies, b=0.6),
            _bm25(flat, b=0.75),
        )

    def save(self, folder: Path) -> None:
        """Write the corpus into a folder.

        Raises:
            OSError: it cannot be written.
        """
        body = json.dumps([self.phrases, self.heads, self.bodies, self.words, self.counts])
        (folder / _TERMS).write_text(body, "utf-8")
        self.by_body.save(folder / "body", show_progress=False)
        self.by_phrase.save(folder / "phrase", show_progress=False)
        (folder / _DIGEST).write_text(_digest(folder), "utf-8")

    @classmethod
    def load(cls, folder: Path) -> Corpus:
        """Read a corpus from a folder.

        Raises:
            OSError: a part is missing.
            ValueError: a part is damaged.
        """
        if (folder / _DIGEST).read_text("utf-8") != _digest(folder):
            raise ValueError(f"{folder} is damaged")
        body = (folder / _TERMS).read_text("utf-8")
        by_body = bm25s.BM25.load(folder / "body", show_progress=False)
        by_phrase = bm25s.BM25.load(folder / "phrase", show_progress=False)
        phrases, heads, bodies, words, counts = json.loads(body)
        return cls(phrases, heads, bodies, words, counts, by_body, by_phrase)


def cached(key: str, cards: Sequence[Card], analyser: Analyser) -> Corpus:
    """Return the corpus of cards, from the cache where there is a good one.

    Args:
        key: names the content that the cards were made from.
        cards: the cards.
        analyser: makes terms.
    """
    root = cache_folder()
    if root is None or not key:
        return Corpus.make(cards, analyser)
    folder = root / f"lookup-{FORMAT}-{engine.__version__}-{key}"
    with contextlib.suppress(OSError, ValueError, KeyError):
        found = Corpus.load(folder)
        if len(found.heads) == len(cards):
            return found
    made = Corpus.make(cards, analyser)
    with contextlib.suppress(OSError):
        _keep(made, folder)
    return made


def plain_words(text: str) -> list[str]:
    """Return the words of a text against which a misspelt one is corrected."""
    words = Analyser.words(text)
    return [word for word in words if word.isalpha() and len(word) >= _SHORTEST_WORD]


def _keep(corpus: Corpus, folder: Path) -> None:
    """Write a corpus so that a reader sees all of it or nothing, and drop old ones."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".lookup-", dir=folder.parent))
    try:
        corpus.save(temporary)
        if folder.exists():
            shutil.rmtree(folder)
        temporary.replace(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    old = sorted(folder.parent.glob("lookup-*"), key=lambda p: p.stat().st_mtime, reverse=True)
    for path in old[KEPT:]:
        shutil.rmtree(path, ignore_errors=True)


def phrases_of(card: Card) -> tuple[str, ...]:
    """Return what a question is compared with: title, names and the questions of users."""
    return (card.title, *card.names, *card.asked)


def _more(card: Card) -> Iterable[str]:
    """Yield what a card says beyond its title, names and questions."""
    raw = card.raw
    yield card.text
    yield from filter(None, (raw.get("caution"), raw.get("instead")))
    yield from (f"{command.line()} {command.does}" for command in card.commands)
    yield from (f"{m.name} {m.healthy or ''} {m.problem or ''}" for m in card.metrics)
    yield from (f"{flag['flag']} {flag['does']}" for flag in raw.get("flags") or ())
    yield from (erratum["claim"] for erratum in raw.get("errata") or ())


def _bm25(corpus: list[list[str]], b: float) -> bm25s.BM25:
    index = bm25s.BM25(method="lucene", k1=1.2, b=b)
    index.index(corpus, show_progress=False)
    return index


def _digest(folder: Path) -> str:
    """Return a digest of all files of a folder but the one that holds it."""
    digest = blake2b(digest_size=16)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != _DIGEST:
            data = path.read_bytes()
            digest.update(f"{path.relative_to(folder)} {len(data)}\n".encode())
            digest.update(data)
    return digest.hexdigest()
