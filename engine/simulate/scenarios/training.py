"""What a training job publishes about itself, and the stage for jobs of several nodes.

Names as their owners use them: ``training_mfu``, ``training_step_seconds``, ``allreduce_time_ms``
and ``train_grad_norm`` of training loops; rank 0 reports, labelled with the Slurm job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.samples import Floats, RawSeries
from engine.simulate.scenarios.base import AT
from engine.simulate.scenarios.herrings import strew
from engine.simulate.scenarios.nvidia_boards import A100_80, H100, H200, TRAIN, Board, Load
from engine.simulate.scenarios.nvidia_gpu import Gpu
from engine.simulate.scenarios.nvidia_names import Style, style
from engine.simulate.scenarios.nvidia_nodes import Node, fleet, publish, settle
from engine.simulate.scenarios.shapes import counter, noisy, series

JOB = "51234"
TARGET = f"job/{JOB}"
BOARDS = (A100_80, H100, H200)
CULPRIT = "node-3:5"

_STEP_BUCKETS = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 20.0)


@dataclass(slots=True)
class Job:
    """A training job on some nodes, and how they are exported."""

    nodes: list[Node]
    how: Style
    board: Board

    @property
    def gpus(self) -> list[Gpu]:
        """All ranks, in order of node and index."""
        return [gpu for item in self.nodes for gpu in item.gpus]

    @property
    def culprit(self) -> Gpu:
        """The GPU that stories about stragglers put the blame on (`CULPRIT`)."""
        return next(gpu for gpu in self.gpus if gpu.name == CULPRIT)

    def run(self, rng: np.random.Generator, load: Load, gpus: Sequence[Gpu]) -> None:
        """Run a load on some ranks, with nothing wrong."""
        for gpu in gpus:
            gpu.run(rng, load)
            settle(rng, gpu)

    def publish(self) -> list[RawSeries]:
        """Return everything that the GPU exporters show."""
        return publish(self.nodes, self.how)


def job(
    rng: np.random.Generator, *, nodes: int | None = None, step_s: float | None = None,
    stock: bool = False, load: Load = TRAIN, span_s: float = 1800.0,
) -> Job:  # fmt: skip
    """Build a healthy job on ``node-1`` to ``node-N``, 8 GPUs each.

    Args:
        rng: where chance comes from.
        nodes: how many; None is 3 to 8.
        step_s: scrape interval (s); None chooses one.
        stock: the story can be told from dcgm-exporter's own list.
        load: what all ranks do.
        span_s: how far back readings go (s).
    """
    how = style(rng, stock=stock)
    count = int(rng.choice([3, 3, 4, 4, 6, 8])) if nodes is None else nodes
    hosts = [f"node-{k + 1}" for k in range(count)]
    built = fleet(rng, hosts, BOARDS, load, step_s=step_s, span_s=span_s, job=JOB)
    strew(rng, built, spare=(CULPRIT, "node-1:2"), idle=False)
    return Job(built, how, built[0].board)


def every(gpu: Gpu, period_s: float, length_s: float, phase_s: float = 0.0) -> Floats:
    """Return 1.0 during a pause of ``length_s`` that comes every ``period_s``, else 0.0."""
    return ((AT - gpu.ts + phase_s) % period_s < length_s).astype(np.float64)


def reports(
    rng: np.random.Generator, ts: Floats, *, step_time_s: Floats | float, mfu: Floats | float,
    allreduce_ms: Floats | float, grad_norm: float = 0.8,
) -> list[RawSeries]:  # fmt: skip
    """Return what rank 0 publishes of its steps.

    Args:
        rng: where chance comes from.
        ts: times (Unix s).
        step_time_s: duration of a step (s), constant or over time.
        mfu: model FLOPs utilisation (0 to 1).
        allreduce_ms: time in all-reduce in a step (ms).
        grad_norm: norm of the gradient.
    """
    n, labels = ts.size, {"slurm_job_id": JOB, "rank": "0", "hostname": "node-1"}
    took = noisy(rng, step_time_s, n, 0.02 * float(np.mean(step_time_s)), lo=0.01)
    done = counter(rng, ts, 1.0 / took, start=1000.0)
    out = [
        series("training_mfu", labels, ts, noisy(rng, mfu, n, 0.004, hi=1.0).round(4)),
        series("allreduce_time_ms", labels, ts, noisy(rng, allreduce_ms, n, 2.0).round(2)),
        series("train_grad_norm", labels, ts, noisy(rng, grad_norm, n, 0.08).round(3)),
        series("training_step_seconds_count", labels, ts, done.round()),
        series("training_step_seconds_sum", labels, ts,
               counter(rng, ts, 1.0, start=1000.0 * float(took[0]))),
    ]  # fmt: skip
    for edge in (*_STEP_BUCKETS, np.inf):
        # Steps spread a tenth around their mean: which share of them ends below the edge.
        below = np.clip((edge - took * 0.9) / (took * 0.2), 0.0, 1.0)
        text = "+Inf" if np.isinf(edge) else f"{edge:g}"
        grown = np.cumsum(np.diff(done, prepend=done[:1]) * below) + 1000.0 * below[0]
        out.append(series("training_step_seconds_bucket", {**labels, "le": text}, ts,
                          grown.round()))  # fmt: skip
    return out
