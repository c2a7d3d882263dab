"""Whatever is seen: nothing is told twice, holds are kept, nothing is lost, and it is repeatable."""

from __future__ import annotations

import json
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.history import EventKind, Holds, State, advance
from engine.history.codec import tracked_from_json, tracked_to_json
from engine.model import Confidence, Severity
from tests.support.sightings import NOW, WATCH, incident, sight

NAMES = ("node-1:0", "node-1:1", "node-2:0")
CAUSES = ("power_brake", "memory_overheat")
PAIRS = tuple((cause, name) for cause in CAUSES for name in NAMES)


@dataclass(frozen=True)
class Look:
    after_s: float
    found: tuple[tuple[tuple[str, str], Severity, Confidence], ...]
    unread: tuple[str, ...]


findings = st.lists(
    st.tuples(
        st.sampled_from(PAIRS), st.sampled_from(list(Severity)), st.sampled_from(list(Confidence))
    ),
    max_size=4,
)
looks = st.lists(
    st.builds(
        Look,
        after_s=st.sampled_from([0.0, 1.0, 30.0, 60.0, 61.0, 300.0, 4000.0]),
        found=findings.map(tuple),
        unread=st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(tuple),
    ),
    max_size=40,
)
spans = st.sampled_from([0.0, 60.0, 120.0, 300.0])
holds = st.builds(
    Holds,
    open_s=spans,
    resolve_s=spans,
    quiet_s=st.sampled_from([0.0, 600.0, 3600.0]),
    forget_s=st.just(1e9),
)


def seen_by(look: Look):
    found = [
        incident(name, cause, severity=severity, confidence=confidence)
        for (cause, name), severity, confidence in look.found
    ]
    return sight(*found, unread=look.unread)


def run(history, rules, *, stored=False):
    """Yield moment, look, events and what is known after each look."""
    known, now, out = (), NOW, []
    for look in history:
        now += look.after_s
        step = advance(known, seen_by(look), now, holds=rules, watch=WATCH)
        known = step.known
        if stored:
            known = tuple(
                tracked_from_json(json.loads(json.dumps(tracked_to_json(one)))) for one in known
            )
        out.append((now, look, step.events, step.known))
    return out


@settings(max_examples=150, deadline=None)
@given(looks, holds)
def test_the_same_looks_give_the_same_events_also_from_what_was_stored(history, rules):
    direct, again = run(history, rules), run(history, rules)
    assert direct == again
    assert [events for _, _, events, _ in direct] == [
        events for _, _, events, _ in run(history, rules, stored=True)
    ]


@settings(max_examples=150, deadline=None)
@given(looks, holds)
def test_each_incident_is_told_in_order_and_never_twice(history, rules):
    state: dict[str, EventKind] = {}
    revision: dict[str, int] = {}
    for _, _, events, _ in run(history, rules):
        assert len({event.id for event in events}) == len(events)
        for event in events:
            before = state.get(event.id)
            assert event.revision == revision.get(event.id, 0) + 1
            revision[event.id] = event.revision
            match event.event:
                case EventKind.OPENED:
                    assert before is None
                case EventKind.REOPENED:
                    assert before is EventKind.CLOSED
                case EventKind.CHANGED | EventKind.CLOSED:
                    assert before not in {None, EventKind.CLOSED}
            state[event.id] = event.event


@settings(max_examples=150, deadline=None)
@given(looks, holds)
def test_holds_are_kept(history, rules):
    """Checked against the looks themselves, which know nothing of the machine's state."""
    past: list[tuple[float, Look]] = []
    for now, look, events, _ in run(history, rules):
        past.append((now, look))
        for event in events:
            about = event.incident.diagnosis
            pair = (about.cause, about.entity.name)
            found = [any(p == pair for p, *_ in one.found) for _, one in past]
            blind = [about.entity.name in one.unread for _, one in past]
            if event.event in {EventKind.OPENED, EventKind.REOPENED}:
                first = now
                for (at, _), is_found, is_blind in zip(
                    past[::-1], found[::-1], blind[::-1], strict=True
                ):
                    if is_found:
                        first = at
                    elif not is_blind:
                        break
                assert found[-1]
                assert now - first >= rules.open_s
            if event.event is EventKind.CLOSED:
                first = now
                for (at, _), is_found, is_blind in zip(
                    past[::-1], found[::-1], blind[::-1], strict=True
                ):
                    if is_found or is_blind:
                        break
                    first = at
                assert not found[-1]
                assert not blind[-1]
                assert now - first >= rules.resolve_s


