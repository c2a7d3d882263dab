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
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import bm25s
import numpy as np
import numpy.typing as npt
from rapidfuzz import process
from rapidfuzz.distance import OSA

from engine.lookup.analysis import Analyser, Word, stem
from engine.lookup.card import Card
from engine.lookup.named import Names

Floats = npt.NDArray[np.float32]

# Tuned on questions of people who had not seen the entries (`python -m benchmarks ask`).
PHRASE_WEIGHT = 0.45
BODY_WEIGHT = 0.25
COVERAGE_WEIGHT = 0.3
BETA = 1.5
CANDIDATES = 30
PHRASES = 3
PRIORS: Mapping[str, float] = {"references": 0.85, "taxonomy": 0.85, "signals": 0.9, "sxid": 0.9}
ALIKE = 0.8
PARTS = 0.9
BODY_MET = 0.6
NAMED = 0.3
FOREIGN = 0.75
CUED = 1.2
MENTIONED = 0.85
MISSING = 0.7
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

    def __init__(
        self,
        cards: Iterable[Card],
        synonyms: Mapping[str, Iterable[str]],
        subjects: Iterable[str] = (),
        cues: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        self.cards = tuple(cards)
        self._subjects = frozenset(f"~{subject}" for subject in subjects)
        self._analyser = Analyser(synonyms)
        self._cues = {
            concern: [self._cue(phrase) for phrase in phrases]
            for concern, phrases in (cues or {}).items()
        }
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
        self._names = Names(self.cards)
        self._heads = [self._head(card) for card in self.cards]
        self._owners = np.asarray(owners)
        self._phrase_sets = [frozenset(phrase) for phrase in phrases]
        self._terms = [frozenset(body) for body in bodies]
        self._bodies = _bm25(bodies, b=0.6)
        self._phrases = _bm25(phrases, b=0.75)
        self._spans = _spans(owners, len(self.cards))
        self._idf = _idf([*self._terms, *self._phrase_sets])
        self._base = frozenset(term for term in self._idf if not term.startswith("~"))
        self._phrase_weights = [
            sum(self._idf[term] for term in phrase if term in self._base)
            for phrase in self._phrase_sets
        ]
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
        words = self.words(question)
        if not words or not self.cards:
            return ()
        ideal = sum(self._weight(word) for word in words)
        terms = [term for word in words for term in (*word.exact, *word.alike)]
        bodies = _scores(self._bodies, terms, len(self.cards)) / ideal
        by_phrase = _scores(self._phrases, terms, len(self._owners)) / ideal
        phrases = np.zeros(len(self.cards), dtype=np.float32)
        np.maximum.at(phrases, self._owners, by_phrase)
        rough = bodies + phrases
        best = [int(n) for n in np.argsort(-rough, kind="stable")[:CANDIDATES] if rough[n] > 0]
        query = frozenset(terms)
        named = self._names.find(question)
        best += sorted(named.difference(best))
        amd = "~amd" in query
        subjects = query & self._subjects
        cued = {c for c, cues in self._cues.items() if any(cue <= query for cue in cues)}
        hits = []
        for number in best:
            first, last = self._spans[number]
            order = np.argsort(-by_phrase[first:last], kind="stable")[:PHRASES]
            alike = max(
                self._likeness(words, query, first + int(n), ideal) for n in order
            )
            hit = self._hit(number, float(bodies[number]), alike, words, ideal)
            factor = boost(hit.card) if boost else 1.0
            factor *= FOREIGN if hit.card.vendor == "amd" and not amd else 1.0
            factor *= CUED if hit.card.concern in cued else 1.0
            for subject in subjects - self._heads[number]:
                factor *= MENTIONED if subject in self._terms[number] else MISSING
            bonus = NAMED / len(named) if number in named else 0.0
            hits.append(replace(hit, score=hit.score * factor + bonus))
        hits.sort(key=lambda hit: (-hit.score, hit.card.key))
        return tuple(hits[:count])

    def _likeness(
        self, words: Sequence[Word], query: frozenset[str], phrase: int, ideal: float
    ) -> float:
        """Return how alike a question and a phrase are, from 0 to 1: F of recall and precision."""
        terms = self._phrase_sets[phrase]
        recall = sum(self._weight(word) * _met(word, terms) for word in words) / ideal
        whole = self._phrase_weights[phrase]
        if not recall or not whole:
            return 0.0
        met = sum(self._idf[term] for term in terms & query if term in self._base)
        precision = min(1.0, met / whole)
        return (1 + BETA**2) * recall * precision / (BETA**2 * precision + recall) if met else 0.0

    def words(self, question: str) -> list[Word]:
        """Return the words of a question that carry a subject, misspelt ones corrected."""
        return self._analyser.analyse([self._corrected(w) for w in self._analyser.words(question)])

    def _hit(
        self,
        number: int,
        body: float,
        alike: float,
        words: Sequence[Word],
        ideal: float,
    ) -> Hit:
        card = self.cards[number]
        head, terms = self._heads[number], self._terms[number]
        covered = 0.0
        for word in words:
            met = max(_met(word, head), BODY_MET * _met(word, terms))
            covered += self._weight(word) * met / ideal
        score = BODY_WEIGHT * min(1.0, body / 2) + PHRASE_WEIGHT * alike + COVERAGE_WEIGHT * covered
        return Hit(card, score * PRIORS.get(card.concern, 1.0), covered)

    def _weight(self, word: Word) -> float:
        """Return how much a word says: that of its rarest term, or of an unknown one."""
        known = [self._idf[term] for term in word.exact if term in self._idf]
        return max(known, default=self._unknown_idf)

    def _body(self, card: Card) -> list[str]:
        raw = card.raw
        parts = [card.title, card.title, *card.names, *card.tools, *card.asked, card.text]
        parts += [raw.get("caution") or "", raw.get("instead") or ""]
        parts += [f"{c.line()} {c.does}" for c in card.commands]
        parts += [f"{m.name} {m.healthy or ''} {m.problem or ''}" for m in card.metrics]
        parts += [f"{f['flag']} {f['does']}" for f in raw.get("flags") or ()]
        parts += [e["claim"] for e in raw.get("errata") or ()]
        return [term for part in parts if part for term in self._analyser.terms(part)]

    def _cue(self, phrase: str) -> frozenset[str]:
        """Return the terms that have to be in a question: of each word its synonym if it has one."""
        words = self._analyser.analyse(self._analyser.words(phrase))
        return frozenset(
            next((term for term in word.alike if term.startswith("~")), word.exact[0])
            for word in words
        )

    def _head(self, card: Card) -> frozenset[str]:
        """Return the terms of what an entry is about, without what it goes on to say."""
        parts = (card.concern.replace("_", " "), card.title, *card.names, *card.tools, *card.asked)
        return frozenset(term for part in parts for term in self._analyser.terms(part))

    def _corrected(self, word: str) -> str:
        if not word.isalpha() or len(word) < _SHORTEST_CORRECTED or stem(word) in self._known:
            return word
        slips = 2 if len(word) >= _LONG_WORD else 1
        found = process.extractOne(
            word, self._words, scorer=OSA.distance, score_cutoff=slips, processor=None
        )
        return str(found[0]) if found else word


def _met(word: Word, terms: AbstractSet[str]) -> float:
    """Return how far an entry's terms meet a word, from 0 to 1."""
    if word.exact[0] in terms:
        return 1.0
    by_parts = sum(term in terms for term in word.exact[1:]) / max(1, len(word.exact) - 1)
    by_synonym = ALIKE if any(term in terms for term in word.alike) else 0.0
    return max(PARTS * by_parts, by_synonym)


def _bm25(corpus: Sequence[list[str]], b: float) -> bm25s.BM25:
    index = bm25s.BM25(method="lucene", k1=1.2, b=b)
    index.index(list(corpus), show_progress=False)
    return index


def _scores(index: bm25s.BM25, terms: Iterable[str], documents: int) -> Floats:
    """Return the BM25 score of every document; bm25s refuses a query without any known term."""
    known = [term for term in dict.fromkeys(terms) if term in index.vocab_dict]
    return index.get_scores(known) if known else np.zeros(documents, dtype=np.float32)


def _spans(owners: Sequence[int], cards: int) -> list[tuple[int, int]]:
    """Return the first phrase of each card and the one after its last."""
    firsts = np.searchsorted(owners, np.arange(cards + 1))
    return [(int(a), int(b)) for a, b in zip(firsts, firsts[1:], strict=False)]


def _idf(documents: Sequence[frozenset[str]]) -> dict[str, float]:
    counts: dict[str, int] = {}
    for document in documents:
        for term in document:
            counts[term] = counts.get(term, 0) + 1
    total = len(documents)
    return {t: float(np.log(1 + (total - n + 0.5) / (n + 0.5))) for t, n in counts.items()}
