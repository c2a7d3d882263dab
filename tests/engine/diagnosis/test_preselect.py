"""What has to be asked about a GPU before any cause can be found at it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine.catalogue.types import Pattern
from engine.diagnosis.preselect import Need, needs_of, reduced, suspicious
from engine.diagnosis.sweephosts import odd_hosts, rosters, rows_of
from engine.model import Class
from tests.support.readings import catalogue


def need(*all_: str, any_: tuple[str, ...] = ()) -> Need:
    return Need(frozenset(all_), frozenset(any_))


def test_every_cause_that_is_told_has_a_need_but_benign_ones_have_none():
    causes = catalogue().causes
    asked = {symptom for one in needs_of(causes) for symptom in one.symptoms}
    for rule in causes.values():
        for pattern in rule.patterns:
            own = {s for s in (*pattern.all, *pattern.any) if not s.startswith("cause/")}
            assert rule.class_ is Class.BENIGN or not own or own & asked, rule.id
    benign = {s for p in causes["compute_bound"].patterns for s in p.all} - {"busy"}
    assert not benign & asked


def test_of_several_comparisons_in_a_pattern_the_first_is_asked():
    rule = catalogue().causes["nvlink_degraded"]
    pattern = Pattern(all=("nvlink_slower_than_siblings", "works_like_siblings", "busy"))
    causes = {rule.id: replace(rule, patterns=(pattern,))}
    (one,) = needs_of(causes, {"nvlink_slower_than_siblings", "works_like_siblings"})
    assert one.all == {"nvlink_slower_than_siblings", "busy"}


def test_what_is_settled_is_not_asked():
    found = reduced([need("a", "b"), need("c", "d")], frozenset({"c"}), frozenset({"b"}))
    assert found == [need("a")]


def test_a_weaker_need_absorbs_a_stronger_one():
    assert reduced([need("a", "b"), need("a")], frozenset(), frozenset()) == [need("a")]


def test_a_need_with_nothing_left_makes_everybody_suspicious():
    assert reduced([need("a"), need("b")], frozenset(), frozenset({"a"})) is None


def test_any_of_several_symptoms_will_do():
    (one,) = reduced([need("a", any_=("b", "c"))], frozenset({"x"}), frozenset()) or ()
    may_be = {
        "a": np.array([True, True, False]),
        "b": np.array([True, False, True]),
        "c": np.array([False, False, True]),
    }
    assert suspicious([one], may_be, 3).tolist() == [True, False, False]
    assert reduced([need(any_=("b", "c"))], frozenset({"b"}), frozenset()) == [need("c")]


# --- hosts that a server cannot be asked about as a whole


def gpu(host: str, index: int, **labels: str) -> dict[str, str]:
    usual = {"Hostname": host, "gpu": str(index), "UUID": f"GPU-{host}-{index}"}
    return {**usual, "instance": f"{host}:9400", **labels}


def odd(*found: dict[str, str]) -> set[str]:
    plain = [gpu("plain", k) for k in range(4)]
    return {host for _, host in odd_hosts(rows_of([*plain, *found]))}


def test_plain_hosts_are_not_odd():
    assert odd(gpu("a", 0), gpu("a", 1)) == set()


def test_two_exporters_of_one_gpu_make_a_host_odd():
    assert odd(gpu("a", 0), gpu("a", 0, instance="a:9835")) == {"a"}


def test_a_swapped_board_makes_a_host_odd():
    assert odd(gpu("a", 0), gpu("a", 0, UUID="GPU-new")) == {"a"}


def test_a_board_that_moved_makes_both_hosts_odd():
    assert odd(gpu("a", 0), gpu("b", 3, UUID="GPU-a-0")) == {"a", "b"}


def test_a_name_in_two_clusters_makes_a_host_odd():
    again = gpu("a", 1, cluster="west", UUID="GPU-w")
    assert odd(gpu("a", 0, cluster="east"), again) == {"a"}


def test_labels_that_differ_within_a_host_make_it_odd():
    other = {"Hostname": "a", "gpu_id": "1", "uuid": "GPU-x", "instance": "a:9400"}
    assert odd(gpu("a", 0), other) == {"a"}


def test_hosts_that_are_labelled_alike_make_one_roster():
    rows = rows_of([gpu("a", 0), gpu("b", 0), {"instance": "c:9835", "uuid": "GPU-c"}])
    first, second = rosters(rows, odd_hosts(rows))
    assert (first.entity, first.host, sorted(first.hosts)) == (("UUID",), "Hostname", ["a", "b"])
    assert (second.entity, second.host, list(second.hosts)) == (("uuid",), "instance", ["c:9835"])
    assert second.absent == ("Hostname", "hostname", "node", "nodename", "kubernetes_node", "UUID")