@settings(max_examples=150, deadline=None)
@given(looks, holds)
def test_nothing_that_lasts_is_lost(history, rules):
    """What is found is known, and is open once it has been found for the hold."""
    since: dict[tuple[str, str], float] = {}
    for now, look, _, known in run(history, rules):
        pairs = {pair for pair, *_ in look.found}
        for pair in PAIRS:
            if pair in pairs:
                since.setdefault(pair, now)
            elif pair[1] not in look.unread:
                since.pop(pair, None)
        states = {(one.diagnosis.cause, one.diagnosis.entity.name): one for one in known}
        assert len(states) == len(known)
        for pair in pairs:
            if now - since[pair] >= rules.open_s:
                assert states[pair].state is State.OPEN
            assert pair in states


NODES = ("node-1", "node-2", "node-3", "node-4")
rack_looks = st.lists(
    st.tuples(
        st.sampled_from([30.0, 60.0, 61.0, 300.0]),
        st.sets(st.sampled_from(NODES)),
        st.sampled_from([2, 3, 9]),
        st.sets(st.sampled_from(NODES), max_size=2),
    ),
    max_size=40,
)


def rack_run(history, rules):
    """Yield moment, who has it, who is dark, events and what is known; a rack from so many on."""
    known, now = (), NOW
    for after_s, braked, fewest, dark in history:
        now += after_s
        ill = sorted(braked - dark)
        gpus = [f"{node}:0" for node in ill]
        found = [incident(node, members=[gpu]) for node, gpu in zip(ill, gpus, strict=True)]
        if len(ill) >= fewest:
            found = [incident("rack/r1", members=gpus)]
        seen = sight(*found, unread=[f"{node}:0" for node in dark])
        step = advance(known, seen, now, holds=rules, watch=WATCH)
        known = tuple(
            tracked_from_json(json.loads(json.dumps(tracked_to_json(one)))) for one in step.known
        )
        assert known == step.known
        yield now, gpus, dark, step.events, known


@settings(max_examples=300, deadline=None)
@given(rack_looks, holds)
def test_what_lasts_on_a_gpu_is_told_under_whatever_name(history, rules):
    """Each GPU on which every look of the hold has found it is on an open incident."""
    since: dict[str, float] = {}
    for now, gpus, _, _, known in rack_run(history, rules):
        for node in NODES:
            gpu = f"{node}:0"
            if gpu in gpus:
                since.setdefault(gpu, now)
            else:
                since.pop(gpu, None)
        assert len({one.key for one in known}) == len({one.id for one in known}) == len(known)
        opened = [one for one in known if one.state is State.OPEN]
        there = {m.entity.name for one in opened for m in one.members if m.told}
        assert {gpu for gpu in gpus if now - since[gpu] >= rules.open_s} <= there


@settings(max_examples=300, deadline=None)
@given(rack_looks, holds)
def test_of_a_rack_each_incident_is_told_in_order_and_not_before_its_hold(history, rules):
    state: dict[str, EventKind] = {}
    revision: dict[str, int] = {}
    past = []
    for now, gpus, dark, events, _ in rack_run(history, rules):
        past.append((now, gpus, dark))
        assert len({event.id for event in events}) == len(events)
        for event in events:
            before = state.get(event.id)
            state[event.id] = event.event
            assert event.revision == revision.get(event.id, 0) + 1
            revision[event.id] = event.revision
            if event.event not in {EventKind.OPENED, EventKind.REOPENED}:
                assert before not in {None, EventKind.CLOSED}
                continue
            assert before is (None if event.event is EventKind.OPENED else EventKind.CLOSED)
            # Some look before the hold had a fault, and none since was without one.
            first = now
            for at, ill, blind in past[::-1]:
                if ill:
                    first = at
                elif not blind:
                    break
            assert now - first >= rules.open_s
