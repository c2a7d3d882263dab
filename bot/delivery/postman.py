"""Bringing one delivery: which calls it takes, and what to do where the first way is closed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from bot.delivery.messenger import Message, Messenger, RejectedError
from bot.delivery.parcel import Parcel
from bot.store import Delivery, DeliveryKind, NewDelivery

# Codes of Slack: the bot cannot write in the channel; the message to be edited cannot be.
NO_ENTRY = frozenset({
    "channel_not_found",
    "not_in_channel",
    "is_archived",
    "restricted_action",
    "user_not_in_channel",
    "no_permission",
})  # fmt: skip
NO_EDIT = frozenset({"message_not_found", "cant_update_message", "edit_window_closed"})


class Queue(Protocol):
    """Where deliveries that follow from one are put; `bot.store.Store` is one."""

    async def enqueue(
        self, news: Sequence[NewDelivery], *, question_id: str | None = None, now: float
    ) -> tuple[str, ...]:
        """Queue deliveries in the given order."""
        ...


class Postman:
    """Brings deliveries so that one that is brought again after a crash does no harm.

    What follows from a delivery is queued before the delivery is marked as sent: the channel's
    order keeps it back until then, and its name in the queue (``coalesce_key``) keeps it single.

    Args:
        messenger: sends.
        queue: takes what follows.
        clock: Unix seconds.
    """

    def __init__(self, messenger: Messenger, queue: Queue, clock: Callable[[], float]) -> None:
        self._messenger = messenger
        self._queue = queue
        self._clock = clock

    async def bring(self, delivery: Delivery) -> str | None:
        """Send a delivery; return the id of its message if it has one.

        Raises:
            MessengerError: it was not sent, or may not have been.
            StoreError: what follows from it could not be queued.
        """
        parcel = Parcel.from_json(delivery.payload)
        match delivery.kind:
            case DeliveryKind.POST if parcel.placeholder is not None:
                return await self._post_then_edit(delivery, parcel, parcel.placeholder)
            case DeliveryKind.POST:
                return await self._post(delivery, parcel)
            case DeliveryKind.UPDATE:
                return await self._edit(delivery, parcel)
            case DeliveryKind.EPHEMERAL:
                await self._whisper(delivery, parcel)
            case DeliveryKind.RESPONSE_URL:
                await self._respond(parcel, replace_it=False)
            case DeliveryKind.FILE:
                await self._attach(delivery, parcel)
        return None

    async def _post_then_edit(
        self, delivery: Delivery, parcel: Parcel, placeholder: Message
    ) -> str | None:
        """Post the placeholder now and queue the content as an edit of it."""
        edit = NewDelivery(
            DeliveryKind.UPDATE,
            delivery.channel,
            parcel.to_json(),
            thread=delivery.thread,
            coalesce_key=delivery.coalesce_key,
        )
        await self._queue.enqueue([edit], question_id=delivery.question_id, now=self._clock())
        first = replace(parcel, message=placeholder, more=(), placeholder=None)
        return await self._post(delivery, first)

    async def _post(self, delivery: Delivery, parcel: Parcel) -> str | None:
        if delivery.uncertain:
            found = await self._messenger.find(
                delivery.channel,
                delivery.id,
                thread=delivery.thread,
                since=delivery.created_at,
            )
            if found is not None:
                return found
        try:
            return await self._messenger.post(
                delivery.channel, parcel.message, thread=delivery.thread, mark=delivery.id
            )
        except RejectedError as error:
            if error.code not in NO_ENTRY or not parcel.response_url:
                raise
        await self._respond(parcel, replace_it=False)
        return None

    async def _edit(self, delivery: Delivery, parcel: Parcel) -> str | None:
        ts = delivery.message_ts
        if ts is not None:
            try:
                await self._messenger.update(delivery.channel, ts, parcel.message)
            except RejectedError as error:
                if error.code not in NO_EDIT:
                    raise
                ts = None
        elif parcel.response_url:
            # The first message went by the response URL too; this one takes its place.
            await self._respond(parcel, replace_it=True)
            await self._follow(delivery, parcel, DeliveryKind.RESPONSE_URL, None)
            return None
        if ts is None:
            ts = await self._post(delivery, parcel)
        await self._follow(delivery, parcel, DeliveryKind.POST, delivery.thread or ts)
        return ts

    async def _whisper(self, delivery: Delivery, parcel: Parcel) -> None:
        try:
            await self._messenger.ephemeral(
                delivery.channel, parcel.user, parcel.message, thread=delivery.thread
            )
        except RejectedError as error:
            if error.code not in NO_ENTRY or not parcel.response_url:
                raise
            await self._respond(parcel, replace_it=False)

    async def _respond(self, parcel: Parcel, *, replace_it: bool) -> None:
        if parcel.response_url is None:
            raise RejectedError("no_response_url")
        await self._messenger.respond(parcel.response_url, parcel.message, replace=replace_it)

    async def _attach(self, delivery: Delivery, parcel: Parcel) -> None:
        if parcel.file is None:
            raise RejectedError("no_file")
        try:
            await self._messenger.attach(
                delivery.channel,
                delivery.thread,
                name=parcel.file.name,
                text=parcel.file.text,
                comment=str(parcel.message.get("text", "")),
            )
        except RejectedError:
            # Files may be forbidden, or the app older than its manifest: it is said where.
            instead = NewDelivery(
                DeliveryKind.POST,
                delivery.channel,
                Parcel(parcel.file.otherwise).to_json(),
                thread=delivery.thread,
                coalesce_key=f"{delivery.coalesce_key or delivery.id}/instead",
            )
            await self._queue.enqueue(
                [instead], question_id=delivery.question_id, now=self._clock()
            )

    async def _follow(
        self, delivery: Delivery, parcel: Parcel, kind: DeliveryKind, thread: str | None
    ) -> None:
        """Queue what goes under the message just brought."""
        as_file = parcel.file if kind is DeliveryKind.POST else None
        messages = parcel.more if as_file is None else parcel.more[: as_file.after]
        name = delivery.coalesce_key or delivery.id
        news = [
            NewDelivery(
                kind,
                delivery.channel,
                Parcel(message, response_url=parcel.response_url).to_json(),
                thread=thread,
                coalesce_key=f"{name}/{number}",
            )
            for number, message in enumerate(messages, 1)
        ]
        if as_file is not None:
            said = Parcel({"text": "The whole answer:"}, file=as_file)
            news.append(
                NewDelivery(
                    DeliveryKind.FILE,
                    delivery.channel,
                    said.to_json(),
                    thread=thread,
                    coalesce_key=f"{name}/file",
                )
            )
        if news:
            await self._queue.enqueue(news, question_id=delivery.question_id, now=self._clock())
