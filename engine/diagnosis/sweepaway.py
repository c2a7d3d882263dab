"""What no GPU's host brings along in a sweep: pods of quiet hosts, targets of Lustre.

Of a large fleet only hosts of which the server found something are fetched. A pod that its CPU
quota stops may run on another one. The targets of a Lustre file system are told of by its servers,
which have no GPU at all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from engine.diagnosis.byhost import named, portions
from engine.diagnosis.fetch import Fetcher
from engine.diagnosis.judge import Judgement
from engine.samples import Matcher, Selection
from engine.signals.entities import is_target
from engine.signals.labels import NAMESPACE_LABELS, POD_LABELS, locate
from engine.signals.normalise import Readings
from engine.sources.port import Source

if TYPE_CHECKING:
    from engine.diagnosis.engine import Engine

Pod = tuple[str, str]


async def of_gpus(
    fetcher: Fetcher,
    source: Source,
    suspects: Collection[Pod],
    *,
    at: float,
    window_s: float,
    where: tuple[Matcher, ...],
) -> list[Pod]:
    """Return those of some pods (namespace, name) that work on a GPU.

    Raises:
        SourceError: the source does not answer.
    """
    if not suspects:
        return []
    labels = (*POD_LABELS, *NAMESPACE_LABELS)
    rows = await source.label_sets(
        fetcher.core_names(), labels, at=at, window_s=window_s, matchers=where
    )
    found = {(ns or "", pod) for ns, pod in filter(None, (locate(r).workload for r in rows))}
    return sorted(found & set(suspects))


def pods_alone(fetcher: Fetcher, some: Sequence[Pod], window_s: float) -> Iterator[list[Selection]]:
    """Yield the selections of some pods, those of one request together."""
    names = fetcher.names.others["pod"]
    for part in portions(sorted({pod for _, pod in some})):
        yield [Selection(names, (named(label, part),), window_s) for label in POD_LABELS]


def targets(
    fetcher: Fetcher, window_s: float, where: tuple[Matcher, ...]
) -> Iterator[list[Selection]]:
    """Yield the selection of the targets of all Lustre file systems."""
    if names := fetcher.names.others["filesystem"]:
        yield [Selection(names, (Matcher("target", "!=", ""), *where), window_s)]


def judged(
    engine: Engine, readings: Readings, pods: Collection[Pod], before: Collection[Judgement]
) -> list[Judgement]:
    """Judge pods and Lustre targets that were fetched alone, if they were not judged ``before``."""
    seen = {answer.entity.key for answer in before}
    out = []
    for scope in ("pod", "filesystem"):
        frame = readings.others.get(scope)
        chosen = [
            i
            for i, e in enumerate(frame.entities if frame else ())
            if e.key not in seen and ((e.namespace or "", e.pod) in pods or is_target(e))
        ]
        out += engine.judge_other(readings, scope, chosen, unknowns=False)
    return out
