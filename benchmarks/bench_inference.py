"""Inference for one sick GPU with the real rules, beside the plain-Python evaluator.

Every question has other facts than all before, so no answer is remembered.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import partial
from statistics import median, quantiles

from benchmarks.harness import Row, ms, timed
from engine.catalogue import load_catalogue
from engine.catalogue.types import CauseRule
from engine.inference import make_inferrer
from engine.model import Truth

QUESTIONS, MOST_TRUE = 1000, 10
TARGET_S = 0.001
_CAUSE = "cause/"


def questions(causes: Mapping[str, CauseRule], count: int) -> list[dict[str, Truth]]:
    """Return distinct truths: a cause's pattern holds, more symptoms are true, a few unknown."""
    rng = random.Random(0)
    patterns = [pattern for rule in causes.values() for pattern in rule.patterns]
    asked = sorted({ref for p in patterns for ref in p.refs if not ref.startswith(_CAUSE)})
    found: dict[frozenset[tuple[str, Truth]], dict[str, Truth]] = {}
    while len(found) < count:
        pattern = rng.choice(patterns)
        true = {s for s in (*pattern.all, *pattern.any[:1]) if not s.startswith(_CAUSE)}
        others = [s for s in asked if s not in {*true, *pattern.none, *pattern.unless}]
        wanted = rng.randint(min(len(true) + 1, MOST_TRUE), MOST_TRUE)
        true |= set(rng.sample(others, max(0, wanted - len(true))))
        truths = {
            s: Truth.UNKNOWN if rng.random() < 0.1 else Truth.FALSE for s in asked if s not in true
        } | dict.fromkeys(sorted(true), Truth.TRUE)
        found[frozenset(truths.items())] = truths
    return list(found.values())


def rows() -> list[Row]:
    """Ask both evaluators the same questions, in turn."""
    causes = load_catalogue().causes
    ours, plain = make_inferrer(causes), make_inferrer(causes, prefer="reference")
    asked = questions(causes, QUESTIONS)
    times: list[float] = []
    plain_times: list[float] = []
    for truths in asked:
        times.append(timed(partial(ours.infer, truths)))
        plain_times.append(timed(partial(plain.infer, truths)))
        if ours.infer(truths) != plain.infer(truths):
            message = f"{ours.name} and {plain.name} disagree about {truths}"
            raise RuntimeError(message)
    middle, peer = median(times), median(plain_times)
    return [
        Row(
            f"inference, up to {MOST_TRUE} true symptoms ({ours.name})",
            f"{ms(middle)} (99%: {ms(quantiles(times, n=100)[-1])})",
            f"{ms(peer)} ({plain.name})",
            f"{middle / peer:.1f}x",
            "< 1 ms",
            middle < TARGET_S,
        )
    ]
