"""Red herrings look odd, and are nothing."""

import numpy as np

from engine.simulate import Fleet, Herring
from engine.simulate.fleet import HERRINGS

START = 1764432000.0
AT = START + 1800.0


def fleet_with(kind: str, workload: str = "training", since: float = AT - 300.0) -> Fleet:
    herring = Herring(kind, "node-0:1", since)
    return Fleet(1, 3, workloads=(workload,), herrings=(herring,))


def test_they_do_not_count_as_faults() -> None:
    for kind in HERRINGS:
        fleet = fleet_with(kind)
        assert fleet.planted == ()
        assert fleet.healthy == fleet.gpus


def test_an_old_xid_stays_in_the_gauge_and_never_changes() -> None:
    text = "".join(fleet_with("old_xid", since=START - 1e6).openmetrics(AT - 900.0, AT))
    values = {
        v.split()[-2]
        for v in text.splitlines()
        if v.startswith("DCGM_FI_DEV_XID_ERRORS{") and 'gpu="1"' in v
    }
    assert values == {"31"}
    assert 'xid="31"' not in text


def test_the_power_cap_bit_shows_only_at_idle() -> None:
    idle, busy = fleet_with("idle_power_cap", "idle"), fleet_with("idle_power_cap")
    masks = [int(f.views(np.array([AT]), [0])[0].rows["mask"][0, 1]) for f in (idle, busy)]
    assert masks == [0x5, 0x0]


def test_lifetime_ecc_stands_still(by_gpu) -> None:
    fleet = fleet_with("old_ecc")
    first, last = (by_gpu(fleet.exposition("node-0", t)) for t in (START, AT))
    for name in ("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL"):
        assert first[name]["1"] == last[name]["1"] > 0
    assert last["DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"]["1"] == 0


def test_a_warm_sample_is_one_reading_below_the_limit() -> None:
    rows = fleet_with("warm_sample").views(np.arange(AT - 600.0, AT, 15.0), [0])[0].rows
    warm = rows["die_c"][:, 1] >= 84
    assert warm.sum() == 1
    assert rows["die_c"].max() < 87
    assert not rows["mask"].any()


def test_a_wild_sample_is_one_impossible_reading() -> None:
    rows = fleet_with("wild_sample").views(np.arange(AT - 600.0, AT, 15.0), [0])[0].rows
    assert (rows["gpu_util"][:, 1] == 4294967295).sum() == 1
    assert ((rows["gpu_util"] <= 100) | (rows["gpu_util"] == 4294967295)).all()


def test_pcie_generation_drops_at_idle_and_width_does_not() -> None:
    rows = fleet_with("idle_pcie_gen").views(np.array([AT]), [0])[0].rows
    assert rows["link_gen"][0].tolist() == [5, 1, 5]
    assert (rows["link_width"] == 16).all()
