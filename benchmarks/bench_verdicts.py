"""Verdicts from samples in memory, on one core, with all rules: how many GPUs a second.

Two figures: from a frame (rules only), and from raw series as a source gives them (names, units,
blanks and merging included). Every round has a fresh inference engine, with nothing remembered;
as in the program, the garbage collector neither looks at rules nor runs while GPUs are judged. CPU
time counts, not wall time.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from statistics import median

from benchmarks.fleets import WINDOW_S, batch, one_in_eight_sick
from benchmarks.harness import Row
from engine.catalogue import load_catalogue
from engine.collector import held_off
from engine.diagnosis.judge import Judge, Judgement
from engine.inference import Derived, Inferrer, make_inferrer
from engine.model import Truth, Verdict
from engine.samples import Batch
from engine.signals.normalise import build_frame

NODES, ROUNDS = 64, 5
TARGET_PER_S = 1000.0
STAGES = ("normalise", "observe", "infer", "explain")


class _Clocked(Inferrer):
    """An inference engine that adds up the time spent in it."""

    def __init__(self, inner: Inferrer) -> None:
        self.inner = inner
        self.spent = 0.0

    @property
    def name(self) -> str:
        return self.inner.name

    def infer(self, truths: Mapping[str, Truth]) -> tuple[Derived, ...]:
        began = time.process_time()
        found = self.inner.infer(truths)
        self.spent += time.process_time() - began
        return found


def rows() -> list[Row]:
    """Judge 512 GPUs, one in eight of them sick, a few times."""
    catalogue = load_catalogue()
    judge = Judge(catalogue)
    fleet = one_in_eight_sick(NODES)
    given = batch(fleet)
    count = len(fleet.gpus)
    gc.freeze()
    rounds = []
    for _ in range(ROUNDS):
        gc.collect()
        spent, answers = _round(judge, given)
        rounds.append(spent)
    sick = sum(answer.verdict is Verdict.DEGRADED for answer in answers)
    cost = dict(zip(STAGES, (median(stage) for stage in zip(*rounds, strict=True)), strict=True))
    whole = sum(cost.values())
    rules_only = whole - cost["normalise"]
    per_gpu = ", ".join(f"{name} {1e3 * cost[name] / count:.2f}" for name in STAGES)
    return [
        _row(f"verdicts of {count} GPUs ({sick} sick), rules", count / rules_only),
        _row(f"  from {len(given.series)} raw series", count / whole),
        Row("  where the time goes, ms a GPU", per_gpu),
    ]


def _round(judge: Judge, given: Batch) -> tuple[tuple[float, ...], list[Judgement]]:
    """Judge all GPUs once; return the CPU time of each stage (s) and the answers."""
    judge.inferrer = _Clocked(make_inferrer(judge.causes))
    began = time.process_time()
    frame = build_frame(given, judge.catalogue, at=given.at, window_s=WINDOW_S).frame
    framed = time.process_time()
    seen = judge.observe(frame)
    states = judge.states(seen)
    observed = time.process_time()
    with held_off():
        answers = [judge.judge(seen, i, states) for i in range(len(frame))]
    judged = time.process_time()
    inferred = judge.inferrer.spent
    return (framed - began, observed - framed, inferred, judged - observed - inferred), answers


def _row(what: str, per_s: float) -> Row:
    return Row(
        what, f"{per_s:.0f} GPUs/s of CPU time", target=f">= {TARGET_PER_S:.0f} GPUs/s",
        difference=f"{per_s / TARGET_PER_S:.1f}x target", met=per_s >= TARGET_PER_S,
    )  # fmt: skip
