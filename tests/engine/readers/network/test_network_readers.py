"""Readers of network tools: every sample is known, damage and noise do no harm."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.catalogue import Catalogue
from engine.readers.network import NETWORK_READERS
from tests.engine.readers.conftest import ReadText
from tests.support.listings import SAMPLES, faults_of_damage, said_of

# Sample in tests/data/read, the kind it is of, and its first cause.
KNOWN = {
    "ibstat.txt": ("ibstat", "ib_link_down"),
    "ibstatus.txt": ("ibstatus", "ib_link_degraded"),
    "ibv-devinfo.txt": ("ibv_devinfo", "ib_link_down"),
    "rdma-link.txt": ("rdma_link", None),
    "rdma-link.json": ("rdma_link", None),
    "iblinkinfo.txt": ("iblinkinfo", "ib_link_degraded"),
    "ibdiagnet.txt": ("ibdiagnet", "ib_link_degraded"),
    "perfquery.txt": ("perfquery", "ib_link_degraded"),
    "ibqueryerrors.txt": ("ibqueryerrors", None),
    "mlxlink.txt": ("mlxlink", "ib_link_degraded"),
    "show-gids.txt": ("show_gids", "rdma_unreachable"),
    "rdma-statistic.txt": ("rdma_statistic", "network_congestion"),
    "infiniband-counters.txt": ("rdma_statistic", None),
    "ethtool.txt": ("ethtool", "ib_link_degraded"),
    "ethtool-s.txt": ("ethtool_stats", "ib_link_degraded"),
    "ip-s-link.txt": ("ip_link", None),
    "nstat.txt": ("tcp_counters", None),
    "netstat-s.txt": ("tcp_counters", None),
    "ss-ti.txt": ("ss", "network_congestion"),
    "perftest.txt": ("perftest", None),
    "perftest-lat.txt": ("perftest", None),
    "iperf3.txt": ("iperf3", None),
    "iperf3.json": ("iperf3", None),
    "nvbandwidth.txt": ("copy_bandwidth", "pcie_degraded"),
    "p2p-bandwidth-latency.txt": ("copy_bandwidth", "p2p_disabled"),
    "bandwidth-test.txt": ("copy_bandwidth", None),
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_sample_is_known_by_its_kind_alone(name: str, read_text: ReadText) -> None:
    kind, cause = KNOWN[name]
    answer = read_text((SAMPLES / name).read_text(encoding="utf-8"))
    assert answer.kinds == (kind,)
    assert answer.causes[:1] == ((cause,) if cause else ())


@pytest.mark.parametrize("name", [n for n in KNOWN if n.endswith(".txt")])
def test_a_damaged_sample_is_read_as_far_as_it_goes(name: str, catalogue: Catalogue) -> None:
    assert faults_of_damage(NETWORK_READERS, name, catalogue) == []


@given(lines=st.lists(st.text(max_size=80), max_size=30))
def test_random_text_has_no_finding(lines: list[str], catalogue: Catalogue) -> None:
    assert said_of(NETWORK_READERS, lines, catalogue) == []


def test_hosts_of_a_parallel_shell_are_told_apart(read_text: ReadText) -> None:
    text = (SAMPLES / "ibstat.txt").read_text(encoding="utf-8")
    sound = text.replace("Down", "Active").replace("Polling", "LinkUp").replace("10\n", "400\n")
    both = zip(text.splitlines(), sound.splitlines(), strict=True)
    answer = read_text("\n".join(f"node-1: {a}\nnode-2: {b}" for a, b in both))
    assert answer.causes == ("ib_link_down",)
    entity = answer.findings[0].entity
    assert entity is not None
    assert entity.name == "node-1"


def test_addresses_are_not_repeated(read_text: ReadText) -> None:
    for name in ("ss-ti.txt", "show-gids.txt", "iperf3.txt"):
        answer = read_text((SAMPLES / name).read_text(encoding="utf-8"))
        said = " ".join(f"{f.says} {f.action} {dict(f.data)}" for f in answer.findings)
        assert "10.0." not in said
        assert "127.0.0.1" not in said


def test_more_records_than_are_kept_are_counted(read_text: ReadText) -> None:
    line = "link mlx5_{}/1 state ACTIVE physical_state LINK_UP netdev e{}\n"
    answer = read_text("".join(line.format(i, i) for i in range(5_000)))
    assert answer.kinds == ("rdma_link",)
    assert answer.causes == ()
    assert any("counted only" in note for note in answer.notes)
