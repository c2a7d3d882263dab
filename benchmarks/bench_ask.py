"""``ask``: how often the right entry comes first, beside other libraries, and how long it takes.

The questions were written by people who had not seen how entries are found; ``blind`` by readers of
two common hand-outs who knew nothing of the knowledge base; ``short`` are those of people who are
new, for which many entries were written afterwards. The peers search the same text: Tantivy
(BM25 of its own) all of it, rapidfuzz the titles and questions of the entries.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tantivy
import yaml
from rapidfuzz import fuzz, process

from benchmarks.harness import Row, ms
from engine.catalogue import load_catalogue
from engine.lookup.ask import Library
from engine.lookup.card import Card

FOLDER = Path(__file__).parent.parent / "tests" / "data" / "questions"
TARGETS = {"blind": (0.90, None), "own": (0.95, 0.99), "short": (0.95, 0.98)}
TARGET_S = 0.005
Search = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the entries that answer it."""

    text: str
    entries: frozenset[str]
    after: str | None


def rows() -> list[Row]:
    """Measure accuracy on each set, the peers on the same, and the median time."""
    library = Library(load_catalogue())
    sets = {name: questions(name) for name in TARGETS}
    peers = {"tantivy": _tantivy(library.index.cards), "rapidfuzz": _fuzzy(library.index.cards)}
    found: list[Row] = []
    for name, asked in sets.items():
        first, third = TARGETS[name]
        one, three, times = _ours(library, asked)
        beside = {peer: _accuracy(search, asked) for peer, search in peers.items()}
        found += [
            Row(
                f"ask, {len(asked)} questions ({name}), right first",
                f"{one:.1%}",
                ", ".join(f"{peer} {score[0]:.1%}" for peer, score in beside.items()),
                f"{one / max(score[0] for score in beside.values()):.2f} x",
                f">= {first:.0%}",
                one >= first,
            ),
            Row(
                "  in the first three",
                f"{three:.1%}",
                ", ".join(f"{peer} {score[1]:.1%}" for peer, score in beside.items()),
                f"{three / max(score[1] for score in beside.values()):.2f} x",
                f">= {third:.0%}" if third else "",
                three >= (third or 0.0),
            ),
            Row(
                "  median time, warm",
                ms(statistics.median(times)),
                "",
                "",
                "< 5 ms",
                statistics.median(times) < TARGET_S,
            ),
        ]
    return found


def questions(name: str) -> list[Asked]:
    """Return the questions of the files whose names begin so."""
    loaded: list[dict[str, Any]] = []
    for path in sorted(FOLDER.glob(f"{name}*.yaml")):
        loaded += yaml.safe_load(path.read_text("utf-8"))["questions"]
    return [Asked(q["q"], frozenset(q["entries"]), q.get("after")) for q in loaded]


def _ours(library: Library, asked: Sequence[Asked]) -> tuple[float, float, list[float]]:
    first = third = 0
    times = []
    for question in asked:
        began = time.perf_counter()
        answers = library.ask(question.text, after=question.after).answers
        times.append(time.perf_counter() - began)
        keys = [answer.id for answer in answers]
        first += bool(keys) and keys[0] in question.entries
        third += bool(question.entries & set(keys))
    return first / len(asked), third / len(asked), times


def _accuracy(search: Search, asked: Sequence[Asked]) -> tuple[float, float]:
    found = [(search(one.text), one.entries) for one in asked]
    first = sum(bool(keys) and keys[0] in entries for keys, entries in found)
    third = sum(bool(entries & set(keys[:3])) for keys, entries in found)
    return first / len(asked), third / len(asked)


def _tantivy(cards: Sequence[Card]) -> Search:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("key", stored=True, tokenizer_name="raw")
    builder.add_text_field("asked", tokenizer_name="en_stem")
    builder.add_text_field("text", tokenizer_name="en_stem")
    index = tantivy.Index(builder.build())
    writer = index.writer()
    for card in cards:
        asked = "\n".join((card.title, *card.names, *card.asked))
        writer.add_document(tantivy.Document(key=card.key, asked=asked, text=card.text))
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def search(text: str) -> list[str]:
        query, _ = index.parse_query_lenient(text, ["asked", "text"])
        hits = searcher.search(query, 3).hits
        return [str(searcher.doc(address)["key"][0]) for _, address in hits]

    return search


def _fuzzy(cards: Sequence[Card]) -> Search:
    phrases = [(p.casefold(), c.key) for c in cards for p in (c.title, *c.names, *c.asked)]
    texts = [text for text, _ in phrases]

    def search(text: str) -> list[str]:
        hits = process.extract(text.casefold(), texts, scorer=fuzz.token_set_ratio, limit=12)
        return list(dict.fromkeys(phrases[number][1] for _, _, number in hits))[:3]

    return search
