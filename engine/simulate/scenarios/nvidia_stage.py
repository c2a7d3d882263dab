"""The usual stage of a story about one GPU: a busy node with a neighbour, something odd around."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.samples import Floats, RawSeries
from engine.simulate.scenarios.base import AT
from engine.simulate.scenarios.herrings import strew
from engine.simulate.scenarios.nvidia_boards import Board, Load
from engine.simulate.scenarios.nvidia_gpu import Gpu
from engine.simulate.scenarios.nvidia_names import Style, style
from engine.simulate.scenarios.nvidia_nodes import Node, fleet, publish

HOST, NEIGHBOUR, INDEX = "node-3", "node-4", 5
TARGET = f"{HOST}:{INDEX}"


@dataclass(slots=True)
class Stage:
    """A fleet in which one GPU, `gpu` (`TARGET`), has the main part."""

    nodes: list[Node]
    how: Style
    board: Board

    @property
    def gpu(self) -> Gpu:
        """The GPU that is asked about."""
        return self.nodes[0].gpus[INDEX]

    @property
    def ts(self) -> Floats:
        """Times (Unix s) of its node's scrapes."""
        return self.nodes[0].ts

    def publish(self) -> list[RawSeries]:
        """Return everything that the exporters show."""
        return publish(self.nodes, self.how)


def stage(
    rng: np.random.Generator, boards: Sequence[Board], load: Load, *, stock: bool = False,
    smi: bool = False, step_s: float | None = None, alone: bool = False,
) -> Stage:  # fmt: skip
    """Build the stage: `HOST` and, unless ``alone``, a neighbour, 8 GPUs each under one load.

    Args:
        rng: where chance comes from.
        boards: what the board is chosen from.
        load: what runs everywhere.
        stock: the story can be told from dcgm-exporter's own list.
        smi: the story can be told from nvidia_gpu_exporter.
        step_s: scrape interval (s); None chooses one.
        alone: no second node.
    """
    how = style(rng, stock=stock, smi=smi)
    hosts = (HOST,) if alone else (HOST, NEIGHBOUR)
    nodes = fleet(rng, hosts, boards, load, step_s=step_s)
    strew(rng, nodes, spare=(TARGET,))
    return Stage(nodes, how, nodes[0].board)


def onset(rng: np.random.Generator) -> float:
    """Return when trouble began (Unix s): before the readings, or 10 to 20 minutes ago."""
    return AT - float(rng.choice([7200.0, 7200.0, rng.uniform(600.0, 1200.0)]))
