"""A healthy fleet raises nothing: noise, idle, warm-up, decode, checkpoints, every exporter."""

from __future__ import annotations

import pytest

from engine.simulate import DEFAULT_START, DEMO_SPAN_S, Fault, Fleet, Profile, demo_fleet
from tests.support.memory import MemorySource
from tests.support.readings import engine, incidents, of_fleet

WORKLOADS = ("training", "decode", "ragged", "warm_up", "compute", "idle")
PROFILES = {
    "full": Profile(),
    "stock": Profile(fields="stock", collect_s=30.0),
    "canonical names": Profile(names="canonical"),
    "hostname": Profile(host_label="hostname"),
    "no host label": Profile(host_label=""),
    "percent": Profile(percent=True),
    "blanks": Profile(leak_blanks=True),
    "exported_pod": Profile(exported_pod=True),
    "no pods": Profile(pods=False),
    "no Xid before the first": Profile(xid_absent=True),
    "collected once a minute": Profile(collect_s=60.0),
}
CASES = [
    *(("h100_sxm", name) for name in PROFILES),
    *((model, name) for model in ("h200_sxm", "a100_sxm_80", "l40s") for name in ("full", "stock")),
]


@pytest.mark.parametrize("minutes", [16, 41])
@pytest.mark.parametrize(("model", "profile"), CASES)
async def test_a_healthy_fleet_raises_nothing(model, profile, minutes):
    fleet = Fleet(
        nodes=6, gpus=4, seed=7, model=model, workloads=WORKLOADS, profile=PROFILES[profile]
    )
    at = DEFAULT_START + 60.0 * minutes
    found = await engine().sweep(MemorySource(of_fleet(fleet, at - 960.0, at)), at=at)
    assert incidents(found) == {}
    assert found.unseen == ()
    assert found.verdicts["idle"] >= 4
    assert found.checked == {"gpu": 24, "node": 6}
    assert bool(found.warnings) is (profile == "percent")


@pytest.mark.parametrize("seed", [1, 2])
async def test_the_demonstration_with_other_noise_has_the_same_ten_faults(seed):
    fleet = demo_fleet(seed=seed)
    at = fleet.start + DEMO_SPAN_S
    found = await engine().sweep(MemorySource(of_fleet(fleet, at - 1200.0, at)), at=at)
    assert incidents(found) == {(p.cause, p.entity): list(p.members) for p in fleet.planted}
    assert found.verdicts == {"degraded": 17, "healthy": 38, "idle": 9, "unknown": 0}


async def test_mig_slices_and_shared_boards_are_told_apart():
    """A partitioned board carries several pods by design; two pods on a whole one do not."""
    at = DEFAULT_START + 3600.0
    faults = (Fault("mig_slice", "node-0:1", at - 1500.0),)
    fleet = Fleet(nodes=1, gpus=4, workloads=("decode",), faults=faults)
    found = await engine().sweep(MemorySource(of_fleet(fleet, at - 1200.0, at)), at=at)
    assert incidents(found) == {}
    assert found.checked["gpu"] == 4
