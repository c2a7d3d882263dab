"""How often the engine is right: every scenario at three severities and five seeds.

``python -m benchmarks accuracy`` prints the figures beside the others; ``python -m
benchmarks.bench_accuracy`` prints all of them: every cause, every confusion, every miss, and with
``--scenario ID --severity WORD --seed N --show`` one run with its readings and its answer.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.exam import (
    Mark,
    Score,
    ask,
    by_confidence,
    confusions,
    examine,
    false_alarms,
    scores,
)
from benchmarks.harness import Row, table
from engine.catalogue import load_catalogue
from engine.diagnosis import Engine
from engine.errors import GpuwhyError
from engine.simulate.scenarios import Run, Scenario, Severity, realise
from engine.simulate.scenarios.registry import SCENARIOS

SEEDS = range(5)
_TOP_1, _F1 = 0.95, 0.95
_MISSES_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Results:
    """All marks, and what sweeps of the healthy runs found: incidents, and GPU-hours looked at."""

    marks: list[Mark]
    incidents: int
    gpu_hours: float

    def share(self, flags: Iterable[bool]) -> float:
        """Return the share of flags that are set; 0 without any."""
        seen = list(flags)
        return sum(seen) / len(seen) if seen else 0.0

    @property
    def faults(self) -> list[Mark]:
        """Marks of scenarios in which something is to be named."""
        return [mark for mark in self.marks if mark.scenario.causes]

    @property
    def healthy(self) -> list[Mark]:
        """Marks of scenarios in which nothing is wrong."""
        return [mark for mark in self.marks if not mark.scenario.causes]

    @property
    def macro_f1(self) -> float:
        """Mean F1 over causes."""
        every = [score.f1 for score in scores(self.marks)]
        return sum(every) / len(every) if every else 0.0


async def run_all(
    chosen: Sequence[Scenario], severities: Sequence[Severity], seeds: Sequence[int]
) -> Results:
    """Examine all runs of some scenarios."""
    engine = Engine(load_catalogue())
    marks: list[Mark] = []
    incidents, hours = 0, 0.0
    for scenario in chosen:
        for severity in severities:
            for seed in seeds:
                run = realise(scenario, severity, seed)
                marks.append(await examine(engine, run))
                if not scenario.causes:
                    found, looked = await false_alarms(engine, run)
                    incidents, hours = incidents + found, hours + looked
    return Results(marks, incidents, hours)


def rows() -> list[Row]:
    """Examine the whole suite."""
    results = asyncio.run(run_all(list(SCENARIOS.values()), list(Severity), list(SEEDS)))
    return [*_summary(results), *_causes(score for score in scores(results.marks) if score.f1 < 1)]


def _summary(results: Results) -> list[Row]:
    faults, healthy = results.faults, results.healthy
    top_1 = results.share(mark.right for mark in faults)
    blamed = [mark.blamed for mark in faults if mark.blamed is not None]
    rate = 1000.0 * results.incidents / results.gpu_hours if results.gpu_hours else 0.0
    alarms = sum(mark.alarm for mark in healthy)
    out = [
        Row(f"accuracy: first cause right, {len(faults)} faulty runs", f"{top_1:.1%}",
            target=f">= {_TOP_1:.0%}", met=top_1 >= _TOP_1),
        Row("  among the first three", f"{results.share(mark.in_three for mark in faults):.1%}"),
        Row("  culprit named where there is one", f"{results.share(blamed):.1%}"),
        Row("  F1, mean over causes", f"{results.macro_f1:.3f}", target=f">= {_F1}",
            met=results.macro_f1 >= _F1),
        Row(f"  false faults in {len(healthy)} healthy runs", str(alarms), target="0",
            met=not alarms),
        Row("  healthy runs called healthy or idle",
            f"{results.share(mark.right for mark in healthy):.1%}"),
        Row("  false alarms per 1,000 healthy GPU-hours (sweep)", f"{rate:.1f}",
            f"{results.gpu_hours:.0f} GPU-hours", target="0", met=not results.incidents),
    ]  # fmt: skip
    for word, (right, said) in by_confidence(results.marks).items():
        out.append(Row(f"  right when it said {word}", f"{right} of {said}"))
    for truth, answer, count in confusions(results.marks)[:_MISSES_SHOWN]:
        out.append(Row(f"  instead of {truth}", answer, f"{count} times"))
    return out


def _causes(every: Iterable[Score]) -> list[Row]:
    return [
        Row(f"  {one.cause}", f"F1 {one.f1:.2f}",
            f"precision {one.precision:.2f}, recall {one.recall:.2f}", f"{one.asked} runs")
        for one in every
    ]  # fmt: skip


def _report(results: Results) -> None:
    print(table([*_summary(results), *_causes(scores(results.marks))]), "\n\nconfusions")
    for truth, answer, count in confusions(results.marks):
        print(f"  {count:4d}  {truth} -> {answer}")
    print("\nmisses")
    for name in sorted({mark.scenario.id for mark in results.marks if not mark.right}):
        own = [mark for mark in results.marks if mark.scenario.id == name]
        wrong = Counter(
            mark.error or f"{mark.severity}: {mark.answer} ({mark.verdict})"
            for mark in own
            if not mark.right
        )
        texts = "; ".join(f"{text} x{n}" for text, n in sorted(wrong.items()))
        print(f"  {name} ({sum(mark.right for mark in own)} of {len(own)} right): {texts}")


def _show(run: Run) -> None:
    """Print the readings of a run in short, then the answer."""
    print(f"{run.scenario.id}: {run.scenario.title}; accepted: {run.scenario.causes or 'nothing'}")
    names = sorted({one.name for one in run.series})
    for name in names:
        own = [one for one in run.series if one.name == name]
        least = min(float(one.values.min()) for one in own)
        most = max(float(one.values.max()) for one in own)
        print(f"  {name}: {len(own)} series, {least:g} to {most:g}")
    try:
        answer = asyncio.run(ask(Engine(load_catalogue()), run))
    except GpuwhyError as e:
        print(f"no answer: {e.one_line()}")
        return
    print(f"{run.scenario.target}: {answer.verdict.value}")
    for word, found in (("cause", answer.diagnoses), ("note", answer.notes)):
        for one in found:
            print(f"  {word} {one.cause} ({one.confidence.value}), {one.entity.name}: {one.says}")
    for lack in answer.unknown:
        print(f"  unknown {lack.cause}: {lack.needs}, {lack.why}")


def main() -> None:
    """Examine what the command line names, and print everything."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_accuracy")
    parser.add_argument("--scenario", help="id, or a part of ids", default="")
    parser.add_argument("--severity", choices=[one.value for one in Severity])
    parser.add_argument("--seed", type=int)
    parser.add_argument("--show", action="store_true", help="readings and answer of one run")
    given = parser.parse_args()
    exact = SCENARIOS.get(given.scenario)
    chosen = [exact] if exact else [s for k, s in SCENARIOS.items() if given.scenario in k]
    if not chosen:
        parser.error(f"no scenario has {given.scenario!r} in its id")
    severities = [Severity(given.severity)] if given.severity else list(Severity)
    seeds = list(SEEDS) if given.seed is None else [given.seed]
    if given.show:
        for scenario in chosen:
            _show(realise(scenario, severities[0], seeds[0]))
        return
    print(f"{len(chosen)} scenarios", file=sys.stderr)
    _report(asyncio.run(run_all(chosen, severities, seeds)))


if __name__ == "__main__":
    main()
