"""The messenger for Slack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bot.attachments import FileRef
from bot.delivery import slackfiles
from bot.delivery.messenger import AwayError, Message, RejectedError
from bot.delivery.webapi import NOT_LET_IN, WebApi

_EVENT = "gpuwhy_delivery"
_LOOKED_THROUGH = 100
# Our clock and Slack's may differ.
_SKEW_S = 60.0


class SlackMessenger:
    """Sends with one bot token; see `bot.delivery.messenger.Messenger`.

    Args:
        token: bot token, ``xoxb-…``.
        api_url: base address of the Web API; response URLs may lie there too.
        timeout_s: longest wait for one call (s).
    """

    def __init__(self, token: str, api_url: str, timeout_s: float = 15.0) -> None:
        self._api = WebApi(token, api_url, timeout_s)
        self._may_look = True

    async def post(self, channel: str, message: Message, *, thread: str | None, mark: str) -> str:
        """Post a message; see the port."""
        posted = await self._api.call(
            "chat.postMessage",
            {
                **message,
                "channel": channel,
                "thread_ts": thread,
                "metadata": {"event_type": _EVENT, "event_payload": {"id": mark}},
                "unfurl_links": False,
                "unfurl_media": False,
            },
        )
        return str(posted["ts"])

    async def update(self, channel: str, ts: str, message: Message) -> None:
        """Replace a message's content; see the port."""
        await self._api.call("chat.update", {**message, "channel": channel, "ts": ts})

    async def ephemeral(
        self, channel: str, user: str, message: Message, *, thread: str | None
    ) -> None:
        """Show a message to one user alone; see the port."""
        await self._api.call(
            "chat.postEphemeral",
            {**message, "channel": channel, "user": user, "thread_ts": thread},
        )

    async def respond(self, url: str, message: Message, *, replace: bool) -> None:
        """Answer by a response URL; see the port."""
        body = {**message, "response_type": "in_channel", "replace_original": replace}
        await self._api.send(url, body)

    async def find(
        self, channel: str, mark: str, *, thread: str | None, since: float
    ) -> str | None:
        """Look for a message by its mark; see the port."""
        if not self._may_look:
            return None
        method = "conversations.history" if thread is None else "conversations.replies"
        wanted = {
            "channel": channel,
            "ts": thread,
            "oldest": f"{since - _SKEW_S:.6f}",
            "limit": _LOOKED_THROUGH,
            "include_all_metadata": True,
        }
        try:
            found = await self._api.call(method, wanted, form=True)
        except RejectedError:
            return None
        except AwayError as error:
            if error.code not in NOT_LET_IN:
                raise
            self._may_look = False
            return None
        messages = found.get("messages") or ()
        return next((str(m["ts"]) for m in messages if _mark(m) == mark), None)

    async def attach(
        self, channel: str, thread: str | None, *, name: str, text: str, comment: str
    ) -> None:
        """Attach a text file to a thread; see the port."""
        await slackfiles.attach(self._api, channel, thread, name=name, text=text, comment=comment)

    async def fetch(self, ref: FileRef) -> bytes:
        """Return the bytes of a file that somebody attached.

        Raises:
            InputError: it cannot be read here.
            MessengerError: Slack does not give it.
        """
        return await slackfiles.fetch(self._api, ref)

    async def members(self, group: str) -> tuple[str, ...]:
        """Return the ids of the users in a user group (scope ``usergroups:read``).

        Raises:
            MessengerError: Slack does not tell.
        """
        found = await self._api.call("usergroups.users.list", {"usergroup": group}, form=True)
        return tuple(str(user) for user in found.get("users") or ())

    async def ping(self) -> None:
        """Make sure that Slack knows the token; see the port."""
        await self.who()

    async def who(self) -> str:
        """Return who we are to Slack: the bot's name and the workspace.

        Raises:
            MessengerError: Slack does not tell.
        """
        found = await self._api.call("auth.test", {})
        return f"{found.get('user', 'a bot')} in {found.get('team', 'a workspace')}"

    async def aclose(self) -> None:
        """Close the connections."""
        await self._api.aclose()


def _mark(message: Mapping[str, Any]) -> str | None:
    metadata = message.get("metadata") or {}
    if metadata.get("event_type") != _EVENT:
        return None
    mark: str | None = (metadata.get("event_payload") or {}).get("id")
    return mark
