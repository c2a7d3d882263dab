"""Errors as HTTP answers: the contract's document, and the status that fits."""

from __future__ import annotations

import logging

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from bot import answer_json
from bot.policy import RefusedError
from bot.render import json
from bot.service import BusyError
from bot.surfaces.http.auth import UnauthorizedError
from bot.telemetry import Telemetry
from engine.errors import CatalogueError, GpuwhyError, SourceError

log = logging.getLogger(__name__)

_SAFE = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
_BY_KIND: tuple[tuple[type[GpuwhyError], int], ...] = (
    (UnauthorizedError, 401),
    (RefusedError, 403),
    (BusyError, 503),
    (SourceError, 502),
    (CatalogueError, 500),
)
_BY_CODE = {"timeout": 504, "not_found": 404}
_INTERNAL = 500
# A store that is away: the question may be asked again.
_UNAVAILABLE = 503


def status_of(error: GpuwhyError) -> int:
    """Return the HTTP status of an error."""
    if error.code in _BY_CODE:
        return _BY_CODE[error.code]
    for kind, status in _BY_KIND:
        if isinstance(error, kind):
            return status
    return _UNAVAILABLE if error.exit_status == SourceError.exit_status else 400


def as_response(error: GpuwhyError, status: int | None = None) -> web.Response:
    """Return an error as a JSON document with its status."""
    status = status or status_of(error)
    headers = dict(_SAFE)
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="gpuwhy"'
    if status == _UNAVAILABLE:
        headers["Retry-After"] = "1"
    return web.Response(
        text=json.dump({"error": answer_json.error_to_json(error)}),
        status=status,
        headers=headers,
        content_type="application/json",
    )


def guard(telemetry: Telemetry) -> Middleware:
    """Return the middleware that counts requests and turns every error into a document."""

    @web.middleware
    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        response = await _answered(request, handler)
        route = request.match_info.route.resource
        name = route.canonical if route else "none"
        telemetry.requests.labels(name, _method(request), str(response.status)).inc()
        return response

    return guarded


async def _answered(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except GpuwhyError as error:
        return as_response(error)
    except web.HTTPException as problem:
        if problem.status < 400:
            raise
        return as_response(_described(request, problem), problem.status)
    except Exception as problem:
        # What broke is logged with its place; what was sent is not, it may hold secrets.
        log.exception("internal error at %s", request.match_info.route.resource)
        said = f"internal error: {type(problem).__name__}"
        hint = "the server's log has more; please report it"
        return as_response(GpuwhyError(said, hint=hint, code="internal"), _INTERNAL)


def _described(request: web.Request, problem: web.HTTPException) -> GpuwhyError:
    match problem:
        case web.HTTPNotFound():
            hint = "the API is POST /api/v1/COMMAND"
            return GpuwhyError("no such page", hint=hint, code="not_found")
        case web.HTTPMethodNotAllowed():
            hint = f"use {', '.join(sorted(problem.allowed_methods))}"
            return GpuwhyError(f"{request.method} is not for this page", hint=hint, code="method")
        case web.HTTPRequestEntityTooLarge():
            hint = "send less, or read it where it lies: gpuwhy read FILE"
            return GpuwhyError("the request is too large", hint=hint, code="too_large")
        case _:
            return GpuwhyError(problem.reason, code="http")


def _method(request: web.Request) -> str:
    """Return the method, anything uncommon under one name."""
    known = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"}
    return request.method if request.method in known else "other"
