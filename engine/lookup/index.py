"""Retrieval over the knowledge base: BM25 over whole entries and over each question they answer.

BM25 (Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond, 2009) comes
from bm25s, stems from PyStemmer, and what is misspelt is corrected with rapidfuzz against the words
of the knowledge base. BM25 chooses the candidates; `engine.lookup.scoring` ranks them by what a
question covers of an entry and by how alike it is to one of the questions that the entry answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise

import bm25s
import numpy as np
import numpy.typing as npt
from rapidfuzz import process
from rapidfuzz.distance import OSA

from engine.lookup import scoring
from engine.lookup.analysis import Analyser, Word, stem
from engine.lookup.card import Card
from engine.lookup.corpus import cached, phrases_of
from engine.lookup.named import Names

Floats = npt.NDArray[np.float32]
Boost = Callable[[Card], float]

CANDIDATES = 40
PHRASES = 3
_SHORTEST_CORRECTED = 5
_LONG_WORD = 8
# A word that stands in so many places is no slip.
_OFTEN = 12
# Where numbers are compared, an entry about the comparison comes before those about each.
_COMPARED = 0.2
# What a question says that is one of an entry's own, though none of its words says anything.
_WHOLE = 100.0


# A question for several things at once, or for what tells them apart.
_SURVEY = re.compile(
    r"\b(?:which|what)\s+(?:\w+\s+){0,2}\w{3,}s\b|\bvs\b|\bversus\b|\bdifferen\w+|\bcompar\w+"
    r"|\boverview\b|\blist\b|\ball\b|\beach\b|\bor\b|\bsummary\b|\bcheat ?sheet\b|\btable\b",
    re.IGNORECASE,
)
_SURVEYS = re.compile(r"overview|at_a_glance|essential|key_fields|throttle_mask|common_xids")


@dataclass(frozen=True, slots=True)
class Hit:
    """An entry that a question may mean: its score, about 0 to 1, and what the score is made of.

    ``weight`` is how much the question says at all: the sum of the inverse document frequencies of
    its words.
    """

    card: Card
    score: float
    measures: scoring.Measures
    weight: float


class Index:
    """A searchable index of cards.

    Args:
        cards: the entries.
        synonyms: canonical term to the words that mean it.
        subjects: canonical terms that are what a question is about.
        cues: concern to phrases that ask for its sort of entry.
        key: names the content, for the cache; nothing: none is used.
    """

    def __init__(
        self,
        cards: Iterable[Card],
        synonyms: Mapping[str, Iterable[str]],
        subjects: Iterable[str] = (),
        cues: Mapping[str, Iterable[str]] | None = None,
        *,
        key: str = "",
    ) -> None:
        self.cards = tuple(cards)
        self._analyser = Analyser(synonyms)
        self._subjects = frozenset(f"~{subject}" for subject in subjects)
        self._cues = {
            concern: [self._cue(phrase) for phrase in phrases]
            for concern, phrases in (cues or {}).items()
        }
        self._names = Names(self.cards)
        corpus = cached(key, self.cards, self._analyser)
        self._by_body, self._by_phrase = corpus.by_body, corpus.by_phrase
        self._heads = [frozenset(head) for head in corpus.heads]
        self._bodies = [frozenset(body) for body in corpus.bodies]
        self._phrases = [phrase for own in corpus.phrases for phrase in own]
        ends = np.cumsum([0, *map(len, corpus.phrases)])
        self._spans = [(int(first), int(last)) for first, last in pairwise(ends)]
        self._owners = np.repeat(np.arange(len(self.cards)), np.diff(ends))
        self._subjectless = {
            " ".join(self._analyser.words(text)): number
            for number, (card, own) in enumerate(zip(self.cards, corpus.phrases, strict=True))
            for text, terms in zip(phrases_of(card), own, strict=True)
            if not terms and self._analyser.words(text)
        }
        self._scale = scoring.Scale(corpus.counts, len(self._bodies) + len(self._phrases))
        self._phrase_terms: dict[int, tuple[frozenset[str], float]] = {}
        self._by_letter: dict[str, list[str]] = {}
        for word in corpus.words:
            self._by_letter.setdefault(word[0], []).append(word)
        often = (term for term, count in corpus.counts.items() if count >= _OFTEN)
        self._known = frozenset((*map(stem, corpus.words), *often))

    def search(
        self, question: str, count: int = 10, *, boost: Boost | None = None
    ) -> tuple[Hit, ...]:
        """Return the entries that a question may mean, best first; ties go by key.

        Args:
            question: the question.
            count: at most so many hits.
            boost: factor for an entry's score (1 leaves it), for what retrieval cannot know.
        """
        words = self.words(question)
        if not words:
            return self._verbatim(question)
        asked = scoring.Question.of(words, self._scale)
        bodies = _scores(self._by_body, asked.terms, len(self.cards)) / asked.weight
        by_phrase = _scores(self._by_phrase, asked.terms, len(self._owners)) / asked.weight
        phrases = np.zeros(len(self.cards), dtype=np.float32)
        np.maximum.at(phrases, self._owners, by_phrase)
        rough = bodies + phrases
        best = [int(n) for n in np.argsort(-rough, kind="stable")[:CANDIDATES] if rough[n] > 0]
        coded = self._names.codes(self._spelled(question))
        named = self._names.identifiers(question)
        best += sorted((named | coded).difference(best))
        cued = {c for c, cues in self._cues.items() if any(cue <= asked.terms for cue in cues)}
        surveyed = bool(_SURVEY.search(question))
        typed = self._analyser.words(question)
        compares = "~compare" in asked.terms and len(coded) > 1
        hits = []
        for number in best:
            card = self.cards[number]
            first, last = self._spans[number]
            order = np.argsort(-by_phrase[first:last], kind="stable")[:PHRASES]
            alike = [self._likeness(asked, first + int(n)) for n in order]
            foreign = card.vendor == "amd" and "~amd" not in asked.terms
            subjects = asked.terms & self._subjects
            absent = subjects - self._heads[number]
            measures = scoring.Measures(
                body=float(bodies[number]),
                phrase=float(phrases[number]),
                alike=max(alike),
                alike_mean=sum(sorted(alike)) / PHRASES,
                same=0 if foreign else self._same(typed, card, max(alike)),
                titled=self._likeness(asked, first),
                grounded=asked.share_met(self._heads[number]),
                covered=asked.share_met(self._bodies[number]),
                coded=(number in coded) * (_COMPARED if compares else 1.0),
                named=(number in named) / max(1, len(named)),
                cued=card.concern in cued,
                foreign=foreign,
                missing=len(absent - self._bodies[number]),
                met=len(subjects) - len(absent),
                surveys=surveyed and is_survey(card),
                prior=scoring.prior(card.concern, bool(card.commands)),
            )
            score = measures.score * (boost(card) if boost else 1.0)
            hits.append(Hit(card, score, measures, asked.weight))
        # What is given by its number is meant, all of it, before anything that only fits.
        hits.sort(key=lambda hit: (hit.measures.coded < 1, -hit.score, hit.card.key))
        return tuple(hits[:count])

    def _same(self, typed: Sequence[str], card: Card, alike: float) -> int:
        """Return 2 for a question that an entry was written for, word for word; 1 for nearly so."""
        if alike < scoring.SAME or card.concern in scoring.PRIORS:
            return 0
        verbatim = any(self._analyser.words(phrase) == typed for phrase in phrases_of(card))
        return 2 if verbatim else 1

    def _likeness(self, asked: scoring.Question, number: int) -> float:
        """Return how like a phrase a question is; what is made of the phrase is kept."""
        found = self._phrase_terms.get(number)
        if found is None:
            terms = frozenset(self._phrases[number])
            found = self._phrase_terms[number] = (terms, self._scale.of_terms(terms))
        return asked.likeness(*found)

    def _verbatim(self, question: str) -> tuple[Hit, ...]:
        """Return the entry that answers a question without a subject, word for word."""
        number = self._subjectless.get(" ".join(self._analyser.words(question)))
        if number is None:
            return ()
        nothing = dict.fromkeys((field.name for field in fields(scoring.Measures)), 0.0)
        measures = scoring.Measures(**nothing | {"alike": 1.0, "grounded": 1.0, "covered": 1.0})
        return (Hit(self.cards[number], 1.0, measures, weight=_WHOLE),)

    def words(self, question: str) -> list[Word]:
        """Return the words of a question that carry a subject.

        What a misspelt word may have meant is added to what is like it.
        """
        typed = self._analyser.words(question)
        found = self._analyser.analyse(typed)
        meant = {word: other for word in set(typed) if (other := self._corrected(word))}
        if not meant:
            return found
        corrected = self._analyser.analyse([meant.get(word, word) for word in typed])
        by_text = {word.text: (*word.exact, *word.alike) for word in corrected}
        return [
            replace(word, alike=(*word.alike, *by_text.get(meant[word.text], ())))
            if word.text in meant
            else word
            for word in found
        ]

    def _cue(self, phrase: str) -> frozenset[str]:
        """Return the terms that have to be in a question: a word's synonym if it has one."""
        words = self._analyser.analyse(self._analyser.words(phrase))
        return frozenset(
            next((term for term in word.alike if term.startswith("~")), word.exact[0])
            for word in words
        )

    def _spelled(self, question: str) -> str:
        """Return a question in plain words, misspelt ones put right."""
        return " ".join(self._corrected(word) or word for word in self._analyser.words(question))

    def _corrected(self, word: str) -> str:
        """Return the word of the knowledge base that a misspelt one means, or nothing.

        Slips seldom change the first letter; a short word differs from too many others.
        """
        if not word.isalpha() or len(word) < _SHORTEST_CORRECTED or stem(word) in self._known:
            return ""
        slips = 2 if len(word) >= _LONG_WORD else 1
        near = self._by_letter.get(word[0], ())
        found = process.extractOne(
            word, near, scorer=OSA.distance, score_cutoff=slips, processor=None
        )
        return str(found[0]) if found else ""


def is_survey(card: Card) -> bool:
    """Return whether an entry goes over several things, rather than into one."""
    return card.kind == "comparison" or bool(_SURVEYS.search(card.key))


def _scores(index: bm25s.BM25, terms: Iterable[str], documents: int) -> Floats:
    """Return the BM25 scores of all documents; bm25s refuses a query without any known term."""
    known = sorted(term for term in terms if term in index.vocab_dict)
    return index.get_scores(known) if known else np.zeros(documents, dtype=np.float32)
