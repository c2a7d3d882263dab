"""Scoring a candidate: what it covers of a question, and how alike its questions are.

The weights were tuned on questions of people who had not seen the entries
(``python -m benchmarks ask`` prints how often the right entry comes first).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import log

from engine.lookup.analysis import Word

# How much the parts of a score count; together 1.
PHRASE_WEIGHT = 0.26
BODY_WEIGHT = 0.45
COVERAGE_WEIGHT = 0.29
# In the likeness of question and phrase, how much more recall counts than precision (F measure).
BETA = 1.65
# A word that a synonym meets, or some parts of an identifier, or only the further text of an entry.
ALIKE = 0.65
PARTS = 0.9
BODY_MET = 0.96
# A word that is an identifier (an error code, a metric, a flag) says more than its rarity.
IDENTIFIER = 1.7
# Shared among all entries that a question names.
NAMED = 0.21
# Factors: a cue for the concern; AMD entries where nobody spoke of AMD; the subject of the question
# only mentioned, or missing altogether.
CUED = 1.23
FOREIGN = 0.75
MENTIONED = 0.9
MISSING = 0.5
# Entries of these say less than one that was written for the question.
PRIORS: Mapping[str, float] = {
    "references": 0.85,
    "signals": 0.9,
    "sxid": 0.9,
    "taxonomy": 0.85,
    "thresholds": 0.85,
}


_IDENTIFIER = re.compile(r"[_:]|^--")


class Scale:
    """How much each term says: inverse document frequency, as in BM25."""

    def __init__(self, documents: Sequence[AbstractSet[str]]) -> None:
        counts: dict[str, int] = {}
        for document in documents:
            for term in document:
                counts[term] = counts.get(term, 0) + 1
        total = len(documents)
        self._idf = {t: log(1 + (total - n + 0.5) / (n + 0.5)) for t, n in counts.items()}
        self._unknown = max(self._idf.values(), default=1.0)

    @property
    def terms(self) -> frozenset[str]:
        """All terms that there are."""
        return frozenset(self._idf)

    def of_term(self, term: str) -> float:
        """Return what a term says; 0 for a synonym's canonical term, which stands for a word."""
        return 0.0 if term.startswith("~") else self._idf.get(term, 0.0)

    def of_word(self, word: Word) -> float:
        """Return what a word says: as much as its rarest term, or as an unknown one."""
        known = [self._idf[term] for term in word.exact if term in self._idf]
        says = max(known, default=self._unknown)
        return says * IDENTIFIER if _IDENTIFIER.search(word.text) else says


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase of an entry: its terms, what each says, and all of them together."""

    terms: frozenset[str]
    says: Mapping[str, float]
    weight: float

    @classmethod
    def of(cls, terms: frozenset[str], scale: Scale) -> Phrase:
        """Weigh a phrase."""
        says = {term: scale.of_term(term) for term in terms}
        return cls(terms, says, sum(says[term] for term in sorted(says)))


@dataclass(frozen=True, slots=True)
class Question:
    """A question: its words with what each says, all together, and every term that meets one."""

    words: tuple[tuple[Word, float], ...]
    weight: float
    terms: frozenset[str]

    @classmethod
    def of(cls, words: Iterable[Word], scale: Scale) -> Question:
        """Weigh a question."""
        weighed = tuple((word, scale.of_word(word)) for word in words)
        terms = frozenset(t for word, _ in weighed for t in (*word.exact, *word.alike))
        return cls(weighed, sum(weight for _, weight in weighed), terms)

    def covered(self, head: AbstractSet[str], body: AbstractSet[str]) -> float:
        """Return the share of the question that an entry meets, from 0 to 1.

        Args:
            head: terms of what the entry is about.
            body: all of its terms; a word met here alone counts less.
        """
        met = 0.0
        for word, weight in self.words:
            met += weight * max(_met(word, head), BODY_MET * _met(word, body))
        return met / self.weight

    def likeness(self, phrase: Phrase) -> float:
        """Return how alike question and phrase are, from 0 to 1: F of recall and precision."""
        recall = sum(w * _met(word, phrase.terms) for word, w in self.words) / self.weight
        shared = sum(phrase.says[term] for term in sorted(phrase.terms & self.terms))
        if not recall or not shared:
            return 0.0
        precision = min(1.0, shared / phrase.weight)
        return (1 + BETA**2) * recall * precision / (BETA**2 * precision + recall)


def total(body: float, alike: float, covered: float) -> float:
    """Return the score of a candidate before what is known of its concern.

    Args:
        body: BM25 over the whole entry, relative to the question's weight.
        alike: likeness of the nearest phrase.
        covered: share of the question that the entry meets.
    """
    return BODY_WEIGHT * min(1.0, body / 2) + PHRASE_WEIGHT * alike + COVERAGE_WEIGHT * covered


def _met(word: Word, terms: AbstractSet[str]) -> float:
    """Return how far terms meet a word, from 0 to 1."""
    if word.exact[0] in terms:
        return 1.0
    by_parts = sum(term in terms for term in word.exact[1:]) / max(1, len(word.exact) - 1)
    by_synonym = ALIKE if any(term in terms for term in word.alike) else 0.0
    return max(PARTS * by_parts, by_synonym)
