"""Readings that tools print (temperature, clocks, counters), judged by the rules for metrics.

A reader collects what a listing says with `Readings.add`, in the unit of the signal
(``knowledge/signals``), and `Readings.judge` renders it as exposition text under each signal's
first spelling, has it judged, and returns verdicts, notes and causes. `merge` puts verdicts into a
result, here and for real exporter text.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from engine.catalogue.types import Catalogue, Signal, Spelling
from engine.model import (
    Class,
    Diagnosis,
    Effect,
    Entity,
    Evidence,
    Kind,
    Severity,
    Step,
    Unknown,
    Verdict,
    Why,
)
from engine.readers.base import Diagnose, Result
from engine.readers.ruledout import ruled_out

_SEVERITIES = tuple(Severity)
_CLASSES = tuple(Class)
_AT_WORK = (Verdict.HEALTHY, Verdict.DEGRADED)
# Stands for the host of a listing that does not name it: commands show it as a placeholder.
_HOST = "HOST"
_HOST_WORD = re.compile(rf"\b{_HOST}\b(?!:)")
# How many other entities a folded diagnosis names.
_NAMED = 16
PARTIAL = (
    "Judged by the readings in this text alone, mostly of one moment; what needs others or their "
    "course over time was not checked. Metrics show more: gpuwhy why TARGET."
)


@dataclass(frozen=True, slots=True)
class _Sample:
    value: float
    at: float | None


class Readings:
    """Readings of GPUs and nodes, bounded in number.

    Attributes:
        LIMIT: readings kept; later ones are only counted.
        lines: the first line of each entity's readings, by the entity's name.
        left_out: readings over the limit.
    """

    LIMIT = 65_536

    def __init__(self, catalogue: Catalogue, *, together: bool = False) -> None:
        """Collect readings.

        Args:
            catalogue: knows signals and their spellings.
            together: entities without a host are all of one host, as in one run of a tool; so a
                GPU is compared with its neighbours.
        """
        self._signals = catalogue.signals
        self._together = together
        self._entities: dict[tuple[str, str, str], Entity] = {}
        self._samples: dict[tuple[str, tuple[str, str, str]], list[_Sample]] = {}
        self._kept = 0
        self.lines: dict[str, int] = {}
        self.left_out = 0

    def __bool__(self) -> bool:
        """Return whether there is anything to judge."""
        return bool(self._samples)

    def add(
        self,
        signal: str,
        value: float,
        *,
        entity: Entity,
        line: int | None = None,
        at: float | None = None,
    ) -> None:
        """Add one reading; infinite ones, and those outside the signal's range, are none.

        Args:
            signal: id of the signal.
            value: in the signal's unit.
            entity: a GPU, or a node for the signals of nodes.
            line: where it stands.
            at: when it was taken (s, of any epoch as long as it is the same for all); without it
                a later reading of the same signal replaces an earlier one.

        Raises:
            KeyError: no such signal.
        """
        known = self._signals[signal]
        if not math.isfinite(value) or not known.spellings or _outside(value, known):
            return
        if self._kept >= self.LIMIT:
            self.left_out += 1
            return
        self._entities.setdefault(entity.key, entity)
        if line is not None:
            self.lines.setdefault(entity.name, line)
        samples = self._samples.setdefault((signal, entity.key), [])
        if at is None and samples:
            samples[-1] = _Sample(value, None)
            return
        samples.append(_Sample(value, at))
        self._kept += 1

    def exposition(self) -> bytes:
        """Return the readings as exporter text, grouped by metric, times in seconds."""
        stamps = [s.at for found in self._samples.values() for s in found if s.at is not None]
        newest = max(stamps, default=None)
        labels = {key: self._labels(entity) for key, entity in self._entities.items()}
        rows: dict[str, list[str]] = {}
        for (signal, key), samples in self._samples.items():
            spelling = self._signals[signal].spellings[0]
            head = _head(spelling, labels[key])
            for one in samples:
                at = one.at if one.at is not None else newest
                tail = "" if at is None else f" {at!r}"
                rows.setdefault(spelling.name, []).append(
                    f"{head} {one.value / spelling.scale!r}{tail}"
                )
        return "".join(f"{row}\n" for name in sorted(rows) for row in rows[name]).encode()

    def judge(self, diagnose: Diagnose | None, *, gaps: bool = False) -> Result:
        """Put the readings to the rules; without a judge the result is empty.

        Args:
            diagnose: judges exposition text.
            gaps: report every reading that the rules miss; otherwise one note says that there are
                some.
        """
        result = Result()
        if diagnose is not None and self._samples:
            answers = [self._named(answer) for answer in diagnose(self.exposition())]
            merge(result, answers, gaps=gaps)
            result.diagnoses = _folded(ruled_out(result.diagnoses, self._temperatures()))
            result.notes = _notes(answers, result.notes)
        if self.left_out:
            result.notes.append(
                f"{self.left_out} reading(s) beyond the first {self.LIMIT} were not judged."
            )
        return result

    def _temperatures(self) -> Iterator[tuple[Entity, float]]:
        for (signal, key), samples in self._samples.items():
            if signal == "gpu_temp":
                yield self._entities[key], samples[-1].value

    def _labels(self, entity: Entity) -> dict[str, str]:
        host = entity.host or (_HOST if self._together else None)
        if entity.kind is not Kind.GPU:
            return {"instance": f"{entity.name}:9100", "job": "node"}
        labels = {
            "gpu": None if entity.gpu is None else str(entity.gpu),
            # Without an index the UUID names the GPU in sentences.
            "UUID": entity.uuid if entity.gpu is not None else entity.name,
            "pci_bus_id": entity.pci,
            "modelName": entity.model,
            "Hostname": host,
            "cluster": entity.cluster,
            "hpc_job": entity.job,
            "GPU_I_ID": entity.mig,
            "pod": entity.pod,
            "namespace": entity.namespace,
        }
        return {name: value for name, value in labels.items() if value}

    def _named(self, answer: Why) -> Why:
        """Call the entities of an answer what the reader called them."""
        back: dict[str, Entity] = {}
        for entity in self._entities.values():
            host = entity.host or (_HOST if self._together else None)
            index = entity.gpu
            own = entity.name if index is None else f"{host}:{index}" if host else f"GPU {index}"
            back[own] = entity
        renamer = _Renamer(back)
        return replace(
            answer,
            target=renamer.entity(answer.target),
            diagnoses=tuple(map(renamer.diagnosis, answer.diagnoses)),
            notes=tuple(map(renamer.diagnosis, answer.notes)),
            members=tuple(map(renamer.entity, answer.members)),
        )


def merge(result: Result, answers: Sequence[Why], *, gaps: bool = True) -> None:
    """Take over verdicts: faults first, each cause once, benign causes and gaps beside them.

    Args:
        result: gets what the answers say.
        answers: one for each entity.
        gaps: take over what could not be seen; otherwise one note stands for all of it.
    """
    diagnoses = [d for answer in answers for d in answer.diagnoses]
    diagnoses.sort(key=lambda d: (_SEVERITIES.index(d.severity), _CLASSES.index(d.class_)))
    notes = [n for answer in answers for n in answer.notes]
    result.diagnoses += diagnoses
    result.causes = _unique([*result.causes, *(d.cause for d in [*diagnoses, *notes])])
    if any(answer.verdict is Verdict.IDLE for answer in answers) and "idle" not in result.causes:
        result.causes.append("idle")
    if any(answer.verdict in _AT_WORK for answer in answers):
        result.causes = idle_last(result.causes)
    result.notes += [n.says for n in notes]
    unknown: dict[tuple[str, str], Unknown] = {(u.cause, u.needs): u for u in result.unknown}
    for answer in answers:
        for gap in answer.unknown:
            unknown.setdefault((gap.cause, gap.needs), gap)
    if gaps:
        result.unknown = list(unknown.values())
    elif unknown:
        result.notes.append(PARTIAL)


def idle_last(causes: Sequence[str]) -> list[str]:
    """Put "idle" last where other GPUs work; alone it is no cause of anything there."""
    others = [cause for cause in causes if cause != "idle"]
    return [*others, "idle"] if others and "idle" in causes else others


def _folded(diagnoses: Sequence[Diagnosis]) -> list[Diagnosis]:
    """One diagnosis for each cause and entity: what each GPU of a node shows of it is one thing."""
    found: dict[tuple[str, tuple[str, str, str]], list[Diagnosis]] = {}
    for one in diagnoses:
        found.setdefault((one.cause, one.entity.key), []).append(one)
    out = []
    for group in found.values():
        first = group[0]
        if len(group) > 1:
            own = {e.entity.name for e in first.evidence}
            others = _unique(e.entity.name for d in group[1:] for e in d.evidence)
            names = [name for name in others if name not in own]
            more = f" The same on {', '.join(names[:_NAMED])}" if names else ""
            more += f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            first = replace(first, says=f"{first.says}{more}{'.' if more else ''}")
        out.append(first)
    return out


def _notes(answers: Sequence[Why], notes: Sequence[str]) -> list[str]:
    """The first note of each cause, with how many GPUs more it holds for."""
    by_cause: dict[str, list[str]] = {}
    for answer in answers:
        for note in answer.notes:
            by_cause.setdefault(note.cause, []).append(note.says)
    said = {says for group in by_cause.values() for says in group}
    folded = [
        group[0] if len(group) == 1 else f"{group[0]} (The same for {len(group) - 1} more.)"
        for group in by_cause.values()
    ]
    return [*folded, *(note for note in notes if note not in said)]


def absorb(result: Result, judged: Result) -> None:
    """Add what `Readings.judge` returned to a reader's own result.

    Causes that the rules name come after the reader's own, which stand in the text as such.
    """
    result.diagnoses += judged.diagnoses
    result.notes += judged.notes
    result.unknown += judged.unknown
    result.causes = _unique([*result.causes, *judged.causes])


class _Renamer:
    """Gives entities their reader's names back, in the objects and in the sentences."""

    def __init__(self, back: Mapping[str, Entity]) -> None:
        self._back = back
        changed = {old: new.name for old, new in back.items() if old != new.name}
        # Longest first: HOST:12 before HOST:1.
        words = sorted(changed, key=len, reverse=True)
        self._changed = changed
        self._words = re.compile("|".join(map(re.escape, words))) if words else None

    def entity(self, entity: Entity) -> Entity:
        known = self._back.get(entity.name)
        if known is not None:
            return known
        if entity.host != _HOST:
            return entity
        return replace(entity, name=self.text(entity.name), host=None)

    def text(self, text: str) -> str:
        if self._words is not None:
            text = self._words.sub(lambda found: self._changed[found[0]], text)
        return _HOST_WORD.sub("this node", text)

    def diagnosis(self, one: Diagnosis) -> Diagnosis:
        return replace(
            one,
            entity=self.entity(one.entity),
            says=self.text(one.says),
            evidence=tuple(map(self._evidence, one.evidence)),
            against=tuple(map(self._evidence, one.against)),
            effects=tuple(map(self._effect, one.effects)),
            next=tuple(map(self._step, one.next)),
        )

    def _evidence(self, one: Evidence) -> Evidence:
        return replace(one, entity=self.entity(one.entity), says=self.text(one.says), query="")

    def _effect(self, one: Effect) -> Effect:
        return replace(
            one, entity=self.entity(one.entity), effects=tuple(map(self._effect, one.effects))
        )

    def _step(self, one: Step) -> Step:
        return replace(one, do=self.text(one.do))


def _head(spelling: Spelling, labels: Mapping[str, str]) -> str:
    inner = ",".join(f'{k}="{_escaped(v)}"' for k, v in {**labels, **spelling.match}.items())
    return f"{spelling.name}{{{inner}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _outside(value: float, signal: Signal) -> bool:
    low = -math.inf if signal.low is None else signal.low
    high = math.inf if signal.high is None else signal.high
    return not low <= value <= high


def _unique(items: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(items))
