"""One fault in an otherwise healthy node: it is named first, and its neighbours are left alone."""

from __future__ import annotations

from functools import cache

import pytest

from engine.model import Verdict, Why
from engine.samples import RawSeries
from engine.simulate import DEFAULT_START, FAULTS, Fault, Fleet, Profile
from tests.support.memory import MemorySource
from tests.support.readings import causes, engine, notes, of_fleet

AT = DEFAULT_START + 1500.0
# Long enough for every symptom's window of five minutes, within the fifteen of an Xid.
SINCE = AT - 9 * 60.0
# One GPU whose readings stop while its siblings' go on: that is what a lost GPU looks like.
NAMED = {"stale_data": "gpu_off_bus"}
# Readings that no rule looks at: the GPU is healthy as far as its own readings go.
UNSEEN = {"cpu_starved"}
# What may be named where a stock exporter has no reading that tells the two apart: then the true
# cause is offered as an alternative.
STOCK_NAMES = {
    "fp64_fallback": "tensor_cores_unused",
    "launch_bound": "tensor_cores_unused",
    "low_occupancy": "tensor_cores_unused",
    "thermal_slowdown_sw": "cooling_outlier",
}
# Visibly slow, and nothing exported says why; and slow in a way that no stock reading shows.
STOCK_UNKNOWN = {
    "clocks_locked",
    "platform_power_cap",
    "power_brake",
    "power_limit_lowered",
    "sync_boost_held",
}
STOCK_BLIND = {
    "clock_ramp",
    "launch_bound",
    "low_occupancy",
    "nvlink_errors",
    "nvswitch_fault",
    "pcie_degraded",
}


@cache
def sick_nodes(profile: Profile, seed: int = 0) -> dict[str, MemorySource]:
    """Return for each fault the readings of a node of four GPUs that has this fault alone."""
    nodes = {cause: f"node-{k}" for k, cause in enumerate(sorted(FAULTS))}
    fleet = Fleet(
        nodes=len(nodes),
        gpus=4,
        seed=seed,
        workloads=("training",),
        profile=profile,
        faults=[
            Fault(cause, node if FAULTS[cause].node else f"{node}:3", SINCE)
            for cause, node in nodes.items()
        ],
    )
    of_node: dict[str, list[RawSeries]] = {node: [] for node in nodes.values()}
    for one in of_fleet(fleet, AT - 960.0, AT):
        of_node[one.labels["instance"].partition(":")[0]].append(one)
    return {cause: MemorySource(of_node[node]) for cause, node in nodes.items()}


async def ask(cause: str, profile: Profile, seed: int = 0) -> Why:
    """Ask about the GPU that has a fault, or about one GPU of the node that has it."""
    node = sorted(FAULTS).index(cause)
    return await engine().why(f"node-{node}:3", sick_nodes(profile, seed)[cause], at=AT)


def names(answer: Why, cause: str) -> bool:
    """Return whether a cause comes first, or is noted or said to blind us where nothing is wrong."""
    if answer.diagnoses:
        return causes(answer)[0] == cause
    return cause in notes(answer) or cause in {u.cause for u in answer.unknown}


@pytest.mark.parametrize("cause", sorted(set(FAULTS) - UNSEEN))
@pytest.mark.parametrize(
    "profile",
    [
        pytest.param(Profile(), id="full"),
        pytest.param(Profile(percent=True, exported_pod=True, collect_s=30.0), id="percent"),
    ],
)
async def test_a_fault_is_named_first_and_its_neighbours_are_not_blamed(cause, profile):
    answer = await ask(cause, profile)
    if cause == "metrics_missing":  # exported nine minutes ago, and no more
        assert "throttle_reasons" in {u.needs for u in answer.unknown}
    else:
        assert names(answer, NAMED.get(cause, cause)), causes(answer)
    if not FAULTS[cause].node:
        found = await engine().sweep(sick_nodes(profile)[cause], at=AT)
        assert {m.name for i in found.incidents for m in i.members} <= {answer.target.name}


@pytest.mark.parametrize("cause", sorted(UNSEEN))
async def test_what_no_rule_looks_at_blames_nothing_else(cause):
    answer = await ask(cause, Profile())
    assert causes(answer) == []


@pytest.mark.parametrize("cause", sorted(set(FAULTS) - UNSEEN - {"power_bound"}))
async def test_behind_a_stock_exporter_a_fault_is_named_or_known_to_be_unseen(cause):
    answer = await ask(cause, Profile(fields="stock", collect_s=30.0))
    blocked = any(cause in u.blocks for u in answer.unknown)
    if cause in STOCK_UNKNOWN:
        assert answer.verdict is Verdict.UNKNOWN
        assert blocked
    elif cause in STOCK_BLIND and not answer.diagnoses:
        assert blocked
    elif not names(answer, NAMED.get(cause, cause)):
        assert causes(answer)[:1] == [STOCK_NAMES.get(cause)]
        assert cause in {a.cause for a in answer.diagnoses[0].alternatives}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    "cause", ["clocks_locked", "cooling_outlier", "nvlink_degraded", "node_airflow"]
)
async def test_faults_judged_against_siblings_are_found_whatever_the_noise(cause, seed):
    answer = await ask(cause, Profile(), seed)
    assert names(answer, cause), causes(answer)
