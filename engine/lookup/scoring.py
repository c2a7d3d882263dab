"""Scoring a candidate: what it covers of a question, and how alike its questions are.

The score is a weighted sum of a few measures. The weights were fitted (pairwise logistic
regression) on questions of people who had not seen the entries; ``python -m benchmarks ask`` prints
how often the right entry comes first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from math import log

from engine.lookup.analysis import Word

# How much each measure counts; see `Measures`.
WEIGHTS: Mapping[str, float] = {
    "body": 2.96,
    "phrase": 1.48,
    "alike": 1.95,
    "alike_mean": 2.29,
    "same": 1.5,
    "titled": 2.04,
    "grounded": 2.56,
    "covered": 2.92,
    "coded": 8.0,
    "named": 1.0,
    "cued": 0.49,
    "foreign": -0.97,
    "missing": -0.35,
    "met": 0.36,
    "surveys": 1.2,
}
# What an entry is worth less that says less than one which was written for a question.
PRIORS: Mapping[str, float] = {"signals": -0.7, "taxonomy": -1.2, "thresholds": -0.4}
# A cause without a command to run only says what the word means.
STUB = -2.5
# A question that is one of an entry's own, word for word, scores about this much.
FULL = 23.0
# In the likeness of question and phrase, how much more recall counts than precision (F measure).
BETA = 1.65
# A word that a synonym meets, or some parts of an identifier.
ALIKE = 0.65
# From this likeness on a question is the same.
SAME = 0.99
PARTS = 0.9
# A word that is an identifier (an error code, a metric, a flag) says more than its rarity.
IDENTIFIER = 1.7

_IDENTIFIER = re.compile(r"[_:]|^--")


@dataclass(frozen=True, slots=True)
class Measures:
    """What is known of a candidate.

    Attributes:
        body: BM25 over the whole entry, relative to the question's weight.
        phrase: BM25 of its best phrase, likewise.
        alike: likeness of the question and the nearest of its phrases, from 0 to 1.
        alike_mean: the same, mean of the three nearest.
        same: 2 if the question is one of its own, 1 if it is but for words that say nothing.
        titled: likeness of the question and its title.
        grounded: share of the question that title, names and phrases meet, from 0 to 1.
        covered: share of the question that any of its text meets.
        coded: 1 if the question gives its number (an Xid, a field, a bit of a mask).
        named: 1 if the question holds a name of it, shared among all that are named.
        cued: 1 if the question asks for its sort of entry.
        foreign: 1 for an entry on AMD where nobody spoke of AMD.
        missing: subjects of the question that it never speaks of.
        met: subjects of the question that it is about.
        surveys: 1 if the question is about several things and so is the entry.
        prior: what its concern adds.
    """

    body: float
    phrase: float
    alike: float
    alike_mean: float
    same: float
    titled: float
    grounded: float
    covered: float
    coded: float
    named: float
    cued: float
    foreign: float
    missing: float
    met: float
    surveys: float
    prior: float

    @property
    def score(self) -> float:
        """The score, about 1 for a question that is one of the entry's own."""
        total = sum(weight * float(getattr(self, name)) for name, weight in WEIGHTS.items())
        return max(0.0, (total + self.prior) / FULL)


def prior(concern: str, has_commands: bool) -> float:
    """Return what an entry's concern adds to its score."""
    stub = STUB if concern == "taxonomy" and not has_commands else 0.0
    return PRIORS.get(concern, 0.0) + stub


class Scale:
    """How much each term says: inverse document frequency, as in BM25.

    Args:
        counts: in how many documents each term stands.
        total: how many documents there are.
    """

    def __init__(self, counts: Mapping[str, int], total: int) -> None:
        self._idf = {t: log(1 + (total - n + 0.5) / (n + 0.5)) for t, n in counts.items()}
        self._unknown = max(self._idf.values(), default=1.0)

    def of_term(self, term: str) -> float:
        """Return what a term says; 0 for a synonym's canonical term, which stands for a word."""
        return 0.0 if term.startswith("~") else self._idf.get(term, 0.0)

    def of_terms(self, terms: Iterable[str]) -> float:
        """Return what terms say together, added up in one order."""
        return sum(self.of_term(term) for term in sorted(terms))

    def of_word(self, word: Word) -> float:
        """Return what a word says: as much as its rarest term, or as an unknown one."""
        known = [self._idf[term] for term in word.exact if term in self._idf]
        says = max(known, default=self._unknown)
        return says * IDENTIFIER if _IDENTIFIER.search(word.text) else says


@dataclass(frozen=True, slots=True)
class Question:
    """A question: its words with what each says, all together, and every term that meets one."""

    words: tuple[tuple[Word, float], ...]
    weight: float
    terms: frozenset[str]
    scale: Scale

    @classmethod
    def of(cls, words: Iterable[Word], scale: Scale) -> Question:
        """Weigh a question."""
        weighed = tuple((word, scale.of_word(word)) for word in words)
        terms = frozenset(t for word, _ in weighed for t in (*word.exact, *word.alike))
        return cls(weighed, sum(weight for _, weight in weighed), terms, scale)

    def share_met(self, terms: AbstractSet[str]) -> float:
        """Return the share of the question that terms meet, from 0 to 1."""
        return sum(weight * _met(word, terms) for word, weight in self.words) / self.weight

    def likeness(self, phrase: AbstractSet[str], whole: float) -> float:
        """Return how like a phrase it is, from 0 to 1: F of recall and precision.

        Args:
            phrase: terms of the phrase.
            whole: what they say together (`Scale.of_terms`).
        """
        shared = self.scale.of_terms(phrase & self.terms)
        if not shared:
            return 0.0
        recall = self.share_met(phrase)
        if not recall:
            return 0.0
        precision = min(1.0, shared / whole)
        return (1 + BETA**2) * recall * precision / (BETA**2 * precision + recall)


def _met(word: Word, terms: AbstractSet[str]) -> float:
    """Return how far terms meet a word, from 0 to 1."""
    if word.exact[0] in terms:
        return 1.0
    by_parts = sum(term in terms for term in word.exact[1:]) / max(1, len(word.exact) - 1)
    by_synonym = ALIKE if any(term in terms for term in word.alike) else 0.0
    return max(PARTS * by_parts, by_synonym)
