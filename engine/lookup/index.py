"""Retrieval over the knowledge base: BM25 over whole entries and over each question they answer.

BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009) comes
from bm25s, stems from PyStemmer, and what is misspelt is corrected with rapidfuzz against the words
of the knowledge base. An entry's score is the sum of

- how well all of its text matches (`bodies`), and
- how well its best single phrase does: title, names, or one of the questions that users ask
  (`phrases`), since a question is best compared with a question.

Both are relative to what a perfect match would reach, so that scores of different questions can be
compared, and "not sure" has a fixed limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import bm25s
import numpy as np
import numpy.typing as npt
from rapidfuzz import process
from rapidfuzz.distance import OSA

from engine.lookup.analysis import Analyser, stem
from engine.lookup.card import Card

Floats = npt.NDArray[np.float32]

# Tuned on questions of people who had not seen the entries (`python -m benchmarks ask`).
PHRASE_WEIGHT = 1.0
BODY_WEIGHT = 1.0
COVERAGE_WEIGHT = 1.0
CANDIDATES = 40
_SHORTEST_CORRECTED = 4
_LONG_WORD = 8


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that a question may mean. ``score`` is from 0 to 1; ``covered`` is the share of the
    question's information (sum of inverse document frequencies) that the entry's words cover.
    """

    card: Card
    score: float
    covered: float


class Index:
    """A searchable index of cards."""

    def __init__(self, cards: Iterable[Card], synonyms: Mapping[str, Iterable[str]]) -> None:
        self.cards = tuple(cards)
        self._analyser = Analyser(synonyms)
        bodies = [self._body(card) for card in self.cards]
        phrases: list[list[str]] = []
        owners: list[int] = []
        words: set[str] = set()
        for number, card in enumerate(self.cards):
            for phrase in (card.title, *card.names, *card.asked):
                phrases.append(self._analyser.terms(phrase))
                owners.append(number)
                words.update(self._analyser.words(phrase))
            words.update(self._analyser.words(card.text))
        self._owners = np.asarray(owners)
        self._terms = [frozenset(body) for body in bodies]
        self._bodies = _bm25(bodies, b=0.6)
        self._phrases = _bm25(phrases, b=0.75)
        self._phrase_sets = [frozenset(phrase) for phrase in phrases]
        self._idf = _idf(self._terms)
        self._unknown_idf = max(self._idf.values(), default=1.0)
        self._words = sorted(w for w in words if w.isalpha() and len(w) >= _SHORTEST_CORRECTED)
        self._known = frozenset(stem(word) for word in self._words) | self._idf.keys()

    def search(
        self,
        question: str,
        count: int = 10,
        *,
        boost: Callable[[Card], float] | None = None,
    ) -> tuple[Hit, ...]:
        """Return the entries that a question may mean, best first; ties go by key.

        Args:
            question: the question.
            count: at most so many hits.
            boost: factor for an entry's score (1 leaves it), for what retrieval cannot know.
        """
        terms = self.terms(question)
        if not terms or not self.cards:
            return ()
        ideal = sum(self._idf_of(term) for term in set(terms))
        bodies = _scores(self._bodies, terms, len(self.cards)) / ideal
        phrases = np.zeros(len(self.cards), dtype=np.float32)
        by_phrase = _scores(self._phrases, terms, len(self._owners)) / ideal
        np.maximum.at(phrases, self._owners, by_phrase)
        rough = BODY_WEIGHT * bodies + PHRASE_WEIGHT * phrases
        best = np.argsort(-rough, kind="stable")[:CANDIDATES]
        wanted = set(terms)
        hits = [self._hit(int(n), float(rough[n]), wanted, ideal, boost) for n in best if rough[n] > 0]
        hits.sort(key=lambda hit: (-hit.score, hit.card.key))
        return tuple(hits[:count])

    def terms(self, question: str) -> list[str]:
        """Return the search terms of a question, misspelt words corrected."""
        words = [self._corrected(word) for word in self._analyser.words(question)]
        return self._analyser.terms_of(words)

    def _hit(
        self,
        number: int,
        rough: float,
        wanted: set[str],
        ideal: float,
        boost: Callable[[Card], float] | None,
    ) -> Hit:
        card = self.cards[number]
        covered = sum(self._idf_of(term) for term in wanted & self._terms[number]) / ideal
        score = (rough / 3 + COVERAGE_WEIGHT * covered) / 2
        return Hit(card, score * (boost(card) if boost else 1.0), covered)

    def _idf_of(self, term: str) -> float:
        return self._idf.get(term, self._unknown_idf)

    def _body(self, card: Card) -> list[str]:
        raw = card.raw
        parts = [card.title, card.title, *card.names, *card.tools, *card.asked, card.text]
        parts += [raw.get("caution") or "", raw.get("instead") or ""]
        parts += [f"{c.line()} {c.does}" for c in card.commands]
        parts += [f"{m.name} {m.healthy or ''} {m.problem or ''}" for m in card.metrics]
        parts += [f"{f['flag']} {f['does']}" for f in raw.get("flags") or ()]
        parts += [e["claim"] for e in raw.get("errata") or ()]
        return [term for part in parts if part for term in self._analyser.terms(part)]

    def _corrected(self, word: str) -> str:
        if not word.isalpha() or len(word) < _SHORTEST_CORRECTED or stem(word) in self._known:
            return word
        slips = 2 if len(word) >= _LONG_WORD else 1
        found = process.extractOne(
            word, self._words, scorer=OSA.distance, score_cutoff=slips, processor=None
        )
        return str(found[0]) if found else word


def _bm25(corpus: Sequence[list[str]], b: float) -> bm25s.BM25:
    index = bm25s.BM25(method="lucene", k1=1.2, b=b)
    index.index(list(corpus), show_progress=False)
    return index


def _scores(index: bm25s.BM25, terms: Iterable[str], documents: int) -> Floats:
    """Return the BM25 score of every document; bm25s refuses a query without any known term."""
    known = [term for term in dict.fromkeys(terms) if term in index.vocab_dict]
    return index.get_scores(known) if known else np.zeros(documents, dtype=np.float32)


def _idf(documents: Sequence[frozenset[str]]) -> dict[str, float]:
    counts: dict[str, int] = {}
    for document in documents:
        for term in document:
            counts[term] = counts.get(term, 0) + 1
    total = len(documents)
    return {t: float(np.log(1 + (total - n + 0.5) / (n + 0.5))) for t, n in counts.items()}
