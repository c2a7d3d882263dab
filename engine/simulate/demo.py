"""The demonstration fleet: ten different faults, red herrings, and healthy but restless nodes."""

from __future__ import annotations

from engine.simulate.exporter import Profile
from engine.simulate.faults import Fault, Herring
from engine.simulate.fleet import DEFAULT_START, Fleet

# History before the moment that is looked at.
DEMO_SPAN_S = 3600.0


def demo_fleet(seed: int = 0, start: float = DEFAULT_START) -> Fleet:
    """Return 8 nodes of 8 GPUs with ten planted faults.

    The moment to look at is ``start + DEMO_SPAN_S``: by then every fault shows, and those that
    begin with an Xid began within the last ten minutes.

    Node 0 trains and is healthy, node 6 idles, node 7 serves tokens behind a stock exporter; red
    herrings sit on nodes 0, 2 and 6. The exporters differ: node 2 writes the newer metric names,
    node 3 the lower-case host label, node 5 leaks DCGM's blank values.
    """
    now = start + DEMO_SPAN_S

    def fault(cause: str, target: str, minutes_ago: float, severity: float = 1.0) -> Fault:
        return Fault(cause, target, now - 60.0 * minutes_ago, severity)

    def herring(kind: str, target: str, minutes_ago: float) -> Herring:
        return Herring(kind, target, now - 60.0 * minutes_ago)

    return Fleet(
        nodes=8,
        gpus=8,
        seed=seed,
        start=start,
        models={"node-4": "h200_sxm", "node-6": "l40s", "node-7": "a100_sxm_80"},
        workload_of={
            "node-0": "training", "node-1": "decode", "node-2": "training", "node-3": "training",
            "node-4": "decode", "node-5": "training", "node-6": "idle", "node-7": "decode",
            "node-0:7": "ragged",
        },
        profiles={
            "node-2": Profile(names="canonical", host_label="hostname"),
            "node-3": Profile(host_label="hostname"),
            "node-5": Profile(leak_blanks=True),
            "node-7": Profile(fields="stock", collect_s=30.0),
        },
        faults=(
            fault("power_brake", "node-1", 25),
            fault("thermal_slowdown_hw", "node-2:3", 30),
            fault("tensor_cores_unused", "node-2:6", 40),
            fault("power_limit_lowered", "node-3:5", 45, 0.6),
            fault("clocks_locked", "node-3:1", 50, 0.7),
            fault("gpu_off_bus", "node-4:7", 7),
            fault("pcie_degraded", "node-4:2", 35),
            fault("ecc_uncorrectable", "node-5:4", 8),
            fault("nvlink_errors", "node-5:0", 30),
            fault("memory_overheat", "node-5:6", 30),
        ),
        herrings=(
            herring("old_xid", "node-0:2", 4000),
            herring("old_ecc", "node-0:5", 4000),
            herring("warm_sample", "node-2:1", 4),
            herring("wild_sample", "node-0:3", 6),
            herring("idle_power_cap", "node-6:1", 30),
            herring("idle_pcie_gen", "node-0:4", 20),
        ),
    )  # fmt: skip
