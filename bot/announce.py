"""Announcing incidents in a Slack channel: one message an incident, edited as it changes.

What happens to an incident is queued under the name of its message (`NewDelivery.coalesce_key`): an
edit of a message that was not sent yet becomes the message, and sending an edit again changes
nothing. That it is over, or back, is also said in the thread, which notifies whoever follows it.

What the policy denies to a channel is not announced there: a rule about everybody, about the
channel, or about a group, whose members may be in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from bot.commands import watch
from bot.delivery.parcel import Parcel
from bot.policy import Policy
from bot.policy.rules import UNKNOWN_GROUPS
from bot.render import slackcards
from bot.request import Actor, ActorKind
from bot.store import DeliveryKind, NewDelivery
from engine.history import Event, EventKind
from engine.model import to_json

# An announcement tells what this command would.
_COMMAND = "sweep"
_NEW = frozenset({EventKind.OPENED, EventKind.BLIND})


class Announcer:
    """Makes what is sent to one channel.

    Args:
        channel: id of the channel.
        policy: says what nobody in the channel may see.
    """

    def __init__(self, channel: str, policy: Policy) -> None:
        self._channel = channel
        self._policy = policy
        groups = (UNKNOWN_GROUPS,)
        self._reader = Actor(ActorKind.SLACK, "", groups=groups, channel=channel)

    def __call__(self, events: Sequence[Event]) -> tuple[NewDelivery, ...]:
        """Return what is to be sent for events, in their order."""
        return tuple(self._delivery(event) for event in events if self._may_be_seen(event))

    def _may_be_seen(self, event: Event) -> bool:
        if event.incident is None:
            return True
        entity = event.incident.diagnosis.entity
        about = to_json({"target": entity, "members": event.incident.members})
        return self._policy.may_see(self._reader, _COMMAND, about).allowed

    def _delivery(self, event: Event) -> NewDelivery:
        # What does not fit in one message is a question away: an edit could not take it back.
        first, *_ = slackcards.answer(watch.message(event))
        reply = watch.reply(event)
        more = () if reply is None else slackcards.answer(reply)[:1]
        return NewDelivery(
            DeliveryKind.POST if event.event in _NEW else DeliveryKind.UPDATE,
            self._channel,
            Parcel(first, more=more).to_json(),
            coalesce_key=_name(event),
        )


def _name(event: Event) -> str:
    """Return the name of the message that tells of an event."""
    if event.id:
        return f"incident/{event.id}"
    return f"watch/{sha256(event.watch.encode('utf-8', 'backslashreplace')).hexdigest()[:12]}"
