"""The kinds of values that settings have, and how each is read from text.

A variable is always text, so every kind can be read from text as well as from YAML.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import orjson
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from bot.times import parse_hold, parse_span
from engine.errors import UsageError

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_TOKEN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SHORTEST_TOKEN = 16
_CHANNEL = re.compile(r"[CGD][A-Z0-9]{2,20}", re.ASCII)


class Section(BaseModel):
    """A part of the configuration: frozen, nothing unknown allowed."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def _seconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return parse_span(value)
    except UsageError as problem:
        raise ValueError(problem.one_line()) from None


def _held_seconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return parse_hold(value)
    except UsageError as problem:
        raise ValueError(problem.one_line()) from None


def _channel_id(text: str) -> str:
    if not _CHANNEL.fullmatch(text):
        raise ValueError("must be the id of a Slack channel like C0123456789, not its name")
    return text


def _paths(value: Any) -> Any:
    return [part for part in value.split(":") if part] if isinstance(value, str) else value


def _words(value: Any) -> Any:
    return value.replace(",", " ").split() if isinstance(value, str) else value


def _json(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        raise ValueError("is no JSON") from None


def _pairs(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("{"):
        return _json(value)
    pairs = [part.partition("=") for part in value.split(",") if part.strip()]
    if any(not sign for _, sign, _ in pairs):
        raise ValueError("must be NAME=VALUE, separated by commas, or a JSON object")
    return {name.strip(): text.strip() for name, _, text in pairs}


def _sendable(headers: dict[str, str]) -> dict[str, str]:
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no header name")
        if any(c in value for c in "\r\n\0"):
            raise ValueError(f"the value of {name} has a line break in it")
    return headers


def _strong(tokens: dict[str, SecretStr]) -> dict[str, SecretStr]:
    for name, token in tokens.items():
        if not _TOKEN_NAME.fullmatch(name):
            raise ValueError("a token's name must be letters, digits, dots, hyphens")
        if len(token.get_secret_value()) < _SHORTEST_TOKEN:
            raise ValueError(f"the token of {name} is shorter than {_SHORTEST_TOKEN} characters")
    if len({token.get_secret_value() for token in tokens.values()}) < len(tokens):
        raise ValueError("two names have the same token")
    return tokens


def _web_address(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("must be a web address like http://prometheus:9090")
    return url


def _listen_address(text: str) -> str:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ValueError("must be HOST:PORT like 127.0.0.1:8765 or [::]:8765")
    return text


Seconds = Annotated[float, BeforeValidator(_seconds), Field(gt=0, le=86400)]
HoldSeconds = Annotated[float, BeforeValidator(_held_seconds), Field(ge=0, le=604800)]
ChannelId = Annotated[str, AfterValidator(_channel_id)]
Paths = Annotated[tuple[Path, ...], BeforeValidator(_paths)]
Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
Headers = Annotated[dict[str, str], BeforeValidator(_pairs), AfterValidator(_sendable)]
Tokens = Annotated[dict[str, SecretStr], BeforeValidator(_pairs), AfterValidator(_strong)]
WebAddress = Annotated[str, AfterValidator(_web_address)]
ListenAddress = Annotated[str, AfterValidator(_listen_address)]
FromJson = BeforeValidator(_json)
