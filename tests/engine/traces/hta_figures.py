"""Print what HolisticTraceAnalysis computes for one trace, as JSON; runs in its own environment.

Arguments: the trace; ``whole`` to keep the last ProfilerStep, which HTA leaves out otherwise. Times
with decimals stay as they are: by default HTA rounds them to whole microseconds.
"""

import json
import logging
import os
import sys
import warnings
from math import isnan

os.environ["HTA_DISABLE_NS_ROUNDING"] = "1"
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)

from hta.analyzers.breakdown_analysis import BreakdownAnalysis  # noqa: E402
from hta.analyzers.communication_analysis import CommunicationAnalysis  # noqa: E402
from hta.analyzers.cuda_kernel_analysis import CudaKernelAnalysis  # noqa: E402
from hta.common.trace import Trace  # noqa: E402

# HTA's kernel breakdown keeps this many kernels and sums up the rest.
ALL = 1_000_000


def figures(path: str, *, whole: bool) -> dict:
    trace = Trace({0: path}, "/")
    trace.load_traces(include_last_profiler_step=whole, use_multiprocessing=False)
    times = BreakdownAnalysis.get_temporal_breakdown(trace, visualize=False).iloc[0]
    _, kernels = BreakdownAnalysis.get_gpu_kernel_breakdown(
        trace,
        visualize=False,
        duration_ratio=1.0,
        num_kernels=ALL,
        include_memory_kernels=True,
    )
    # The percentage divides by the communication time: none gives NaN or nothing.
    try:
        overlap = float(
            CommunicationAnalysis.get_comm_comp_overlap(trace, visualize=False).iloc[0].iloc[1]
        )
    except (IndexError, KeyError, ZeroDivisionError, ValueError):
        overlap = None
    launches = CudaKernelAnalysis.cuda_kernel_launch_stats(
        trace, include_memory_events=False, visualize=False
    )[0]
    delays = launches["launch_delay"]
    return {
        "launched": len(launches),
        "launch_delay_median_us": float(delays.median()) if len(delays) else None,
        "queued_percent": float(100.0 * (delays > 10.0).mean()) if len(delays) else None,
        "small_percent": float(100.0 * (launches["gpu_duration"] < 50.0).mean())
        if len(launches)
        else None,
        "span_us": float(times["kernel_time(us)"]),
        "idle_us": float(times["idle_time(us)"]),
        "compute_us": float(times["compute_time(us)"]),
        "other_us": float(times["non_compute_time(us)"]),
        "overlap_percent": None if overlap is None or isnan(overlap) else overlap,
        "kernels": [
            {
                "name": row["name"],
                "type": row["kernel_type"],
                "sum_us": float(row["sum (us)"]),
                "max_us": float(row["max (us)"]),
                "min_us": float(row["min (us)"]),
                "mean_us": float(row["mean (us)"]),
            }
            for _, row in kernels.iterrows()
        ],
    }


if __name__ == "__main__":
    json.dump(figures(sys.argv[1], whole="whole" in sys.argv[2:]), sys.stdout)
