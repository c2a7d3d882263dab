"""A host that some series name only by the address at which they were scraped."""

from __future__ import annotations

import pytest

from engine.signals.hosts import addresses, host_of
from engine.signals.labels import locate


def uname(instance: str, nodename: str) -> dict[str, str]:
    return {"instance": instance, "nodename": nodename}


def test_the_kernel_says_whose_address_it_is():
    assert addresses([uname("10.0.0.3:9100", "node-3")], []) == {"10.0.0.3": "node-3"}


@pytest.mark.parametrize(
    ("said", "known"), [("node-3.example.com", "node-3"), ("node-3", "node-3.example.com")]
)
def test_the_host_is_spelled_as_the_gpus_spell_it(said, known):
    place = locate({"gpu": "0", "Hostname": known})
    assert addresses([uname("10.0.0.3:9100", said)], [place]) == {"10.0.0.3": known}


def test_a_gpu_exporter_at_the_same_address_says_it_too():
    place = locate({"gpu": "0", "Hostname": "node-3", "instance": "10.0.0.3:9400"})
    found = addresses([], [place])
    assert host_of("node_load1", {"instance": "10.0.0.3:9100"}, found) == "node-3"


def test_an_address_of_several_hosts_tells_nothing():
    places = [
        locate({"gpu": "0", "Hostname": host, "instance": "gateway:9091"}) for host in ("a", "b")
    ]
    assert addresses([], places) == {}


def test_labels_that_name_the_host_count_more_than_its_address():
    labels = {"instance": "10.0.0.3:9100", "node": "node-4"}
    assert host_of("node_load1", labels, {"10.0.0.3": "node-3"}) == "node-4"


def test_the_number_of_a_numa_node_is_no_host():
    labels = {"instance": "10.0.0.3:9100", "node": "0"}
    name = "node_memory_numa_other_node_total"
    assert host_of(name, labels, {"10.0.0.3": "node-3"}) == "node-3"
    assert host_of(name, {"instance": "node-3:9100", "node": "1"}, {}) == "node-3"
