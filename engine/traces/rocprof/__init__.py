"""rocprofv3: its CSV tables as a timeline, and its summaries."""

from engine.traces.rocprof.reader import RocprofReader

__all__ = ["RocprofReader"]
