"""``--server URL``: have a running ``gpuwhy serve`` answer, and show it as if asked here."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import requests
from requests.auth import AuthBase

from bot import answer_json
from bot.answer import Answer
from bot.surfaces.cli.options import Common, LogOptions, SourceOptions
from engine.errors import GpuwhyError, InputError, SourceError, UsageError

TOKEN = "GPUWHY_TOKEN"  # noqa: S105 - the variable's name
_ACCEPT = "application/vnd.gpuwhy.answer+json"
_CONNECT_S = 10.0
# Longer than the server takes by default: it is the server that gives up first, and says why.
_ANSWER_S = 180.0
_MAX_INPUT = 24 << 20


class _Bearer(AuthBase):
    """Sends the token; as an object, since requests would rather send a password from .netrc."""

    def __init__(self, token: str | None) -> None:
        self._token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._token:
            request.headers["Authorization"] = f"Bearer {self._token}"
        return request


def ask(common: Common, command: str, args: Mapping[str, Any]) -> Answer:
    """Have the server answer a command; arguments that are None are left out.

    Raises:
        GpuwhyError: what the server says, as it would be raised here.
        SourceError: the server cannot be reached, or is no gpuwhy.
        UsageError: the address or the token cannot be used, or an option is for the server to set.
    """
    if common.overlay:
        said = "--overlay and --server were both given"
        raise UsageError(said, hint="the server has overlays of its own")
    base = _base(common.server or "")
    token = os.environ.get(TOKEN, "").strip()
    if not token.isascii() or not (token.isprintable() or not token):
        raise UsageError(f"{TOKEN} holds what no token can", hint="set it to the token alone")
    given = {name: value for name, value in args.items() if value is not None}
    try:
        response = requests.post(
            f"{base}/api/v1/{command}",
            json=given,
            headers={"Accept": _ACCEPT},
            auth=_Bearer(token),
            timeout=(_CONNECT_S, _ANSWER_S),
            allow_redirects=False,
        )
    except requests.RequestException as problem:
        raise _unreached(base, problem) from None
    return _read(base, response)


def no_source(source: SourceOptions, logs: LogOptions | None = None) -> None:
    """Refuse a source of readings or logs on the command line.

    Raises:
        UsageError: one is given: the server has its own.
    """
    if logs is not None and logs.given:
        said = "a source of logs and --server were both given"
        raise UsageError(said, hint="the server asks its own; leave one out")
    if source.timeout is not None:
        said = "--timeout and --server were both given"
        raise UsageError(said, hint="the server has prometheus.timeout of its own")
    if source.prometheus or source.metrics or source.scrape:
        said = "a source of readings and --server were both given"
        raise UsageError(said, hint="the server asks its own; leave one out")


def no_more(everything: bool) -> None:
    """Refuse ``--all``, which a server does not know.

    Raises:
        UsageError: it is given.
    """
    if everything:
        said = "--all and --server were both given"
        raise UsageError(said, hint="--json has all readings that are missing")


def read(common: Common, names: Sequence[str], stdin: Iterable[bytes]) -> Answer:
    """Have the server read files; ``-`` stands for ``stdin``.

    A file that cannot be read does not stop the others, as when they are read here.

    Raises:
        InputError: none can be read, or all together are larger than 24 MiB.
        GpuwhyError: as `ask`.
    """
    found = []
    errors: list[GpuwhyError] = []
    room = _MAX_INPUT
    for name in names:
        try:
            raw = b"".join(stdin) if name == "-" else _file(name, room)
        except InputError as error:
            errors.append(error)
            continue
        room -= len(raw)
        if room < 0:
            hint = "read it here, without --server"
            raise InputError(f"more than {_MAX_INPUT >> 20} MiB to send", hint=hint)
        found.append({"name": "stdin" if name == "-" else name, **_content(raw)})
    if errors and not found:
        raise errors[0]
    answer = ask(common, "read", {"inputs": found})
    return replace(answer, errors=(*errors, *answer.errors))


def _content(raw: bytes) -> dict[str, str]:
    try:
        return {"text": raw.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(raw).decode("ascii")}


def _file(name: str, most: int) -> bytes:
    try:
        with Path(name).open("rb") as stream:
            return stream.read(most + 1)
    except OSError as error:
        hint = "check the path and its permissions"
        raise InputError(f"cannot read {name}: {error.strerror or error}", hint=hint) from None


def _base(server: str) -> str:
    base = server.rstrip("/").removesuffix("/api/v1")
    scheme, found, rest = base.partition("://")
    if not found or scheme not in {"http", "https"} or not rest or "@" in rest.partition("/")[0]:
        raise UsageError(
            "--server takes an address like https://gpuwhy.example.com",
            hint=f"the token belongs in {TOKEN}",
        )
    return base


def _read(base: str, response: requests.Response) -> Answer:
    try:
        document = response.json()
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise _stranger(base, response)
    if response.status_code != requests.codes.ok:
        error = document.get("error")
        if not isinstance(error, dict) or not isinstance(error.get("message"), str):
            raise _stranger(base, response)
        raise answer_json.error_from_json({"code": "server", **error})
    return answer_json.from_json(document)


def _stranger(base: str, response: requests.Response) -> SourceError:
    said = f"{base} answers with status {response.status_code}, and not as gpuwhy does"
    return SourceError(said, hint="check the address given by --server", code="server")


def _unreached(base: str, problem: requests.RequestException) -> SourceError:
    match problem:
        case requests.exceptions.SSLError():
            said, hint = "has a certificate that is not trusted", "set REQUESTS_CA_BUNDLE"
        case requests.Timeout():
            said, hint = "does not answer in time", "ask about less at once, or try again"
        case requests.exceptions.InvalidURL():
            return SourceError(f"{base} is no address", hint="check --server", code="server")
        case _:
            said, hint = "cannot be reached", "check that gpuwhy serve runs there, and the network"
    return SourceError(f"{base} {said}", hint=hint, code="server_unreachable")
