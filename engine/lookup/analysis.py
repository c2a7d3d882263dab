"""From text to search terms: words, identifiers and their parts, synonyms, stems.

Questions and entries go through the same steps, so that ``all-reduce``, ``AllReduce`` and
``all reduce`` meet, ``DCGM_FI_PROF_SM_ACTIVE`` is found by ``sm active``, and ``--duration`` by
``duration``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import Stemmer

_WORD = re.compile(r"--?[a-z][\w-]*|[a-z0-9]+(?:[_:./\-+][a-z0-9]+)*|%", re.ASCII)
_PART = re.compile(r"[a-z0-9]+", re.ASCII)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SPLIT_DIGITS = re.compile(r"^([a-z]{2,})([0-9]+)$")
# Curly quotes and long dashes, as clients make of what is typed.
_TYPOGRAPHY = str.maketrans({0x2018: "'", 0x2019: "'", 0x2013: "-", 0x2014: "-"})
_LONGEST_PHRASE = 4
_SHORT_PAIR = 5


def word_list(*lines: str) -> frozenset[str]:
    """Return the words of some lines."""
    return frozenset(" ".join(lines).split())


# Words that carry no subject. Question words stay out too: every entry answers some "how".
_STOP = word_list(
    "doesn didn isn aren wasn won wouldn couldn shouldn hasn haven hadn don",
    "work works working worked",
    "a about after again all already also am an and any are as at be because been before",
    "being but by can cannot could did do does doing don done for from get gets getting give",
    "given go goes going got had has have having he help her here hers him his how however i",
    "if in into is it its itself just let lets like ll look make may me mean means meant",
    "might mine more most much must my need needs no not now of off ok on one only or other",
    "our out over own please put re really s same say see seems shall she should show shows",
    "so some somehow something still such t take tell than thanks that the their them then",
    "there these they thing things this those to too try trying up us use used using ve very",
    "want was way we well were what whats when where which while who whose why will with",
    "within without would yes yet you your",
)

_stemmer = Stemmer.Stemmer("english")


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Return the stem of an English word; identifiers and words with digits stay as they are."""
    return _stemmer.stemWord(word) if word.isalpha() else word


def fold(text: str) -> str:
    """Return text in lower case with compatibility characters, quotes and dashes made plain."""
    text = unicodedata.normalize("NFKC", text).translate(_TYPOGRAPHY)
    return _CAMEL.sub(" ", text.replace("AllReduce", "allreduce")).casefold()


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a question: it is met by one of ``exact``, or else by one of ``alike``."""

    text: str
    exact: tuple[str, ...]
    alike: tuple[str, ...] = ()


_STOP_STEMS = frozenset(stem(word) for word in _STOP)


class Analyser:
    """Turns text into terms, with a table of synonyms.

    Args:
        synonyms: canonical term to the words and phrases that mean it. A phrase adds its canonical
            term to those of its words; nothing is taken away, so that the exact word ranks first.
    """

    def __init__(self, synonyms: Mapping[str, Iterable[str]] | None = None) -> None:
        self._phrases: dict[tuple[str, ...], list[str]] = {}
        for canonical, phrases in (synonyms or {}).items():
            for phrase in phrases:
                key = tuple(stem(part) for part in _PART.findall(fold(phrase)))
                if key:
                    self._phrases.setdefault(key, []).append(f"~{canonical}")

    @staticmethod
    def words(text: str) -> list[str]:
        """Return the plain words of a text in order, identifiers whole."""
        return [match.strip("-") or "%" for match in _WORD.findall(fold(text))]

    def terms(self, text: str) -> list[str]:
        """Return the search terms of a text."""
        words = self.words(text)
        parts = [stem(part) for word in words for part in _PART.findall(word)]
        exact = [term for word in words for term in _word_terms(word)]
        return [*exact, *(c for _, _, c in self._synonyms(parts)), *_joined(parts)]

    def analyse(self, words: Sequence[str]) -> list[Word]:
        """Return the words of a question that carry a subject, each with what meets it."""
        parts: list[str] = []
        owner: list[int] = []
        for number, word in enumerate(words):
            for part in _PART.findall(word):
                parts.append(stem(part))
                owner.append(number)
        alike: dict[int, list[str]] = {}
        for start, length, canonical in self._synonyms(parts):
            for number in dict.fromkeys(owner[start : start + length]):
                alike.setdefault(number, []).append(canonical)
        for at in range(len(parts) - 1):
            for joined in _joined(parts[at : at + 2]):
                for number in dict.fromkeys(owner[at : at + 2]):
                    alike.setdefault(number, []).append(joined)
        return [
            Word(word, tuple(exact), tuple(alike.get(number, ())))
            for number, word in enumerate(words)
            if (exact := _word_terms(word))
        ]

    def _synonyms(self, parts: Sequence[str]) -> Iterator[tuple[int, int, str]]:
        """Yield where a phrase of the table stands, how long it is, and its canonical term."""
        for start in range(len(parts)):
            for length in range(1, _LONGEST_PHRASE + 1):
                key = tuple(parts[start : start + length])
                if len(key) == length:
                    for canonical in self._phrases.get(key, ()):
                        yield start, length, canonical


def _word_terms(word: str) -> list[str]:
    parts = _PART.findall(word)
    if len(parts) == 1 and word == parts[0]:
        if word in _STOP or (len(word) == 1 and not word.isdigit()):
            return []
        split = _SPLIT_DIGITS.match(word)
        return [stem(word), *((stem(split[1]), split[2]) if split else ())]
    kept = [stem(part) for part in parts if part not in _STOP]
    return [word, *kept] if len(parts) > 1 else kept


def _joined(stems: Sequence[str]) -> Iterator[str]:
    """Yield neighbours written as one: ``all reduce`` is also ``allreduc``."""
    for one, two in pairwise(stems):
        plain = one.isalpha() and two.isalpha() and len(one) + len(two) > _SHORT_PAIR
        if plain and not {one, two} & _STOP_STEMS:
            yield stem(one + two)
