"""Nsight Compute: profiles of single kernels as CSV or text, judged by the tables of the knowledge.

`csvform` and `textform` read what ncu prints into a `profile` of kernels, `verdicts` judges each by
``kernel_verdicts``, `compare` lays two profiles beside each other.
"""

from engine.traces.ncu.reader import NcuReader

__all__ = ["NcuReader"]
