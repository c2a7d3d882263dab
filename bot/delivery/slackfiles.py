"""Files at Slack: fetch one that somebody attached, attach one to a thread.

Attaching takes three calls (``files.upload`` is retired): ask for an address, send the bytes
there, and say in which thread the file belongs. Scopes: ``files:read``, ``files:write``.
"""

from __future__ import annotations

from bot.attachments import MAX_FILE, FileRef
from bot.delivery.messenger import AwayError, RejectedError
from bot.delivery.webapi import NOT_LET_IN, WebApi
from engine.errors import InputError


async def fetch(api: WebApi, ref: FileRef) -> bytes:
    """Return the bytes of a file, as Slack has it now; size and type are checked again.

    Raises:
        InputError: it cannot be read here, or no longer.
        MessengerError: Slack does not give it.
    """
    ref.check()
    try:
        answer = await api.call("files.info", {"file": ref.id}, form=True)
    except RejectedError as error:
        raise InputError(
            f"{ref.name} cannot be fetched: {error.code}", hint="attach it again, or paste the text"
        ) from None
    except AwayError as error:
        raise _unscoped(error, "files:read") from None
    found = answer.get("file") or {}
    now = FileRef.from_json({**found, "name": ref.name})
    now.check()
    url = str(found.get("url_private_download") or found.get("url_private") or "")
    if found.get("is_external") or not url:
        raise InputError(
            f"{ref.name} is not kept at Slack", hint="paste the text, or attach the file itself"
        )
    try:
        raw = await api.download(url, MAX_FILE, html=now.type == "text/html")
    except RejectedError as error:
        raise InputError(
            f"{ref.name} cannot be fetched: {error.code}",
            hint="give the Slack app the scope files:read, or paste the text",
        ) from None
    if raw is None:
        raise InputError(f"{ref.name} is larger than Slack said", hint="read it where it lies")
    return raw


async def attach(
    api: WebApi, channel: str, thread: str | None, *, name: str, text: str, comment: str
) -> None:
    """Attach a text file to a thread.

    Raises:
        RejectedError: Slack refuses, or the app lacks the scope (``missing_scope``).
        MessengerError: it was not sent, or may not have been.
    """
    raw = text.encode("utf-8", "replace")
    try:
        place = await api.call(
            "files.getUploadURLExternal", {"filename": name, "length": len(raw)}, form=True
        )
    except AwayError as error:
        if error.code == "missing_scope":
            raise RejectedError(error.code) from None
        raise
    await api.upload(str(place["upload_url"]), raw)
    await api.call(
        "files.completeUploadExternal",
        {
            "files": [{"id": place["file_id"], "title": name}],
            "channel_id": channel,
            "thread_ts": thread,
            "initial_comment": comment,
        },
    )


def _unscoped(error: AwayError, scope: str) -> AwayError:
    if error.code not in NOT_LET_IN:
        return error
    hint = f"give the Slack app the scope {scope}, or paste the text"
    return AwayError(error.message, uncertain=False, hint=hint, code=error.code)
