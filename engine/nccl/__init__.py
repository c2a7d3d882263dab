"""Measured durations of NCCL's collectives, from what its profiler plugins write.

`engine.nccl.files` reads NCCL Inspector's JSON lines and Prometheus text, and the trace of NCCL's
example profiler plugin, into a `Tally`; `summary` makes figures of it and names stragglers.
`engine.nccl.follow` and `engine.nccl.metrics` are the parts of a Prometheus exporter for files that
grow.
"""

from engine.nccl.model import NcclStats
from engine.nccl.summary import summary
from engine.nccl.tally import Tally

__all__ = ["NcclStats", "Tally", "summary"]
