"""The simulated fleet: nodes of GPUs with an exporter each, faults planted on purpose."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from engine.errors import SourceError, UsageError
from engine.simulate import effects_device, effects_link, effects_power, effects_use
from engine.simulate.boards import Boards
from engine.simulate.environment import GONE
from engine.simulate.exporter import Exporter, Profile, View
from engine.simulate.faults import Fault, Herring, Planted, check_fault, xid_of
from engine.simulate.hardware import GpuModel, gpu_model
from engine.simulate.history import (
    DCGM_JOB,
    NODE_JOB,
    collection_steps,
    history,
    sample_times,
    target_labels,
)
from engine.simulate.nodes import NodeExporter
from engine.simulate.noise import Floats, constant, entity_ids
from engine.simulate.physics import STEP_S
from engine.simulate.series import (
    Family,
    Series,
    exposition_lines,
    openmetrics_header,
    openmetrics_samples,
)
from engine.simulate.timeline import Strike, Timeline
from engine.simulate.workloads import Workloads, check_workload

# 2025-11-29 16:00:00 UTC, a fixed moment: a simulation never looks at the clock on the wall.
DEFAULT_START = 1764432000.0
FAULTS = {
    **effects_power.EFFECTS, **effects_device.EFFECTS, **effects_link.EFFECTS,
    **effects_use.EFFECTS,
}  # fmt: skip
HERRINGS = effects_use.HERRINGS
MAX_SPAN_S = 30 * 86400.0
_OLD_SBE, _OLD_DBE = 214.0, 2.0


class Fleet:
    """A fleet whose every reading is a function of seed, entity and time.

    Attributes:
        seed: of all noise.
        start: first moment with readings (Unix seconds).
        nodes: host names, ``node-0`` on.
        gpus: names of all GPUs, ``node-0:0`` on, in node order.
        planted: ground truth: every fault, with the GPUs it makes sick.
        healthy: names of the GPUs that no fault touches (red herrings may).
    """

    def __init__(
        self,
        nodes: int = 8,
        gpus: int = 8,
        seed: int = 0,
        *,
        model: str = "h100_sxm",
        models: Mapping[str, str] | None = None,
        workloads: Sequence[str] = ("training", "decode"),
        workload_of: Mapping[str, str] | None = None,
        profile: Profile | None = None,
        profiles: Mapping[str, Profile] | None = None,
        faults: Sequence[Fault] = (),
        herrings: Sequence[Herring] = (),
        start: float = DEFAULT_START,
    ) -> None:
        """Set up a fleet.

        Args:
            nodes: how many nodes.
            gpus: how many GPUs each.
            seed: of all noise.
            model: GPU model of every node that ``models`` does not name (ids of `MODELS`).
            models: node name to GPU model.
            workloads: workload of node 0, 1 …, repeated as often as needed.
            workload_of: node or GPU name to workload; the GPU's wins.
            profile: exporter set-up of every node that ``profiles`` does not name.
            profiles: node name to exporter set-up.
            faults: what to break.
            herrings: what to make look broken.
            start: first moment with readings (Unix seconds).

        Raises:
            UsageError: an unknown model, workload, target, fault or red herring, or a number of
                nodes or GPUs that makes no fleet.
        """
        if nodes < 1 or not 1 <= gpus <= 16:
            message = f"cannot simulate {nodes} nodes of {gpus} GPUs"
            raise UsageError(message, hint="take at least one node, and 1 to 16 GPUs on each")
        self.seed, self.start = seed, float(start)
        self.nodes = tuple(f"node-{n}" for n in range(nodes))
        self.gpus = tuple(f"{node}:{gpu}" for node in self.nodes for gpu in range(gpus))
        self._per_node = gpus
        self._check_names({**(models or {}), **(profiles or {})}, set(self.nodes))
        self._check_names(workload_of or {}, {*self.nodes, *self.gpus})
        self._kinds = self._workload_kinds(workloads, workload_of or {})
        board_models = [gpu_model((models or {}).get(node, model)) for node in self.nodes]
        self._boards = self._make_boards(board_models)
        work = Workloads(
            seed,
            self._kinds,
            gpus=self._boards.gpus,
            jobs=self._boards.nodes[self._boards.node],
            start=self.start,
            step_s=STEP_S,
        )
        self._boards.set_workload(work.main_phase())
        self._faults, self._herrings = tuple(faults), tuple(herrings)
        self._timeline = Timeline(self._boards, work, self._strikes(), self.start)
        self._lifetime = self._lifetime_ecc()
        setups = [(profiles or {}).get(node, profile or Profile()) for node in self.nodes]
        self._exporters = [self._exporter(n, setup) for n, setup in enumerate(setups)]
        self._hosts = [self._host(n) for n in range(nodes)]

    @property
    def planted(self) -> tuple[Planted, ...]:
        """Ground truth, in the order the faults were given."""
        return tuple(
            Planted(f.cause, f.target, f.since, self.gpus[self._cols(f.target)])
            for f in self._faults
        )

    @property
    def healthy(self) -> tuple[str, ...]:
        """Names of the GPUs that no fault touches."""
        sick = {gpu for planted in self.planted for gpu in planted.members}
        return tuple(gpu for gpu in self.gpus if gpu not in sick)

    def model(self, node: str) -> GpuModel:
        """Return the GPU model of a node. Raises `UsageError` for an unknown node."""
        return self._boards.models[self._index(node) * self._per_node]

    def uuid(self, gpu: str) -> str:
        """Return the UUID of a GPU by name. Raises `UsageError` for an unknown GPU."""
        if gpu not in self.gpus:
            message = f"no GPU {gpu!r} in this fleet"
            raise UsageError(message, hint=f"names run from {self.gpus[0]} to {self.gpus[-1]}")
        at = self.gpus.index(gpu)
        return self._exporters[at // self._per_node].uuids[at % self._per_node]

    def exposition(self, node: str, t: float) -> str:
        """Return what the node's dcgm-exporter answers to a scrape at time t (Unix seconds).

        Raises:
            UsageError: unknown node, or a time the simulation does not cover.
            SourceError: the exporter is down.
        """
        index = self._index(node)
        now = self.views(np.array([t]), [index])[0].rows
        if now["down"][0, 0] > 0.0:
            message = f"the exporter on {node} does not answer"
            raise SourceError(message, hint="the fault exporter_down is planted there")
        # A GPU whose readings have stopped is shown as it was last read, with that time.
        read_at = np.minimum(now["frozen_at"][0], t)
        times = np.unique(read_at)
        view = self.views(times, [index])[0]
        view.rows["sight"] = np.where(times[:, None] == read_at, view.rows["sight"], GONE)
        stamps = [None if at >= t else round(at * 1000.0) for at in times.tolist()]
        families = self._exporters[index].families(view, scraped=False)
        return "\n".join([*exposition_lines(families, stamps), ""])

    def node_exposition(self, node: str, t: float) -> str:
        """Return what the node's node_exporter answers to a scrape at time t (Unix seconds).

        Raises:
            UsageError: unknown node, or a time the simulation does not cover.
        """
        index = self._index(node)
        view = self.views(np.array([t]), [index])[0]
        families = self._hosts[index].families(view.rows, view.times, scraped=False)
        return "\n".join([*exposition_lines(families, [None]), ""])

    def series(
        self, start: float, end: float, step_s: float = 15.0, *, node_exporter: bool = True
    ) -> tuple[Floats, Iterator[tuple[str, Series]]]:
        """Return sample times, float64[n], and every (metric name, series) a Prometheus would hold.

        Times run from start to end inclusive, ``step_s`` apart (Unix seconds).

        Raises:
            UsageError: a span the simulation does not cover.
        """
        times = sample_times(start, end, step_s)
        families = self._history(times, node_exporter=node_exporter)
        return times, ((f.name, one) for f in families for one in f.series)

    def openmetrics(
        self, start: float, end: float, step_s: float = 15.0, *, node_exporter: bool = True
    ) -> Iterator[str]:
        """Yield the fleet's history as OpenMetrics with timestamps, as Prometheus scraped it.

        Families are grouped, so that ``promtool tsdb create-blocks-from openmetrics`` takes it.

        Raises:
            UsageError: a span the simulation does not cover.
        """
        times = sample_times(start, end, step_s)
        stamps = [f"{t:.3f}" for t in times.tolist()]
        for family in self._history(times, node_exporter=node_exporter):
            shown = [one for one in family.series if one.present().any()]
            if shown:
                yield openmetrics_header(family)
                for one in shown:
                    yield openmetrics_samples(family.name, one, stamps)
        yield "# EOF\n"

    def views(self, times: Floats, nodes: Sequence[int]) -> list[View]:
        """Return readings of nodes (by index) at ascending times, as their exporters hold them.

        Every exporter shows the state of its last collection.

        Raises:
            UsageError: a time the simulation does not cover.
        """
        every = [self._exporters[n].profile.collect_s for n in nodes]
        if times[0] < self.start or times[-1] > self.start + MAX_SPAN_S:
            where = times[0] if times[0] < self.start else times[-1]
            message = f"the simulated fleet has no readings at {where:.0f}"
            raise UsageError(message, hint=f"it runs for 30 days from {self.start:.0f}")
        steps = {c: (np.floor(times / c) * (c / STEP_S)).astype(np.int64) for c in set(every)}
        grids = {c: collection_steps(s, c) for c, s in steps.items()}
        union = np.unique(np.concatenate([*grids.values(), *steps.values()]))
        rows = self._timeline.rows(union)
        views = []
        for n, c in zip(nodes, every, strict=True):
            cols = self._cols(self.nodes[n])
            where = np.searchsorted(union, steps[c])
            part = {name: values[where, cols] for name, values in rows.items()}
            part |= {
                name: np.broadcast_to(values[cols], (len(times), self._per_node))
                for name, values in self._lifetime.items()
            }
            masks = rows["mask"][np.searchsorted(union, grids[c]), cols].astype(np.int64)
            views.append(View(part, masks, np.searchsorted(grids[c], steps[c]), times))
        return views

    def _history(self, times: Floats, *, node_exporter: bool) -> Iterator[Family]:
        views = self.views(times, range(len(self.nodes)))
        return history(self._exporters, self._hosts if node_exporter else (), views)

    def _make_boards(self, models: Sequence[GpuModel]) -> Boards:
        return Boards(
            self.seed,
            [m for m in models for _ in range(self._per_node)],
            np.repeat(np.arange(len(self.nodes)), self._per_node),
            entity_ids(list(self.gpus)),
            entity_ids(list(self.nodes)),
        )

    def _workload_kinds(self, cycle: Sequence[str], of: Mapping[str, str]) -> tuple[str, ...]:
        kinds = []
        for n, node in enumerate(self.nodes):
            usual = of.get(node, cycle[n % len(cycle)] if cycle else "idle")
            kinds += [of.get(f"{node}:{gpu}", usual) for gpu in range(self._per_node)]
        return tuple(check_workload(kind) for kind in kinds)

    def _strikes(self) -> list[Strike]:
        known = {*self.nodes, *self.gpus}
        strikes: list[Strike] = []
        for planted, effects in ((self._faults, FAULTS), (self._herrings, HERRINGS)):
            for one in planted:
                check_fault(one, effects, known)
                name = one.cause if isinstance(one, Fault) else one.kind
                strikes.append((one, effects[name], self._cols(one.target)))
        return strikes

    def _lifetime_ecc(self) -> dict[str, Floats]:
        """Return lifetime ECC counts from before the simulation, float64[G] by row name."""
        sbe = np.floor(12.0 * constant(self.seed, "lifetime ecc", self._boards.gpus))
        dbe = np.zeros(len(self.gpus))
        for herring in self._herrings:
            if herring.kind == "old_ecc":
                sbe[self._cols(herring.target)] = _OLD_SBE
                dbe[self._cols(herring.target)] = _OLD_DBE
        return {"lifetime_sbe": sbe, "lifetime_dbe": dbe}

    def _exporter(self, index: int, profile: Profile) -> Exporter:
        node = self.nodes[index]
        cols = self._cols(node)
        xids: list[list[tuple[float, int]]] = [[] for _ in range(self._per_node)]
        planted: tuple[Fault | Herring, ...] = (*self._faults, *self._herrings)
        for one in planted:
            code = xid_of(one, FAULTS)
            struck = self._cols(one.target)
            if code is not None and cols.start <= struck.start < cols.stop:
                for gpu in range(struck.start, struck.stop):
                    xids[gpu - cols.start].append((one.since, code))
        return Exporter(
            node,
            self._boards,
            cols,
            profile=profile,
            workloads=self._kinds[cols],
            xids=tuple(tuple(sorted(events)) for events in xids),
            prometheus=target_labels(node, DCGM_JOB),
        )

    def _host(self, index: int) -> NodeExporter:
        node = self.nodes[index]
        return NodeExporter(
            node, self._boards, index, self._kinds[self._cols(node)], self.start,
            target_labels(node, NODE_JOB),
        )  # fmt: skip

    def _cols(self, target: str) -> slice:
        """Return the columns of a node or GPU that is known to exist."""
        node, _, gpu = target.partition(":")
        first = self.nodes.index(node) * self._per_node
        return (
            slice(first + int(gpu), first + int(gpu) + 1)
            if gpu
            else slice(first, first + self._per_node)
        )

    def _index(self, node: str) -> int:
        if node not in self.nodes:
            message = f"no node {node!r} in this fleet"
            raise UsageError(message, hint=f"nodes run from {self.nodes[0]} to {self.nodes[-1]}")
        return self.nodes.index(node)

    @staticmethod
    def _check_names(given: Mapping[str, object], known: set[str]) -> None:
        for name in given:
            if name not in known:
                message = f"no node or GPU {name!r} in this fleet"
                raise UsageError(message, hint="node names are node-0, node-1 and so on")
