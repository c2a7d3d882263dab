"""History of a fleet as large as a benchmark wants, made from a few simulated nodes.

Simulating ten thousand GPUs would take longer than loading them. Sixteen simulated nodes are
written again and again under other names: what a server has to do depends on how many series there
are, not on whether two of them hold the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.fleets import FORTY, WINDOW_S, moment, one_in_eight_sick
from engine.simulate import Fleet
from engine.simulate.series import openmetrics_samples

STEP_S = 60.0
GPUS = 8
# One node of so many has a sick GPU: 0.125 % of all GPUs.
SICK_EVERY = 100
_PATTERNS = 8
_NAMES = frozenset({*FORTY, "up"})

# Name of a metric to the text of one node's series of it.
_Texts = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Pattern:
    """The history of one simulated node: texts by metric, and what names the node in them."""

    node: str
    uuids: tuple[str, ...]
    texts: _Texts


def at() -> float:
    """Return the moment to judge (Unix s)."""
    return moment(Fleet(nodes=1))


def sick(nodes: int) -> list[str]:
    """Return the names of the nodes with a sick GPU."""
    return [_name(k) for k in range(0, nodes, SICK_EVERY)]


def history(nodes: int) -> Iterator[str]:
    """Yield the last window of ``nodes`` nodes of 8 GPUs as OpenMetrics, a sample a minute."""
    well = _patterns(Fleet(nodes=_PATTERNS, gpus=GPUS, seed=1))
    ill = _patterns(one_in_eight_sick(_PATTERNS))
    for metric in sorted(_NAMES):
        yield f"# TYPE {metric} unknown\n"
        for k in range(nodes):
            some, number = (ill, k // SICK_EVERY) if k % SICK_EVERY == 0 else (well, k)
            yield _renamed(some[number % _PATTERNS], metric, k)
    yield "# EOF\n"


def _name(k: int) -> str:
    return f"gpu-{k:05d}"


def _renamed(pattern: _Pattern, metric: str, k: int) -> str:
    text = pattern.texts.get(metric, "")
    for gpu, uuid in enumerate(pattern.uuids):
        text = text.replace(uuid, f"GPU-{k:08x}-0000-0000-0000-{gpu:012x}")
    return text.replace(f'"{pattern.node}', f'"{_name(k)}')


def _patterns(fleet: Fleet) -> list[_Pattern]:
    end = moment(fleet)
    times, named = fleet.series(end - WINDOW_S, end, STEP_S, node_exporter=False)
    stamps = [f"{t:.3f}" for t in times.tolist()]
    texts: dict[str, dict[str, list[str]]] = {node: {} for node in fleet.nodes}
    for metric, one in named:
        if metric in _NAMES:
            node = one.labels["instance"].partition(":")[0]
            texts[node].setdefault(metric, []).append(openmetrics_samples(metric, one, stamps))
    return [
        _Pattern(
            node,
            tuple(fleet.uuid(f"{node}:{gpu}") for gpu in range(GPUS)),
            {metric: "".join(parts) for metric, parts in of_node.items()},
        )
        for node, of_node in texts.items()
    ]
