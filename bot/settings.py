"""What can be configured, and what makes a value valid.

One class per section of ``gpuwhy.yaml``. The variable of a setting is ``GPUWHY_`` and its path in
capitals: ``prometheus.url`` is ``GPUWHY_PROMETHEUS_URL``. A secret is never written in the file;
its variable, or a file named by the variable with ``_FILE`` (or the key with ``_file``), holds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import orjson
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr

from bot.times import parse_span
from engine.errors import UsageError

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
# Headers that carry a credential by their meaning; a file must not hold them.
SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "x-api-key"})


def _seconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return parse_span(value)
    except UsageError as problem:
        raise ValueError(problem.one_line()) from None


def _paths(value: Any) -> Any:
    return [part for part in value.split(":") if part] if isinstance(value, str) else value


def _headers(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("{"):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            raise ValueError("is no JSON object") from None
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


def _web_address(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ValueError("must be a web address like http://prometheus:9090")
    return url


Seconds = Annotated[float, BeforeValidator(_seconds), Field(gt=0, le=86400)]
Paths = Annotated[tuple[Path, ...], BeforeValidator(_paths)]
Headers = Annotated[dict[str, str], BeforeValidator(_headers), AfterValidator(_sendable)]
WebAddress = Annotated[str, AfterValidator(_web_address)]


class Section(BaseModel):
    """A part of the configuration: frozen, nothing unknown allowed."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Prometheus(Section):
    """The metrics server, and how to be let in.

    Attributes:
        url: base address of a Prometheus-compatible server.
        username: for basic authentication, with ``password``.
        password: secret.
        bearer_token: secret, sent as ``Authorization: Bearer``.
        cert: client certificate (PEM), for mutual TLS, with ``key``.
        key: private key of the certificate (PEM).
        ca: certificates to trust instead of the system's (PEM).
        headers: sent with every request, such as ``X-Scope-OrgID``.
        timeout: longest wait for one answer (s).
        verify: whether the server's certificate is checked.
    """

    url: WebAddress | None = None
    username: str | None = None
    password: SecretStr | None = None
    bearer_token: SecretStr | None = None
    cert: Path | None = None
    key: Path | None = None
    ca: Path | None = None
    headers: Headers = Field(default_factory=dict)
    timeout: Seconds = 30.0
    verify: bool = True


class Settings(Section):
    """Everything that can be configured.

    Attributes:
        prometheus: the default source.
        overlays: folders with knowledge and rules of the site, laid over those that are shipped.
        window: how far back ``why`` and ``sweep`` look (s).
    """

    prometheus: Prometheus = Field(default_factory=Prometheus)
    overlays: Paths = ()
    window: Seconds = 900.0


def setting_paths(model: type[BaseModel] = Settings) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield the path of every setting, and whether it is a secret."""
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, Section):
            for path, secret in setting_paths(kind):
                yield (name, *path), secret
        else:
            yield (name,), "SecretStr" in str(kind)
