"""Incidents open when they last, change in place, close when they are gone, and come back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.history import EventKind, Holds, State, advance
from engine.model import Confidence, Effect, Severity
from tests.support.sightings import AT_ONCE, HOLDS, NOW, WATCH, incident, sight


class Watched:
    """A watch whose looks are made by hand, at seconds after its start."""

    def __init__(self, holds: Holds = HOLDS) -> None:
        self.holds = holds
        self.known = ()
        self.events = []

    def look(self, at, *incidents, unread=()):
        seen = sight(*incidents, unread=unread)
        step = advance(self.known, seen, NOW + at, holds=self.holds, watch=WATCH)
        self.known = step.known
        self.events += step.events
        return [event.event.value for event in step.events]

    @property
    def only(self):
        (one,) = self.known
        return one


def test_an_incident_opens_only_when_it_has_lasted():
    watched = Watched()
    assert watched.look(0, incident()) == []
    assert watched.look(60, incident()) == []
    assert watched.look(119, incident()) == []
    assert watched.look(120, incident()) == ["opened"]
    assert watched.look(180, incident()) == []
    event = watched.events[0]
    assert (event.opened_at, event.times, event.revision) == (NOW + 120, 1, 1)
    assert event.incident.diagnosis.entity.name == "node-1:0"


def test_one_look_without_it_begins_the_hold_anew():
    watched = Watched()
    watched.look(0, incident())
    watched.look(60)
    assert watched.known == ()
    assert watched.look(120, incident()) == []
    assert watched.look(239, incident()) == []
    assert watched.look(240, incident()) == ["opened"]


def test_a_look_that_could_not_see_it_neither_opens_nor_forgets():
    watched = Watched()
    watched.look(0, incident())
    assert watched.look(130, unread=["node-1:0"]) == []
    assert watched.look(180, incident()) == ["opened"]


def test_it_closes_only_when_it_has_been_absent():
    watched = Watched()
    watched.look(0, incident())
    watched.look(120, incident())
    assert watched.look(180) == []
    assert watched.look(479) == []
    assert watched.look(480) == ["closed"]
    assert watched.events[-1].closed_at == NOW + 480
    assert watched.events[-1].says == "not found for 6 min; it opened 6 min ago"


def test_one_look_with_it_begins_the_absence_anew():
    watched = Watched()
    watched.look(0, incident())
    watched.look(120, incident())
    watched.look(180)
    watched.look(400, incident())
    assert watched.look(500) == []
    assert watched.look(799) == []
    assert watched.look(800) == ["closed"]
    assert len(watched.events) == 2


def test_what_cannot_be_read_does_not_close():
    watched = Watched()
    watched.look(0, incident())
    watched.look(120, incident())
    assert watched.look(180, unread=["node-1:0"]) == []
    assert watched.look(480, unread=["node-1:0"]) == ["changed"]
    assert "stays open" in watched.events[-1].says
    assert watched.look(5000, unread=["node-1:0"]) == []
    # It can be read again, and is gone: the hold counts from here.
    assert watched.look(5060) == ["changed"]
    assert watched.events[-1].changes == ("can be read again",)
    assert watched.look(5359) == []
    assert watched.look(5360) == ["closed"]


def test_a_single_unreadable_look_begins_the_absence_anew():
    watched = Watched()
    watched.look(0, incident())
    watched.look(120, incident())
    watched.look(180)
    watched.look(400, unread=["node-1:0"])
    assert watched.look(481) == []
    assert watched.look(781) == ["closed"]


def test_a_machine_that_is_gone_for_good_is_given_up_and_not_called_healthy():
    watched = Watched()
    watched.look(0, incident())
    watched.look(120, incident())
    watched.look(180, unread=["node-1:0"])
    watched.look(600, unread=["node-1:0"])
    assert watched.look(180 + 86400, unread=["node-1:0"]) == ["closed"]
    assert watched.events[-1].says.endswith("given up, not known to be healthy")


def test_an_incident_that_comes_back_soon_is_the_same_with_a_count():
    watched = Watched()
    watched.look(0, incident())
    watched.look(120, incident())
    watched.look(180)
    watched.look(480)
    assert watched.look(1000, incident()) == []
    assert watched.look(1120, incident()) == ["reopened"]
    opened, _, again = watched.events
    assert again.id == opened.id
    assert (again.times, again.revision, again.opened_at) == (2, 3, opened.opened_at)


def test_an_incident_that_flickers_after_it_closed_stays_closed():
    watched = Watched()
    watched.look(0, incident())
    watched.look(120, incident())
    watched.look(180)
    watched.look(480)
    for k in range(20):
        assert watched.look(500 + 60 * k, *([incident()] if k % 2 else [])) == []


def test_an_incident_that_comes_back_late_is_another_one():
    watched = Watched()
    watched.look(0, incident())
    watched.look(120, incident())
    watched.look(180)
    watched.look(480)
    assert watched.look(480 + 3601) == []
    assert watched.known == ()
    watched.look(5000, incident())
    assert watched.look(5120, incident()) == ["opened"]
    assert watched.events[0].id != watched.events[-1].id
    assert watched.events[-1].times == 1


def test_two_causes_on_one_gpu_are_two_incidents():
    watched = Watched(AT_ONCE)
    assert watched.look(0, incident(), incident(cause="memory_overheat")) == ["opened", "opened"]
    assert watched.look(60, incident(cause="memory_overheat")) == ["closed"]
    assert watched.events[-1].incident.diagnosis.cause == "power_brake"


def test_other_numbers_in_its_sentence_are_no_change():
    watched = Watched(AT_ONCE)
    watched.look(0, incident(says="die 90 °C"))
    assert watched.look(60, incident(says="die 91 °C")) == []
    assert watched.only.diagnosis.says == "die 91 °C"


def test_worse_is_told_at_once_and_better_once_it_lasts():
    watched = Watched()
    watched.look(0, incident(severity=Severity.HIGH))
    watched.look(120, incident(severity=Severity.HIGH))
    assert watched.look(180, incident(severity=Severity.CRITICAL)) == ["changed"]
    assert watched.events[-1].changes == ("severity critical, was high",)
    for at in (240, 300, 360):
        assert watched.look(at, incident(severity=Severity.HIGH)) == []
    assert watched.look(540, incident(severity=Severity.HIGH)) == ["changed"]
    assert watched.only.severity is Severity.HIGH


def test_confidence_that_flickers_is_not_told_again_and_again():
    watched = Watched()
    watched.look(0, incident())
    watched.look(120, incident())
    told = [
        watched.look(
            180 + 60 * k, incident(confidence=Confidence.LIKELY if k % 2 else Confidence.CERTAIN)
        )
        for k in range(20)
    ]
    assert not any(told)


def test_members_join_and_leave_when_they_last():
    watched = Watched()
    both, one = ("node-1:0", "node-1:1"), ("node-1:0",)
    watched.look(0, incident(members=one))
    watched.look(120, incident(members=one))
    assert watched.look(180, incident(members=both)) == []
    assert watched.look(300, incident(members=both)) == ["changed"]
    assert watched.events[-1].changes == ("also on node-1:1",)
    assert watched.look(360, incident(members=one)) == []
    assert watched.look(599, incident(members=one)) == []
    assert watched.look(600, incident(members=one)) == ["changed"]
    assert watched.events[-1].changes == ("no longer on node-1:1",)


def test_a_member_that_cannot_be_read_stays():
    watched = Watched(replace(HOLDS, open_s=0.0))
    watched.look(0, incident(members=("node-1:0", "node-1:1")))
    for k in range(1, 20):
        assert watched.look(60 * k, incident(), unread=["node-1:1"]) == []
    assert [m.name for m in watched.only.shown().members] == ["node-1:0", "node-1:1"]


def test_an_incident_that_a_sweep_lists_twice_is_one():
    watched = Watched(AT_ONCE)
    twice = (incident(members=("node-1:0",)), incident(members=("node-1:1",)))
    assert watched.look(0, *twice) == ["opened"]
    assert [m.name for m in watched.events[0].incident.members] == ["node-1:0", "node-1:1"]


def rack(*nodes, unless=()):
    """Return what a sweep has of braked nodes of one rack: one incident from two on."""
    nodes = [node for node in nodes if node not in unless]
    if len(nodes) > 1:
        return [incident(name="rack/r1", members=[f"{node}:0" for node in nodes])]
    return alone(*nodes)


def alone(*nodes):
    return [incident(name=node, members=[f"{node}:0"]) for node in nodes]


def told(watched):
    return [(e.event.value, e.incident.diagnosis.entity.name, e.changes) for e in watched.events]


def ids(watched):
    return {event.id for event in watched.events}


def test_a_node_whose_rack_has_it_goes_on_as_the_rack():
    watched = Watched(AT_ONCE)
    watched.look(0, *alone("node-1"))
    assert watched.look(60, *rack("node-1", "node-2")) == ["changed"]
    assert watched.events[-1].changes == ("now rack/r1, was node-1", "also on node-2:0")
    assert len(ids(watched)) == 1


def test_a_rack_of_which_one_node_is_left_goes_on_as_the_node():
    watched = Watched(AT_ONCE)
    watched.look(0, *rack("node-1", "node-2"))
    assert watched.look(60, *alone("node-2")) == ["changed"]
    assert watched.events[-1].changes == ("now node-2, was rack/r1", "no longer on node-1:0")
    assert len(ids(watched)) == 1


@pytest.mark.parametrize("phase", [0, 1])
def test_a_fault_that_lasts_is_told_once_though_its_rack_comes_and_goes(phase):
    watched = Watched()
    for k in range(40):
        nodes = ("node-1", "node-2") if k % 2 == phase else ("node-1",)
        watched.look(60 * k, *rack(*nodes))
    assert [kind for kind, *_ in told(watched)] == ["opened"]
    assert watched.events[0].at == NOW + 120


@pytest.mark.parametrize("phase", [0, 1])
def test_nodes_that_are_put_together_in_each_other_look_are_each_told_once(phase):
    watched = Watched()
    nodes = ("node-1", "node-2", "node-3")
    for k in range(40):
        watched.look(60 * k, *(rack(*nodes) if k % 2 == phase else alone(*nodes)))
    assert {kind for kind, *_ in told(watched)} == {"opened"}
    members = [m.name for e in watched.events for m in e.incident.members]
    assert sorted(members) == [f"{node}:0" for node in nodes]


def test_a_rack_that_comes_and_goes_more_slowly_is_told_when_it_lasts():
    watched = Watched()
    for k in range(30):
        watched.look(60 * k, *rack("node-1", *(["node-2"] if 5 <= k < 12 else [])))
    assert told(watched) == [
        ("opened", "node-1", ()),
        ("changed", "rack/r1", ("now rack/r1, was node-1", "also on node-2:0")),
        ("changed", "node-1", ("now node-1, was rack/r1", "no longer on node-2:0")),
    ]
    assert [event.at - NOW for event in watched.events] == [120, 300 + 120, 720 + 300]
    assert len(ids(watched)) == 1


def test_of_a_rail_that_falls_apart_because_a_host_is_dark_nothing_is_told_twice():
    watched = Watched()
    nodes = ("node-1", "node-2", "node-3")
    for k in range(4):
        watched.look(60 * k, *rack(*nodes))
    for k in range(4, 40):
        watched.look(60 * k, *alone("node-1", "node-2"), unread=["node-3:0"])
    assert told(watched) == [
        ("opened", "rack/r1", ()),
        ("changed", "node-1", ("now node-1, was rack/r1", "no longer on node-2:0")),
        ("opened", "node-2", ()),
    ]
    assert [m.name for m in watched.events[1].incident.members] == ["node-1:0", "node-3:0"]
    assert watched.events[1].id == watched.events[0].id


def test_several_open_ones_that_become_one_close_when_that_is_told():
    watched = Watched()
    watched.look(0, *alone("node-2"))
    watched.look(60, *alone("node-1", "node-2"))
    for at in (120, 180):
        watched.look(at, *alone("node-1", "node-2"))
    for at in (240, 300):
        assert watched.look(at, *rack("node-1", "node-2"), unread=["node-1:0"]) == []
    assert watched.look(360, *rack("node-1", "node-2")) == ["changed", "closed"]
    changed, closed = watched.events[2:]
    assert changed.changes == ("now rack/r1, was node-2", "also on node-1:0")
    assert closed.says == "not over: it goes on as that of rack/r1"
    assert closed.incident.diagnosis.entity.name == "node-1"
    # And apart again: each is the one that it was.
    for k in range(7, 20):
        watched.look(60 * k, *alone("node-1", "node-2"))
    assert [event.event.value for event in watched.events[4:]] == ["changed", "reopened"]
    assert len(ids(watched)) == 2


def test_open_ones_that_are_one_in_each_other_look_stay_as_they_are():
    watched = Watched()
    nodes = ("node-1", "node-2")
    for at in (0, 60, 120):
        watched.look(at, *alone(*nodes))
    for k in range(3, 40):
        assert watched.look(60 * k, *(rack(*nodes) if k % 2 else alone(*nodes))) == []


def test_one_that_closed_comes_back_as_the_same_under_another_name():
    watched = Watched(AT_ONCE)
    watched.look(0, *alone("node-1"))
    watched.look(60)
    assert watched.look(120, *rack("node-1", "node-2")) == ["reopened"]
    assert watched.events[-1].changes == ("now rack/r1, was node-1",)
    assert len(ids(watched)) == 1


def test_worse_is_told_at_once_while_it_is_not_settled_whose_it_is():
    watched = Watched()
    for at in (0, 60, 120):
        watched.look(at, *rack("node-1", "node-2"))
    worse = incident(name="node-1", members=["node-1:0"], severity=Severity.CRITICAL)
    assert watched.look(180, worse) == ["changed"]
    assert watched.events[-1].changes == ("severity critical, was high",)
    shown = watched.events[-1].incident.diagnosis
    assert (shown.entity.name, shown.severity) == ("rack/r1", Severity.CRITICAL)


def test_a_fault_of_another_cause_or_cluster_or_job_is_another_one():
    watched = Watched(AT_ONCE)
    watched.look(0, *alone("node-1"), incident("job/7", "straggler", members=["node-1:0"]))
    other = rack("node-1", "node-2")[0]
    entity = replace(other.diagnosis.entity, cluster="b")
    far = replace(other, diagnosis=replace(other.diagnosis, entity=entity))
    seen = watched.look(60, far, incident("job/8", "straggler", members=["node-1:0"]))
    assert sorted(seen) == ["closed", "closed", "opened", "opened"]


def test_an_incident_whose_cause_comes_up_stands_beneath_it():
    watched = Watched(AT_ONCE)
    slow = incident(cause="straggler", name="job/7", members=["node-1:0"])
    watched.look(0, slow)
    root = incident(cause="power_brake", name="node-1", members=["node-1:0"])
    effect = Effect("straggler", slow.diagnosis.entity)
    root = replace(root, diagnosis=replace(root.diagnosis, effects=(effect,)))
    watched.look(60, root)
    closed = next(e for e in watched.events if e.event is EventKind.CLOSED)
    assert closed.says == "not over: it goes on beneath power_brake of node-1"


def test_a_clock_that_is_set_back_makes_nothing_happen_early():
    watched = Watched()
    watched.look(10_000, incident())
    assert watched.look(0, incident()) == []
    assert watched.look(119, incident()) == []
    assert watched.look(120, incident()) == ["opened"]


@pytest.mark.parametrize("times", [1, 3])
def test_without_holds_every_change_is_told_at_once(times):
    watched = Watched(AT_ONCE)
    for k in range(times):
        assert watched.look(120 * k, incident()) == ["opened" if k == 0 else "reopened"]
        assert watched.look(120 * k + 60) == ["closed"]
    assert watched.only.state is State.CLOSED
    assert [e.event for e in watched.events].count(EventKind.OPENED) == 1
