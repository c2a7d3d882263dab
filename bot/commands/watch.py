"""``watch``: incidents as they open, change and close, a line or a message each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bot.answer import (
    Answer,
    Block,
    Bullets,
    Level,
    Line,
    Steps,
    Text,
    Tone,
    code,
    line,
    muted,
    strong,
)
from bot.commands import parts
from bot.phrases import count, entities
from bot.times import utc
from engine.history import Event, EventKind, Watcher
from engine.history.tracked import event_about
from engine.model import Incident, to_json

# Shown in a message; the rest is a `why` away.
_EVIDENCE = 3
_STEPS = 2
_MEMBERS = 16
_TONES = {
    EventKind.OPENED: Tone.BAD,
    EventKind.REOPENED: Tone.BAD,
    EventKind.OPEN: Tone.BAD,
    EventKind.CHANGED: Tone.WARNING,
    EventKind.CLOSED: Tone.GOOD,
    EventKind.BLIND: Tone.WARNING,
    EventKind.SEEING: Tone.GOOD,
    EventKind.WATCHING: Tone.INFO,
}


def document(event: Event) -> dict[str, Any]:
    """Return an event as its JSON document, ``gpuwhy/watch/1``."""
    data: dict[str, Any] = to_json(event)
    return data


async def opening(watcher: Watcher, *, now: float) -> list[Event]:
    """Return what is said at the start: what is watched, and what was open before.

    Raises:
        GpuwhyError: the state cannot be used.
    """
    known = await watcher.open()
    amount = count(len(known), "incident") if known else "no incident"
    said = f"{watcher.name}: {amount} open"
    return [
        Event(EventKind.WATCHING, now, watcher.name, says=said),
        *(event_about(one, EventKind.OPEN, now, watcher.name, one.diagnosis.says) for one in known),
    ]


def told(event: Event) -> Answer:
    """Return an event as one line."""
    tone = Tone.WARNING if _moved(event) else _TONES[event.event]
    head = strong(event.event.value, tone)
    return Answer(line(f"{utc(event.at)} ", head, " ", *_about(event)), (), document(event))


def message(event: Event) -> Answer:
    """Return the incident of an event as it stands, as a message that can be edited later.

    For what is about no incident (the source cannot be read, or can again), what is said.
    """
    if event.incident is None:
        head = strong(_HEADS[event.event], _TONES[event.event])
        return Answer(
            line(head, f": {event.watch}"), (Text(line(event.says)), _foot(event)), document(event)
        )
    found = event.incident.diagnosis
    over = event.event is EventKind.CLOSED and not _moved(event)
    state = strong("Incident", Tone.BAD)
    if event.event is EventKind.CLOSED:
        state = _MOVED if _moved(event) else _RESOLVED
    level = Level.CLEAR if over else parts.severity_level(found.severity)
    title = line(state, ": ", *parts.cause_line(found, None))
    return Answer(title, tuple(_blocks(event, event.incident)), document(event), level)


def reply(event: Event) -> Answer | None:
    """Return what goes under the message of an incident: that it is over, or back; else None."""
    if event.event not in {EventKind.CLOSED, EventKind.REOPENED}:
        return None
    return Answer(_reply(event), (), document(event))


# An incident that is told as another one from now on closes, and yet is not over.
_MOVED = strong("Moved", Tone.WARNING)
_RESOLVED = strong("Resolved", Tone.GOOD)


def _moved(event: Event) -> bool:
    return event.event is EventKind.CLOSED and bool(event.changes)


_HEADS = {
    EventKind.BLIND: "Cannot look",
    EventKind.SEEING: "Looking again",
    EventKind.WATCHING: "Watching",
}


def _about(event: Event) -> Iterator[Any]:
    if event.incident is None:
        yield event.says or event.watch
        return
    found = event.incident.diagnosis
    yield from parts.cause_line(found, None)
    if event.times > 1:
        yield f", time {event.times}"
    if event.event is EventKind.CHANGED:
        yield f": {'; '.join(event.changes)}"
    if event.event is EventKind.CLOSED:
        yield f": {event.says}"
    if len(event.incident.members) > 1:
        yield f"; on {entities(event.incident.members)}"
    yield muted(f" [{event.id}]")


def _blocks(event: Event, incident: Incident) -> Iterator[Block]:
    found = incident.diagnosis
    if event.event is EventKind.CLOSED:
        yield Text(line(event.says))
    else:
        yield Text(line(found.says))
        if event.unread_since is not None:
            yield Text(line(strong(event.says, Tone.WARNING)))
        if event.changes:
            yield Text(line("Changed: ", "; ".join(event.changes)))
    if len(incident.members) > 1:
        named = entities(incident.members, _MEMBERS)
        yield Text(line(f"Members ({len(incident.members)}): {named}"))
    if event.event is not EventKind.CLOSED:
        shown = found.evidence[:_EVIDENCE]
        if shown:
            yield Bullets(tuple(parts.evidence(e, found.entity, query=False) for e in shown))
        if found.next:
            yield Steps(found.next[:_STEPS])
    yield _foot(event)


def _foot(event: Event) -> Block:
    """Return the line that says when it was and how it is called."""
    said: list[str] = []
    if event.opened_at is not None:
        said.append(f"opened {utc(event.opened_at)}")
    if event.times > 1:
        said.append(f"opened {event.times} times")
    if event.closed_at is not None:
        said.append(f"closed {utc(event.closed_at)}")
    else:
        said.append(f"as of {utc(event.at)}")
    named: Line = (code(event.id),) if event.id else ()
    return Text((muted("; ".join(said)), *((muted("; incident "), *named) if named else ())))


def _reply(event: Event) -> Line:
    if event.event is EventKind.CLOSED:
        state = _MOVED if _moved(event) else _RESOLVED
        return line(state, f" at {utc(event.at)}: {event.says}")
    return line(strong("Back", Tone.BAD), f" at {utc(event.at)}, time {event.times}")
