"""Rails: the same port of hosts of one kind, which are wired and used alike.

In a rail-optimised cluster port k of every host goes to the same leaf switch, so that what is
common to a rail points to its switch, and a port that differs from its rail to its own cable
(NVIDIA DGX SuperPOD reference architecture, compute fabric). Hosts are of one kind if they have
the same GPU models.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np

from engine.model import Entity
from engine.samples import Ints

_Host = tuple[str | None, str | None]


def kinds(gpus: Iterable[Entity]) -> dict[_Host, Hashable]:
    """Return of what kind hosts are: (cluster, host) to the models of their GPUs."""
    models: dict[_Host, set[str]] = {}
    for gpu in gpus:
        if gpu.host and gpu.model:
            models.setdefault((gpu.cluster, gpu.host), set()).add(gpu.model)
    return {host: frozenset(found) for host, found in models.items()}


def rails(ports: Sequence[Entity], kind_of: Mapping[_Host, Hashable]) -> Ints:
    """Return int64[n]: the number of each port's rail.

    A port of a host of no known kind is a rail by itself: there is nothing like it.
    """
    numbers: dict[Hashable, int] = {}
    keys = (
        (port.cluster, port.instance, kind_of.get((port.cluster, port.host), port.host))
        for port in ports
    )
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
