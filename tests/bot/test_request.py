import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.request import Actor, ActorKind, Request
from engine.errors import UsageError

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.text(), st.dictionaries(st.text(), json_values, max_size=4), st.text())
def test_a_request_survives_storage(command, args, text):
    request = Request(command, args, text)
    assert Request.from_json(json.loads(json.dumps(request.to_json()))) == request


@given(
    st.builds(
        Actor,
        st.sampled_from(ActorKind),
        st.text(),
        st.text(),
        st.lists(st.text()).map(tuple),
        st.text(),
    )
)
def test_an_actor_survives_storage(actor):
    assert Actor.from_json(json.loads(json.dumps(actor.to_json()))) == actor


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        (Request, {}, "request has no 'command'"),
        (Request, {"command": 5}, "request has a value that is no text for 'command'"),
        (Request, [], "request must be an object"),
        (Request, {"command": "why", "args": []}, "args of a request"),
        (Request, {"command": "why", "args": {1: 2}}, "args of a request"),
        (Request, {"command": "why", "text": None}, "'text'"),
        (Actor, {"kind": "slack"}, "actor has no 'id'"),
        (Actor, {"kind": "robot", "id": "1"}, "'robot' is no kind of actor"),
        (Actor, {"kind": ["slack"], "id": "1"}, "'kind'"),
        (Actor, {"kind": "slack", "id": "U1", "groups": "S1"}, "groups of an actor"),
        (Actor, {"kind": "slack", "id": "U1", "groups": [1]}, "groups of an actor"),
    ],
)
def test_what_cannot_be_read_back_says_so(kind, data, said):
    with pytest.raises(UsageError, match=said):
        kind.from_json(data)


def test_neither_can_be_changed():
    with pytest.raises(AttributeError):
        Request("why").command = "sweep"
    with pytest.raises(AttributeError):
        Actor(ActorKind.LOCAL, "me").id = "you"
