"""Simulated fleets for the benchmarks: as readings in memory, and as history for a Prometheus."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from engine.samples import Batch, RawSeries
from engine.simulate import FAULTS, Fault, Fleet
from engine.simulate.series import openmetrics_samples

STEP_S = 15.0
WINDOW_S = 900.0
_RAN_S = 3600.0
_STRUCK_S = 600.0
# Of series that no question reads, every fourth sample is enough to make the server hold them.
_SPARSE = 4

# What an exporter with a well-kept list of counters serves for each GPU.
FORTY = tuple(
    f"DCGM_FI_{name}"
    for name in (
        *("DEV_SM_CLOCK", "DEV_MEM_CLOCK", "DEV_CLOCK_THROTTLE_REASONS", "DEV_PSTATE"),
        *("DEV_GPU_TEMP", "DEV_GPU_MAX_OP_TEMP", "DEV_MEMORY_TEMP", "DEV_MEM_MAX_OP_TEMP"),
        *("DEV_POWER_USAGE", "DEV_POWER_MGMT_LIMIT", "DEV_POWER_MGMT_LIMIT_DEF"),
        *("DEV_ENFORCED_POWER_LIMIT", "DEV_TOTAL_ENERGY_CONSUMPTION", "DEV_POWER_VIOLATION"),
        *("DEV_THERMAL_VIOLATION", "DEV_XID_ERRORS", "DEV_FB_FREE", "DEV_FB_USED"),
        *("DEV_ECC_SBE_VOL_TOTAL", "DEV_ECC_DBE_VOL_TOTAL", "DEV_ECC_SBE_AGG_TOTAL"),
        *("DEV_ECC_DBE_AGG_TOTAL", "DEV_UNCORRECTABLE_REMAPPED_ROWS", "DEV_ROW_REMAP_FAILURE"),
        *("DEV_ROW_REMAP_PENDING", "DEV_GPU_UTIL", "DEV_MEM_COPY_UTIL"),
        *("DEV_PCIE_REPLAY_COUNTER", "DEV_PCIE_LINK_GEN", "DEV_PCIE_LINK_WIDTH"),
        *("DEV_NVLINK_BANDWIDTH_TOTAL", "DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL"),
        *("PROF_GR_ENGINE_ACTIVE", "PROF_SM_ACTIVE", "PROF_SM_OCCUPANCY"),
        *("PROF_PIPE_TENSOR_ACTIVE", "PROF_DRAM_ACTIVE", "PROF_PIPE_FP64_ACTIVE"),
        *("PROF_PCIE_TX_BYTES", "PROF_PCIE_RX_BYTES"),
    )
)


def moment(fleet: Fleet) -> float:
    """Return the moment to judge (Unix s): an hour into the simulation."""
    return fleet.start + _RAN_S


def one_in_eight_sick(nodes: int) -> Fleet:
    """Return nodes of 8 GPUs, one of them sick, with every fault of a single GPU in turn."""
    kinds = [name for name, effect in FAULTS.items() if not effect.node]
    struck = Fleet(nodes=1).start + _RAN_S - _STRUCK_S
    faults = [Fault(kinds[n % len(kinds)], f"node-{n}:{n % 8}", struck) for n in range(nodes)]
    return Fleet(nodes=nodes, gpus=8, faults=faults)


def batch(fleet: Fleet) -> Batch:
    """Return the last window of everything that a Prometheus would hold of a fleet."""
    at = moment(fleet)
    times, named = fleet.series(at - WINDOW_S, at, STEP_S)
    series = []
    for name, one in named:
        seen = one.present()
        if seen.any():
            series.append(RawSeries(name, one.labels, times[seen], one.values[seen]))
    return Batch(series, at, 1)


def forty_series(fleet: Fleet, asked: Sequence[str]) -> Iterator[str]:
    """Yield OpenMetrics with 40 series a GPU, every 15 s for the nodes that will be asked about.

    The other nodes have a sample a minute: they are there so that the server has as many series
    to choose from as a real one.
    """
    at = moment(fleet)
    times, named = fleet.series(at - WINDOW_S, at, STEP_S, node_exporter=False)
    stamps = [f"{t:.3f}" for t in times.tolist()]
    wanted, known, before = frozenset(FORTY), frozenset(asked), ""
    for name, one in named:
        if name not in wanted:
            continue
        if name != before:
            yield f"# TYPE {name} unknown\n"
            before = name
        if one.labels["Hostname"] in known:
            yield openmetrics_samples(name, one, stamps)
        else:
            thin = replace(one, values=one.values[::_SPARSE], ok=one.ok[::_SPARSE])
            yield openmetrics_samples(name, thin, stamps[::_SPARSE])
    yield "# EOF\n"
