"""A Slack that only records: the Web API methods that deliveries use, with faults on demand."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
from aiohttp import web

from bot.render.blockkit import validate

BOT_TOKEN = "xoxb-1-2-three"

Fault = Callable[[str, Mapping[str, Any]], web.Response | None]


@dataclass
class Posted:
    """A message as people see it now, and everything that it said before."""

    channel: str
    ts: str
    thread: str | None
    content: dict[str, Any]
    metadata: dict[str, Any]
    at: float
    edits: list[dict[str, Any]] = field(default_factory=list)


class SlackServer:
    """Records calls; ``fault`` may answer a call instead, ``gone`` channels do not let us in."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any], float]] = []
        self.messages: dict[tuple[str, str], Posted] = {}
        self.whispers: list[dict[str, Any]] = []
        self.responses: list[tuple[str, dict[str, Any]]] = []
        self.gone: set[str] = set()
        self.fault: Fault | None = None
        self.readable = True
        self.files: dict[str, dict[str, Any]] = {}
        self.shared: list[dict[str, Any]] = []
        self.invalid: list[str] = []
        self.url = ""
        self._numbers = itertools.count(1)
        self._runner: web.AppRunner | None = None
        self._port = 0

    async def start(self) -> None:
        """Listen; after `stop`, on the same port again."""
        app = web.Application()
        app.router.add_post("/api/{method}", self._call)
        app.router.add_post("/response/{name}", self._respond)
        app.router.add_post("/upload/{file}", self._upload)
        app.router.add_get("/files/{file}", self._download)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self._port}/api/"

    async def stop(self) -> None:
        """Be gone: connections are refused."""
        if self._runner:
            await self._runner.cleanup()
            self._runner = None

    def response_url(self, name: str) -> str:
        return f"http://127.0.0.1:{self._port}/response/{name}"

    def in_channel(self, channel: str) -> list[Posted]:
        """Return the messages of a channel in the order in which they were posted."""
        return [m for (where, _), m in self.messages.items() if where == channel]

    def named(self, method: str) -> list[dict[str, Any]]:
        return [args for name, args, _ in self.calls if name == method]

    async def _call(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        raw = await request.read()
        if request.content_type == "application/json":
            args = orjson.loads(raw)
        else:
            args = dict((await request.post()).items())
        self.calls.append((method, args, time.monotonic()))
        if self.fault and (answer := self.fault(method, args)):
            return answer
        if request.headers.get("Authorization") != f"Bearer {BOT_TOKEN}":
            return web.json_response({"ok": False, "error": "invalid_auth"})
        return web.json_response(self._answer(method, args))

    def _answer(self, method: str, args: dict[str, Any]) -> dict[str, Any]:
        channel = args.get("channel", "")
        if channel in self.gone:
            return {"ok": False, "error": "not_in_channel"}
        if method.startswith("chat."):
            content = {k: args[k] for k in ("text", "blocks") if k in args}
            self.invalid += map(str, validate(content))
        match method:
            case "auth.test":
                return {"ok": True, "user": "gpuwhy", "team": "Test"}
            case "chat.postMessage":
                ts = f"1700000000.{next(self._numbers):06d}"
                self.messages[channel, ts] = Posted(
                    channel, ts, args.get("thread_ts"), content, args.get("metadata", {}),
                    time.monotonic(),
                )  # fmt: skip
                return {"ok": True, "ts": ts, "channel": channel}
            case "chat.update":
                message = self.messages.get((channel, args["ts"]))
                if message is None:
                    return {"ok": False, "error": "message_not_found"}
                message.edits.append(message.content)
                message.content = content
                return {"ok": True, "ts": args["ts"], "channel": channel}
            case "chat.postEphemeral":
                self.whispers.append(args)
                return {"ok": True, "message_ts": "1"}
            case "conversations.history" | "conversations.replies":
                if not self.readable:
                    return {"ok": False, "error": "missing_scope"}
                found = [m for m in self.in_channel(channel) if m.thread == args.get("ts")]
                return {
                    "ok": True,
                    "messages": [{"ts": m.ts, "metadata": m.metadata} for m in found],
                }
            case "usergroups.users.list":
                return {"ok": True, "users": ["U1"]}
            case "files.info":
                file = self.files.get(args["file"])
                return {"ok": True, "file": file} if file else _refused("file_not_found")
            case "files.getUploadURLExternal":
                file = self.add_file(args["filename"], b"")
                return {
                    "ok": True,
                    "file_id": file,
                    "upload_url": f"http://127.0.0.1:{self._port}/upload/{file}",
                }
            case "files.completeUploadExternal":
                self.shared.append(args)
                return {"ok": True, "files": args["files"]}
            case _:
                return _refused("unknown_method")

    def add_file(self, name: str, raw: bytes, mimetype: str = "text/plain", **more: Any) -> str:
        """Keep a file and return its id."""
        file = f"F{next(self._numbers):06d}"
        self.files[file] = {
            "id": file,
            "name": name,
            "size": len(raw),
            "mimetype": mimetype,
            "url_private_download": f"http://127.0.0.1:{self._port}/files/{file}",
            "raw": raw.decode("latin-1"),
            **more,
        }
        return file

    async def _upload(self, request: web.Request) -> web.Response:
        self.files[request.match_info["file"]]["raw"] = (await request.read()).decode("latin-1")
        return web.Response(text="OK")

    async def _download(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {BOT_TOKEN}":
            return web.Response(text="<html>sign in</html>", content_type="text/html")
        raw = self.files[request.match_info["file"]]["raw"].encode("latin-1")
        return web.Response(body=raw)

    async def _respond(self, request: web.Request) -> web.Response:
        self.responses.append((request.match_info["name"], await request.json()))
        return web.Response(text="ok")


def _refused(error: str) -> dict[str, Any]:
    return {"ok": False, "error": error}


def limited(seconds: float) -> web.Response:
    return web.json_response(
        {"ok": False, "error": "ratelimited"}, status=429, headers={"Retry-After": str(seconds)}
    )
