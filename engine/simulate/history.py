"""A fleet's past as one Prometheus would hold it: families over all nodes, with target labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

import numpy as np

from engine.errors import UsageError
from engine.simulate.environment import GONE
from engine.simulate.exporter import EXP_WINDOW_S, Exporter, View
from engine.simulate.nodes import NodeExporter
from engine.simulate.noise import Floats, Ints
from engine.simulate.physics import STEP_S
from engine.simulate.series import Family, Series

DCGM_JOB, NODE_JOB = "dcgm-exporter", "node-exporter"
PORTS = {DCGM_JOB: 9400, NODE_JOB: 9100}


def target_labels(node: str, job: str) -> dict[str, str]:
    """Return the labels that Prometheus gives every series of a target."""
    return {"instance": f"{node}:{PORTS[job]}", "job": job}


def sample_times(start: float, end: float, step_s: float) -> Floats:
    """Return times from start to end inclusive, float64[n].

    Raises:
        UsageError: the span is empty, or the step is not positive.
    """
    if not step_s > 0.0 or not end >= start:
        message = f"no samples between {start} and {end} in steps of {step_s} s"
        raise UsageError(message, hint="end must not be before start, and the step be positive")
    count = int((end - start) / step_s + 1e-9) + 1
    return np.asarray(start + step_s * np.arange(count), dtype=np.float64)


def collection_steps(steps: Ints, collect_s: float) -> Ints:
    """Return every collection (as a step) that steps or the windows before them touch."""
    apart = round(collect_s / STEP_S)
    first = int(steps[0]) - round(EXP_WINDOW_S / collect_s) * apart
    return np.arange(first, int(steps[-1]) + 1, apart, dtype=np.int64)


def history(
    exporters: Sequence[Exporter], hosts: Sequence[NodeExporter], views: Sequence[View]
) -> Iterator[Family]:
    """Yield every family with the series of all nodes together, ``up`` first.

    Args:
        exporters: one per node.
        hosts: one per node, or none at all.
        views: one per node, all at the same times. Readings that stopped are taken out of them.
    """
    for view in views:
        stopped = view.times[:, None] >= view.rows["frozen_at"]
        view.rows["sight"] = np.where(stopped, GONE, view.rows["sight"])
    yield _up(exporters, hosts, views)
    yield from _together(e.families(v, scraped=True) for e, v in zip(exporters, views, strict=True))
    yield from _together(
        h.families(v.rows, v.times, scraped=True) for h, v in zip(hosts, views, strict=False)
    )


def _up(
    exporters: Sequence[Exporter], hosts: Sequence[NodeExporter], views: Sequence[View]
) -> Family:
    family = Family("up", "gauge", "Whether the last scrape got an answer.")
    for n, (exporter, view) in enumerate(zip(exporters, views, strict=True)):
        always = np.ones(len(view.times), dtype=bool)
        labels = target_labels(exporter.node, DCGM_JOB)
        family.series.append(Series(labels, 1.0 - view.rows["down"][:, 0], always))
        if n < len(hosts):
            labels = target_labels(exporter.node, NODE_JOB)
            family.series.append(Series(labels, np.ones(len(view.times)), always))
    return family


def _together(nodes: Iterable[Iterator[Family]]) -> Iterator[Family]:
    """Merge families of many nodes that come in the same order, under one or two names each."""
    for row in zip_longest(*nodes):
        named: dict[str, Family] = {}
        for family in row:
            if family is not None:
                empty = Family(family.name, family.kind, family.help)
                named.setdefault(family.name, empty).series.extend(family.series)
        yield from named.values()
