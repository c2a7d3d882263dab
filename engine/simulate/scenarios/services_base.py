"""A served model as a cluster shows it: replicas with their labels, and the GPUs under them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from engine.samples import Floats, RawSeries
from engine.simulate.scenarios import nvidia_boards, shapes
from engine.simulate.scenarios.base import AT, Make, Scenario, Severity
from engine.simulate.scenarios.nvidia_names import Style, style
from engine.simulate.scenarios.nvidia_nodes import Node, node, publish
from engine.simulate.scenarios.recorder import Recorder
from engine.simulate.scenarios.serving import Engine, Load, State, settle
from engine.simulate.scenarios.serving_vllm import frontend, vllm

LoadOf = Callable[[np.random.Generator, Severity, Floats], Load]
Extra = Callable[[Recorder, State, Severity], None]
V1 = ("v1", "v1", "v1-2025")


def service(
    ident: str, title: str, model: str, causes: tuple[str, ...], make: Make,
    culprit: str | None = None,
) -> Scenario:  # fmt: skip
    """Return a scenario whose target is a served model."""
    return Scenario(ident, title, "serving", f"svc/{model}", causes, make, culprit)


def replica(
    rng: np.random.Generator, app: str, index: int = 0, *, step_s: float | None = None,
    server: str = "vllm",
) -> Recorder:  # fmt: skip
    """Return an empty scrape of one replica, labelled in one of the usual ways.

    With Kubernetes discovery there are ``namespace``, ``pod`` and ``container``, without it just
    ``job`` and an ``instance`` that names the host (`host_of`).
    """
    labels = {"job": app, "instance": f"{host_of(index)}:8000"}
    if rng.random() < 0.7:
        tail = "".join(rng.choice(list("bcdfghjklmnpqrstvwxz2456789"), 5))
        labels |= {"namespace": "serving", "pod": f"{app}-7c9d5b66f8-{tail}", "container": server}
        labels["instance"] = f"10.42.{index + 3}.{rng.integers(2, 250)}:8000"
    return Recorder(rng, shapes.scrapes(rng, step_s=step_s), labels)


def host_of(index: int = 0) -> str:
    """Return the name of the node that replica ``index`` runs on."""
    return f"gpu-{index + 7}"


def gpus(
    rng: np.random.Generator, record: Recorder, engine: Engine, load: nvidia_boards.Load,
    index: int = 0, *, spare: int = 0,
) -> Node:  # fmt: skip
    """Return the GPUs of a replica, all under one load; labelled with its pod if it has one.

    Args:
        rng: where chance comes from.
        record: scrape of the replica.
        engine: says how many GPUs it uses.
        load: what they do.
        index: of the replica.
        spare: GPUs of the node that belong to nobody, idle.
    """
    built = node(rng, host_of(index), nvidia_boards.H100, count=engine.gpus + spare)
    used = range(engine.gpus)
    built.load(rng, load, used)
    built.load(rng, nvidia_boards.IDLE, range(engine.gpus, engine.gpus + spare))
    for k in used:
        for label in ("namespace", "pod", "container"):
            if label in record.labels:
                built.gpus[k].labels[label] = record.labels[label]
    return built


def show(rng: np.random.Generator, nodes: Sequence[Node]) -> list[RawSeries]:
    """Return what dcgm-exporter publishes of nodes, with a name of the host that fits a join."""
    how = style(rng)
    if how.host_label in {"node", "instance"}:
        how = Style(how.kind, "Hostname", how.reasons)
    return publish(nodes, how)


def onset(rng: np.random.Generator, ts: Floats, before: float, after: float) -> Floats:
    """Return a figure that changes some 12 to 25 minutes before the moment judged."""
    return shapes.since(ts, AT - rng.uniform(720.0, 1500.0), before, after)


def ups_and_downs(rng: np.random.Generator, level: Floats | float, n: int) -> Floats:
    """Return a number of users that breathes by some per cent, as clients come and go."""
    return np.maximum(level * (1.0 + shapes.wobble(rng, n, 0.02, memory=0.8)), 0.0)


def single(
    model: str, engine: Engine, load: LoadOf, *, versions: Sequence[str] = V1, cpu: float = 0.25,
    extra: Extra | None = None, under: nvidia_boards.Load | None = None, shown: float = 0.6,
) -> Make:  # fmt: skip
    """Return the maker of a service with one vLLM engine.

    Args:
        model: the name it is served under.
        engine: its hardware and configuration.
        load: what happens to it.
        versions: one of these is taken by chance (see `serving_vllm.vllm`).
        cpu: what the API server's process uses (cores).
        extra: adds series that only this story has.
        under: what its GPUs do; None leaves them out.
        shown: how often (0 to 1) the GPUs are exported at all.
    """

    def make(rng: np.random.Generator, severity: Severity) -> list[RawSeries]:
        record = replica(rng, app_of(model))
        what = load(rng, severity, record.ts)
        what = replace(what, users=ups_and_downs(rng, what.users, record.ts.size))
        state = settle(engine, what, record.ts.size)
        vllm(record, state, model, version=str(rng.choice(versions)))
        if rng.random() < 0.8 or np.any(np.asarray(what.failed) + np.asarray(what.rejected)):
            frontend(record, state, cpu=cpu)
        if extra is not None:
            extra(record, state, severity)
        found = record.series
        if under is not None and rng.random() < shown:
            found += show(rng, [gpus(rng, record, engine, under)])
        return found

    return make


def app_of(model: str) -> str:
    """Return the name of a model's deployment: lower case, no slash, no dot."""
    return model.rsplit("/", 1)[-1].lower().replace(".", "-")
