"""Marks for the engine on the suite of scenarios: what was said first, and whether it was right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from engine.diagnosis import Engine
from engine.errors import GpuwhyError
from engine.model import Diagnosis, Evidence, Kind, Verdict, Why
from engine.simulate.scenarios import Run, Scenario
from tests.support.memory import MemorySource

NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Mark:
    """How one run was answered.

    Attributes:
        scenario: what was asked.
        severity: of the fault, as a word.
        seed: of the run.
        said: causes in the order of the answer; without any, benign and blind ones.
        confidence: the word that came with the first diagnosis; None if there was none.
        right: the first cause is an accepted one; for a healthy scenario: no diagnosis, and the
            verdict is healthy or idle.
        alarm: a diagnosis was made though nothing is wrong.
        blamed: the culprit is named by the first diagnosis; None where there is none to name.
        verdict: the one word, or ``error`` with the message in ``error``.
        error: why there was no answer; empty if there was one.
    """

    scenario: Scenario
    severity: str
    seed: int
    said: tuple[str, ...]
    confidence: str | None
    right: bool
    alarm: bool
    blamed: bool | None
    verdict: str
    error: str = ""

    @property
    def truth(self) -> str:
        """The cause to be named; `NOTHING` for a healthy scenario."""
        return self.scenario.causes[0] if self.scenario.causes else NOTHING

    @property
    def answer(self) -> str:
        """The cause named first, as its accepted twin where it is one; `NOTHING` if none."""
        if self.right:
            return self.truth
        return "error" if self.error else (self.said[0] if self.confidence else NOTHING)

    @property
    def in_three(self) -> bool:
        """Whether an accepted cause is among the first three."""
        return self.right or bool(set(self.said[:3]) & set(self.scenario.causes))


async def ask(engine: Engine, run: Run) -> Why:
    """Ask about a run's target, at its moment, with its window.

    Raises:
        GpuwhyError: the engine does not answer.
    """
    wanted = run.scenario
    source = MemorySource(run.series, now=run.at)
    return await engine.why(wanted.target, source, at=run.at, window_s=wanted.window_s)


async def examine(engine: Engine, run: Run) -> Mark:
    """Ask about one run and mark the answer."""
    wanted = run.scenario
    try:
        answer = await ask(engine, run)
    except GpuwhyError as e:
        return _none(run, e.one_line())
    except Exception as e:  # noqa: BLE001 - a crash is a wrong answer to this one question
        return _none(run, f"crash: {type(e).__name__}: {e}")
    said = tuple(one.cause for one in answer.diagnoses)
    quiet = (
        *(one.cause for one in answer.notes),
        *(one.cause for one in answer.unknown),
    )
    if wanted.causes:
        # Benign and blind causes are no diagnoses: they are right only where nothing else is said.
        right = said[0] in wanted.causes if said else bool(set(quiet) & set(wanted.causes))
    else:
        right = not said and answer.verdict in {Verdict.HEALTHY, Verdict.IDLE}
    first = answer.diagnoses[0] if answer.diagnoses else None
    blamed = None
    if wanted.culprit is not None and right and first is not None:
        blamed = _names(first, wanted.culprit)
    return Mark(
        wanted, run.severity.value, run.seed, said or quiet,
        first.confidence.value if first else None, right=right,
        alarm=bool(said) and not wanted.causes, blamed=blamed, verdict=answer.verdict.value,
    )  # fmt: skip


def _none(run: Run, error: str) -> Mark:
    return Mark(run.scenario, run.severity.value, run.seed, (), None, right=False, alarm=False,
                blamed=None, verdict="error", error=error)  # fmt: skip


async def false_alarms(engine: Engine, run: Run) -> tuple[int, float]:
    """Sweep a healthy run: return the incidents found, and the GPU-hours looked at."""
    source = MemorySource(run.series, now=run.at)
    window_s = run.scenario.window_s
    found = await engine.sweep(source, at=run.at, window_s=window_s)
    return len(found.incidents), found.checked.get(Kind.GPU.value, 0) * window_s / 3600.0


def _names(first: Diagnosis, culprit: str) -> bool:
    evidence: Sequence[Evidence] = (*first.evidence, *first.against)
    return (
        first.entity.name == culprit
        or culprit in first.says
        or any(one.entity.name == culprit for one in evidence)
    )


@dataclass(frozen=True, slots=True)
class Score:
    """Precision, recall and F1 of one cause, 0 to 1, and how often it was the right answer."""

    cause: str
    precision: float
    recall: float
    asked: int

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        both = self.precision + self.recall
        return 2.0 * self.precision * self.recall / both if both else 0.0


def scores(marks: Iterable[Mark]) -> list[Score]:
    """Return the score of every cause that a scenario has, by name."""
    pairs = Counter((mark.truth, mark.answer) for mark in marks)
    out = []
    for cause in sorted({truth for truth, _ in pairs} - {NOTHING}):
        hit = pairs[cause, cause]
        named = sum(n for (_, answer), n in pairs.items() if answer == cause)
        asked = sum(n for (truth, _), n in pairs.items() if truth == cause)
        out.append(Score(cause, hit / named if named else 0.0, hit / asked, asked))
    return out


def confusions(marks: Iterable[Mark]) -> list[tuple[str, str, int]]:
    """Return (right cause, cause named instead, how often), the most frequent first."""
    pairs = Counter((mark.truth, mark.answer) for mark in marks if not mark.right)
    return sorted(((t, a, n) for (t, a), n in pairs.items()), key=lambda p: (-p[2], p[0], p[1]))


def by_confidence(marks: Iterable[Mark]) -> dict[str, tuple[int, int]]:
    """Return, for each confidence word, how often it was right and how often it was said."""
    said: Counter[str] = Counter()
    right: Counter[str] = Counter()
    for mark in marks:
        if mark.confidence is not None:
            said[mark.confidence] += 1
            right[mark.confidence] += mark.right
    return {word: (right[word], said[word]) for word in ("certain", "likely", "possible")}
