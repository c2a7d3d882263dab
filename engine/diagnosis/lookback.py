"""The last day of what is sick: what changed since it was well, and whether a fault came before.

Two questions that a window of minutes cannot answer. A driver, a power limit, a clock setting, a
reboot, another slot or another workload that is new may be the reason. And an Xid that a program
usually causes speaks for the GPU if it came under several programs (NVIDIA's Xid catalog, workflow
for Xids 13 and 31: a hardware verdict needs repeats on one GPU across different jobs).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from engine.catalogue.types import Catalogue, NextStep
from engine.diagnosis.words import step
from engine.model import Change, Diagnosis, Entity, Severity
from engine.samples import RawSeries
from engine.signals.labels import Place, locate
from engine.signals.normalise import Readings
from engine.units import duration, quantity

LOOKBACK_DAY_S = 86400.0
# Settings and facts that stay as they are unless somebody changes them.
_BOOT = "node_boot_time"
SETTINGS = ("enforced_power_limit", "power_limit", "app_sm_clock", _BOOT)
# What is no change: rounding of a setting, and a clock that was set right after the boot (s).
_ROUNDING = 0.005
_CLOCK_STEP_S = 120.0
# Of so many GPUs the last day is asked for: what is new on a node is new on all of it.
MOST_GPUS = 4
_MOST_CHANGES = 8
_DRIVER_LABELS = ("DCGM_FI_DRIVER_VERSION", "driver_version")
# A new series this soon after the look-back begins is one that was there before.
_EDGE_S = 300.0
_REPEATS = 2
_MANY_REPEATS = 4
_APP = "app_fault_xid"
_HARDWARE = "gpu_needs_reset"
_SUSPECT = (
    NextStep("Read the Xids of the last days", "ssh {host} journalctl -k -g NVRM --since -7d"),
    NextStep(
        "Drain the GPU, reset it, run the diagnostic; replace the GPU if that fails or the Xid "
        "comes again",
        "ssh {host} dcgmi diag -r 3 -i {gpu}",
        "disrupts",
    ),
)


@dataclass(slots=True)
class _Spans:
    """When each value of one label was seen: value to (first, last), Unix s."""

    seen: dict[str, tuple[float, float]] = field(default_factory=dict)

    def add(self, value: str, first: float, last: float) -> None:
        a, b = self.seen.get(value, (first, last))
        self.seen[value] = (min(a, first), max(b, last))


def changes(
    series: Iterable[RawSeries],
    history: Readings,
    entities: Sequence[Entity],
    catalogue: Catalogue,
    at: float,
) -> tuple[Change, ...]:
    """Return what changed about some GPUs in the last day, newest first.

    Args:
        series: the series of that day, for what only labels tell: driver, place, workload.
        history: the same as a frame, for settings.
        entities: the GPUs asked about.
        catalogue: titles and units of signals.
        at: the moment judged (Unix s).
    """
    wanted = {e.uuid or e.name: e for e in entities}
    found = [*_settings(history, wanted, catalogue), *_labels(series, wanted, at)]
    once = {(c.what, c.before, c.after, round(c.at), c.entity.key): c for c in found}
    ordered = sorted(once.values(), key=lambda c: (-c.at, c.what, c.entity.key))
    return tuple(ordered[:_MOST_CHANGES])


def _settings(
    history: Readings, wanted: Mapping[str, Entity], catalogue: Catalogue
) -> Iterable[Change]:
    frame = history.frame
    for i, entity in enumerate(frame.entities):
        mine = wanted.get(entity.uuid or entity.name)
        if mine is None:
            continue
        for name in SETTINGS:
            times, values = frame.samples(name, i)
            least = _CLOCK_STEP_S if name == _BOOT else _ROUNDING * np.abs(values[:-1])
            moved = np.flatnonzero(np.abs(np.diff(values)) > least)
            if not moved.size or name not in catalogue.signals:
                continue
            k = int(moved[-1])
            when, signal = float(times[k + 1]), catalogue.signals[name]
            if name == _BOOT:
                host = replace(mine, gpu=None)
                yield Change("reboot", "", "", float(values[k + 1]), host, f"{mine.host} booted")
                continue
            before, after = (quantity(float(v), signal.unit) for v in (values[k], values[k + 1]))
            yield Change(
                name, before, after, when, mine,
                f"{signal.title} of {mine.name} went from {before} to {after}",
            )  # fmt: skip


def _labels(
    series: Iterable[RawSeries], wanted: Mapping[str, Entity], at: float
) -> Iterable[Change]:
    spans: dict[tuple[str, str], _Spans] = {}
    for one in series:
        if not one.timed or not one.ts.size:
            continue
        place = locate(one.labels)
        key = place.uuid or _name(place)
        if key not in wanted:
            continue
        first, last = float(one.ts[0]), float(one.ts[-1])
        for what, value in _told(one.labels, place):
            spans.setdefault((key, what), _Spans()).add(value, first, last)
    for (key, what), found in sorted(spans.items()):
        ordered = sorted(found.seen.items(), key=lambda item: (item[1], item[0]))
        for (old, (_, ended)), (new, (began, _)) in pairwise(ordered):
            if began > at - LOOKBACK_DAY_S + _EDGE_S and ended <= began + _EDGE_S:
                says = f"{what} of {wanted[key].name} went from {old} to {new}"
                yield Change(what, old, new, began, wanted[key], says)


def _told(labels: Mapping[str, str], place: Place) -> Iterable[tuple[str, str]]:
    driver = next((labels[name] for name in _DRIVER_LABELS if labels.get(name)), None)
    if driver:
        yield "driver", driver
    if place.uuid and place.host and place.gpu is not None:
        yield "place", f"{place.host}:{place.gpu}"
    if place.workload:
        namespace, pod = place.workload
        yield "workload", f"pod/{namespace or ''}/{pod}"
    if place.job:
        yield "job", f"job/{place.job}"


def _name(place: Place) -> str:
    return f"{place.host}:{place.gpu}"


def repeated(
    diagnoses: Sequence[Diagnosis],
    history: Readings,
    series: Sequence[RawSeries],
    catalogue: Catalogue,
    at: float,
) -> tuple[Diagnosis, ...]:
    """Turn "the program did it" into "suspect the GPU" where the Xid came under several programs.

    Args:
        diagnoses: what was found.
        history: the last day of the Xid signal.
        series: the series of that day: who used the GPU when.
        catalogue: titles of causes.
        at: the moment judged (Unix s).
    """
    return tuple(
        _suspected(d, history, series, catalogue, at) if d.cause == _APP else d for d in diagnoses
    )


def _suspected(
    diagnosis: Diagnosis,
    history: Readings,
    series: Sequence[RawSeries],
    catalogue: Catalogue,
    at: float,
) -> Diagnosis:
    codes = [e.value for e in diagnosis.evidence if e.signal == "xid"]
    entity = diagnosis.entity
    frame = history.frame
    for i, known in enumerate(frame.entities):
        if (known.uuid or known.name) != (entity.uuid or entity.name):
            continue
        times, values = frame.samples("xid", i)
        came = [
            float(t)
            for t, value, before in zip(times[1:], values[1:], values[:-1], strict=True)
            if value in codes and value != before
        ]
        users = {user for t in came if (user := _user(series, entity, t))}
        if len(came) < _REPEATS:
            break
        since = duration(at - came[0])
        often = f"It came {len(came)} times in the last {since}"
        if len(users) > 1:
            names = ", ".join(sorted(users)[:4])
            xid = ", ".join(f"Xid {code:g}" for code in codes if isinstance(code, int | float))
            says = (
                f"{entity.name} has {xid} again, which a program usually causes. {often}, under "
                f"{len(users)} different workloads ({names}): that points to the GPU's hardware, "
                "not to one program."
            )
            return replace(
                diagnosis,
                cause=_HARDWARE,
                title=catalogue.taxonomy[_HARDWARE].title,
                severity=Severity.HIGH,
                says=says,
                next=tuple(step(s, frame, i, catalogue) for s in _SUSPECT),
            )
        if len(came) >= _MANY_REPEATS or users:
            same = f", each time under {users.copy().pop()}" if users else ""
            return replace(
                diagnosis,
                says=f"{diagnosis.says} {often}{same}: run that program on another GPU, and a "
                "known-good one (dcgmi diag -r 3) on this, to tell which of the two is at fault.",
            )
    return diagnosis


def _user(series: Sequence[RawSeries], entity: Entity, when: float) -> str | None:
    """Return the workload that a GPU's series name at a moment."""
    for one in series:
        if not one.ts.size or not one.ts[0] - _EDGE_S <= when <= one.ts[-1] + _EDGE_S:
            continue
        place = locate(one.labels)
        if (place.uuid or _name(place)) != (entity.uuid or entity.name):
            continue
        if place.job:
            return f"job/{place.job}"
        if place.workload:
            return f"pod/{place.workload[0] or ''}/{place.workload[1]}"
    return None
