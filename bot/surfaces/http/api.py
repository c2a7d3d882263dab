"""The API: ``POST /api/v1/COMMAND`` with the arguments as a JSON object.

The answer is the command's JSON document. With ``Accept: application/vnd.gpuwhy.answer+json`` it
is the neutral answer (`bot.answer_json`), which the command line renders as if it had asked itself.
"""

from __future__ import annotations

import asyncio
import json as codec
from typing import Any

import orjson
from aiohttp import web

from bot import answer_json
from bot.answer import Answer
from bot.render import json
from bot.request import Request
from bot.service import Service
from bot.surfaces.http.auth import TokenBook
from engine.errors import UsageError

PREFIX = "/api/v1"
ANSWER_TYPE = "application/vnd.gpuwhy.answer+json"
# A kernel log of a bad week fits; what does not is read where it lies.
MAX_BODY = 32 << 20
# Below this, parsing takes less than handing it to a thread.
_SMALL = 1 << 16


def add_api(app: web.Application, service: Service, tokens: TokenBook) -> None:
    """Add the API to an application."""

    async def ask(request: web.Request) -> web.Response:
        actor = tokens.actor(request)
        args = await _arguments(request)
        answer = await service.ask(actor, Request(request.match_info["command"], args))
        neutral = ANSWER_TYPE in request.headers.get("Accept", "")
        render = _neutral if neutral else json.render
        return web.Response(
            text=await asyncio.to_thread(render, answer),
            content_type=ANSWER_TYPE if neutral else "application/json",
            headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"},
        )

    app.router.add_post(PREFIX + "/{command}", ask)


async def _arguments(request: web.Request) -> dict[str, Any]:
    body = await request.read()
    if not body.strip():
        return {}
    try:
        if len(body) <= _SMALL:
            args = orjson.loads(body)
        else:
            args = await asyncio.to_thread(orjson.loads, body)
    except orjson.JSONDecodeError as problem:
        said = f"the body is no JSON: {problem.msg}, line {problem.lineno}, column {problem.colno}"
        raise UsageError(said, hint='send the arguments, like {"target": "node-3:5"}') from None
    if not isinstance(args, dict):
        hint = 'send the arguments, like {"target": "node-3:5"}'
        raise UsageError("the body is no JSON object", hint=hint)
    return args


def _neutral(answer: Answer) -> str:
    return codec.dumps(answer_json.to_json(answer), allow_nan=False)
