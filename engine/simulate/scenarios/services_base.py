"""A served model as a cluster shows it: replicas with their labels, and how a story is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from engine.samples import Floats, RawSeries
from engine.simulate.scenarios import shapes
from engine.simulate.scenarios.base import AT, Make, Severity
from engine.simulate.scenarios.recorder import Recorder
from engine.simulate.scenarios.serving import Engine, Load, State, settle
from engine.simulate.scenarios.serving_vllm import frontend, vllm

LoadOf = Callable[[np.random.Generator, Severity, Floats], Load]
V1 = ("v1", "v1", "v1-2025")


def replica(
    rng: np.random.Generator, app: str, index: int = 0, *, step_s: float | None = None,
    server: str = "vllm",
) -> Recorder:  # fmt: skip
    """Return an empty scrape of one replica, labelled in one of the usual ways.

    With Kubernetes discovery there are ``namespace``, ``pod`` and ``container``, without it just
    ``job`` and ``instance``.
    """
    labels = {"job": app, "instance": f"10.42.{index + 3}.{rng.integers(2, 250)}:8000"}
    if rng.random() < 0.7:
        tail = "".join(rng.choice(list("bcdfghjklmnpqrstvwxz2456789"), 5))
        labels |= {"namespace": "serving", "pod": f"{app}-7c9d5b66f8-{tail}", "container": server}
    return Recorder(rng, shapes.scrapes(rng, step_s=step_s), labels)


def onset(rng: np.random.Generator, ts: Floats, before: float, after: float) -> Floats:
    """Return a figure that changes some 12 to 25 minutes before the moment judged."""
    return shapes.since(ts, AT - rng.uniform(720.0, 1500.0), before, after)


def ups_and_downs(rng: np.random.Generator, level: Floats | float, n: int) -> Floats:
    """Return a number of users that breathes by some per cent, as clients come and go."""
    return np.maximum(level * (1.0 + shapes.wobble(rng, n, 0.02, memory=0.8)), 0.0)


def single(
    model: str, engine: Engine, load: LoadOf, *, versions: Sequence[str] = V1, cpu: float = 0.25,
    extra: Callable[[Recorder, State, Severity], None] | None = None,
) -> Make:  # fmt: skip
    """Return the maker of a service with one vLLM engine.

    Args:
        model: the name it is served under.
        engine: its hardware and configuration.
        load: what happens to it.
        versions: one of these is taken by chance (see `serving_vllm.vllm`).
        cpu: what the API server's process uses (cores).
        extra: adds series that only this story has.
    """

    def make(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
        record = replica(rng, _app(model))
        what = load(rng, severity, record.ts)
        what = replace(what, users=ups_and_downs(rng, what.users, record.ts.size))
        state = settle(engine, what, record.ts.size)
        vllm(record, state, model, version=str(rng.choice(versions)))
        if rng.random() < 0.8 or np.any(np.asarray(what.failed) + np.asarray(what.rejected)):
            frontend(record, state, cpu=cpu)
        if extra is not None:
            extra(record, state, severity)
        return record.series

    return make


def _app(model: str) -> str:
    return model.rsplit("/", 1)[-1].lower().replace(".", "-")
