"""Readings that mean nothing on a GPU which is cut into MIG instances."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from engine.signals.labels import Place
from engine.signals.pieces import Piece

# NVML does not measure these two while MIG is on; exporters leave them out or write 0
# (NVIDIA/dcgm-exporter issues 50, 105, 216 and 430, NVIDIA/DCGM issue 80).
UNMEASURED = ("gpu_util", "mem_copy_util")


def drop_unmeasured(
    pieces: Mapping[str, list[Piece]], groups: Sequence[Iterable[Place]]
) -> dict[str, list[Piece]]:
    """Return the pieces without the zeros that stand for "not measured under MIG".

    Args:
        pieces: series by signal; ``owner`` is an index into ``groups``.
        groups: what the labels of each GPU's series said.
    """
    sliced = {i for i, group in enumerate(groups) if any(p.mig for p in group)}
    kept = dict(pieces)
    for signal in UNMEASURED if sliced else ():
        kept[signal] = [
            p for p in pieces.get(signal, ()) if p.tag.owner not in sliced or p.series.values.any()
        ]
        if not kept[signal]:
            del kept[signal]
    return kept
