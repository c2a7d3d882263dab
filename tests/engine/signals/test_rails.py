"""Which ports are one rail: the same port of hosts with the same GPUs."""

from __future__ import annotations

from engine.model import Entity, Kind
from engine.signals.rails import kinds, rails


def gpu(host: str, model: str | None, index: int = 0, cluster: str | None = None) -> Entity:
    return Entity(Kind.GPU, f"{host}:{index}", cluster, host, gpu=index, model=model)


def port(host: str, name: str, cluster: str | None = None) -> Entity:
    return Entity(Kind.NODE, f"{host} {name}", cluster, host, instance=name)


def test_the_same_port_of_hosts_with_the_same_gpus_is_a_rail():
    kind_of = kinds([gpu("a", "H100"), gpu("b", "H100"), gpu("c", "A100")])
    ports = [port(host, name) for host in "abc" for name in ("mlx5_0/1", "mlx5_1/1")]
    assert rails(ports, kind_of).tolist() == [0, 1, 0, 1, 2, 3]


def test_hosts_of_no_known_kind_have_no_peers():
    kind_of = kinds([gpu("a", None), gpu("b", None), gpu("c", "H100"), gpu("d", "H100")])
    found = rails([port(host, "mlx5_0/1") for host in "abcd"], kind_of).tolist()
    assert found[2] == found[3]
    assert len(set(found)) == 3


def test_a_host_with_two_models_is_a_kind_of_its_own():
    kind_of = kinds([gpu("a", "H100"), gpu("a", "A2", 1), gpu("b", "H100"), gpu("c", "H100")])
    found = rails([port(host, "mlx5_0/1") for host in "abc"], kind_of).tolist()
    assert found[0] != found[1] == found[2]


def test_clusters_are_kept_apart():
    kind_of = kinds([gpu("a", "H100", cluster="x"), gpu("a", "H100", cluster="y")])
    found = rails([port("a", "mlx5_0/1", "x"), port("a", "mlx5_0/1", "y")], kind_of).tolist()
    assert found == [0, 1]
