"""What is told of an incident that closes: that it is over, or as what it goes on."""

from __future__ import annotations

from bot.answer import Level
from bot.commands import watch
from bot.render import plain
from engine.history import Event, EventKind, advance
from tests.support.sightings import AT_ONCE, NOW, WATCH, incident, sight


def closed(*later: object) -> Event:
    """Return the event of an incident that a second look does not find."""
    first = [incident(name=f"node-{k}", members=[f"node-{k}:0"]) for k in (1, 2)]
    known = advance((), sight(*first), NOW, holds=AT_ONCE, watch=WATCH).known
    step = advance(known, sight(*later), NOW + 60.0, holds=AT_ONCE, watch=WATCH)
    return next(e for e in step.events if e.event is EventKind.CLOSED)


def test_an_incident_that_is_over_is_resolved():
    message, reply = watch.message(closed()), watch.reply(closed())
    assert plain.render(message).startswith("Resolved: ")
    assert message.level is Level.CLEAR
    assert reply
    assert plain.render(reply).startswith("Resolved at ")


def test_an_incident_that_its_rack_takes_over_is_not_called_resolved():
    rack = incident(cause="power_brake", name="rack/r7", members=["node-1:0", "node-2:0"])
    event = closed(rack)
    message, reply = watch.message(event), watch.reply(event)
    assert plain.render(message).startswith("Moved: ")
    assert message.level is not Level.CLEAR
    assert "goes on as that of rack/r7" in plain.render(message)
    assert reply
    assert plain.render(reply).startswith("Moved at ")
    assert "closed" in plain.render(watch.told(event))
