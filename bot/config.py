"""Reading the configuration: one file, and variables that win over it.

The file is the first of ``--config``, ``GPUWHY_CONFIG``, ``./gpuwhy.yaml`` and the user's
configuration folder. `bot.settings` says what can stand in it; it is only imported when there is
something to read, so that ``gpuwhy decode`` starts fast.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.catalogue.nearest import did_you_mean
from engine.errors import CatalogueError, UsageError

if TYPE_CHECKING:
    from pydantic import ValidationError

    from bot.settings import Settings
    from engine.catalogue.yamlfile import Document

FILE_NAME = "gpuwhy.yaml"
PREFIX = "GPUWHY_"
# Variables that are no settings.
_OTHER = frozenset({"CONFIG", "DEBUG", "TOKEN"})
# Names that Slack's own examples use; ours win over them.
SLACK_NAMES: Mapping[str, tuple[str, str]] = {
    "SLACK_API_URL": ("slack", "api_url"),
    "SLACK_BOT_TOKEN": ("slack", "bot_token"),
    "SLACK_APP_TOKEN": ("slack", "app_token"),
    "SLACK_SIGNING_SECRET": ("slack", "signing_secret"),
}
# Kubernetes sets these in every pod for a service whose name starts with "gpuwhy".
_KUBERNETES = re.compile(r".*?(?:SERVICE_HOST|SERVICE_PORT(?:_.*)?|(?:^|_)PORT(?:_\d.*)?)")
# Sections of servers that are asked, whose address and headers may hold secrets.
_SERVERS = ("prometheus", "loki")
_MAX_SECRET_BYTES = 65536
_MAX_FILE_BYTES = 1048576

Steps = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a value was written, for messages."""

    text: str
    from_file: bool


def find_file(explicit: Path | None, environ: Mapping[str, str]) -> Path | None:
    """Return the configuration file to read, or None if there is none.

    Raises:
        UsageError: a file was named that does not exist, or cannot be looked at.
    """
    named = explicit or (Path(environ["GPUWHY_CONFIG"]) if environ.get("GPUWHY_CONFIG") else None)
    if named:
        origin = "--config" if explicit else "GPUWHY_CONFIG"
        try:
            found = named.is_file()
        except OSError as error:
            said = f"configuration file {named}: {error.strerror or error}"
            raise UsageError(said, hint=f"check {origin}") from None
        if not found:
            raise UsageError(f"configuration file {named} does not exist", hint=f"check {origin}")
        return named
    here = Path(FILE_NAME)
    if _is_file(here):
        return here
    from platformdirs import user_config_path  # noqa: PLC0415 - only needed here

    personal = user_config_path("gpuwhy") / FILE_NAME
    return personal if _is_file(personal) else None


def _is_file(usual: Path) -> bool:
    """Look in a usual place; a folder that may not be entered holds nothing for this user."""
    try:
        return usual.is_file()
    except OSError:
        return False


def overlays(explicit: Path | None, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the overlay folders alone, without loading anything heavy if none are configured."""
    named = bool(environ.get("GPUWHY_OVERLAYS"))
    if not named and find_file(explicit, environ) is None:
        return ()
    return load(explicit, environ).overlays


def load(explicit: Path | None, environ: Mapping[str, str]) -> Settings:
    """Return the settings from the file and the variables.

    Args:
        explicit: the file named on the command line, if any.
        environ: the environment.

    Raises:
        UsageError: with place (file:line:column or variable), what is wrong, and what to do.
    """
    from pydantic import ValidationError  # noqa: PLC0415 - see the module docstring

    from bot.settings import Settings, setting_paths  # noqa: PLC0415

    secrets = {path for path, secret in setting_paths() if secret}
    known = {path for path, _ in setting_paths()} | {_file_path(path) for path in secrets}
    data: dict[str, Any] = {}
    origins: dict[Steps, _Origin] = {}
    if file := find_file(explicit, environ):
        document = _document(file)
        data = document.data
        for path in document.keys:
            origins[path] = _Origin(str(document.place(path)), from_file=True)
        _refuse_secrets(document, secrets)
    _apply_variables(data, origins, known, environ)
    for path in sorted(secrets):
        _read_secret(data, origins, path)
    try:
        return Settings.model_validate(data)
    except ValidationError as problem:
        raise _described(problem, origins, known) from None


def variable(path: Steps) -> str:
    """Return the name of a setting's variable."""
    return PREFIX + "_".join(str(part) for part in path).upper()


def _file_path(path: tuple[str, ...]) -> tuple[str, ...]:
    return (*path[:-1], f"{path[-1]}_file")


def _document(file: Path) -> Document:
    from engine.catalogue.yamlfile import parse_yaml  # noqa: PLC0415 - yaml, not needed by decode

    try:
        with file.open("rb") as stream:
            raw = stream.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise _refusal(f"{file}: {reason}", "check the path and its mode") from None
    if len(raw) > _MAX_FILE_BYTES:
        raise _refusal(f"{file} is larger than 1 MiB", "this is no gpuwhy configuration")
    if all(part.strip()[:1] in {b"", b"#"} for part in raw.splitlines()):
        raw = b"{}"  # nothing but remarks: everything is left at its default
    try:
        return parse_yaml(raw, str(file))
    except CatalogueError as error:
        first = error.problems[0]
        message = f"{first.file}:{first.line}:{first.column}: {first.message}"
        raise UsageError(message, hint=first.hint, code="config") from None


def _refuse_secrets(document: Document, secrets: set[tuple[str, ...]]) -> None:
    from bot.settings import SECRET_HEADERS  # noqa: PLC0415

    for path in document.keys:
        name = ".".join(str(part) for part in path)
        where = document.key_place(path)
        if path in secrets:
            use = f"use {variable(path)} or {variable(path)}_FILE"
            raise _refusal(f"{where}: {name} is a secret and must not stand in the file", use)
        for server in _SERVERS:
            if path[:-1] == (server, "headers") and str(path[-1]).lower() in SECRET_HEADERS:
                ours = PREFIX + server.upper()
                use = f"use {ours}_BEARER_TOKEN or {ours}_HEADERS"
                raise _refusal(f"{where}: header {path[-1]} is a secret", use)
    for server in _SERVERS:
        section = document.data.get(server)
        if isinstance(section, dict) and _names_a_user(section.get("url")):
            where = document.place((server, "url"))
            ours = PREFIX + server.upper()
            use = f"use {ours}_USERNAME and {ours}_PASSWORD"
            raise _refusal(f"{where}: the address holds a user name or password", use)


def _names_a_user(url: Any) -> bool:
    return isinstance(url, str) and "@" in url.partition("//")[2].partition("/")[0]


def _apply_variables(
    data: dict[str, Any],
    origins: dict[Steps, _Origin],
    known: set[tuple[str, ...]],
    environ: Mapping[str, str],
) -> None:
    by_name = {variable(path): path for path in sorted(known)}
    # Theirs come first, so that ours are set over them.
    names = sorted(environ, key=lambda name: (name.startswith(PREFIX), name))
    for name in names:
        value = environ[name]
        path = SLACK_NAMES.get(name) or by_name.get(name)
        if not value or (path is None and not name.startswith(PREFIX)):
            continue
        if path is None:
            _check_variable(name.removeprefix(PREFIX), by_name)
            continue
        section = data
        for part in path[:-1]:
            inner = section.get(part)
            section[part] = dict(inner) if isinstance(inner, dict) else {}
            section = section[part]
        section[path[-1]] = value
        origins[path] = _Origin(name, from_file=False)


def _check_variable(name: str, by_name: Mapping[str, Steps]) -> None:
    if name in _OTHER or _KUBERNETES.fullmatch(name):
        return
    names = [known.removeprefix(PREFIX) for known in by_name]
    meant = did_you_mean(name, [*names, *sorted(_OTHER)])
    if meant:
        hint = meant.replace("'", f"'{PREFIX}", 1)
        raise UsageError(f"unknown variable {PREFIX}{name}", hint=hint, code="config")


def _read_secret(
    data: dict[str, Any], origins: Mapping[Steps, _Origin], path: tuple[str, ...]
) -> None:
    section = data
    for part in path[:-1]:
        section = section.get(part) or {}
        if not isinstance(section, dict):
            return
    key, file_key = path[-1], _file_path(path)[-1]
    file = section.pop(file_key, None)
    if file is None:
        return
    origin = origins[_file_path(path)]
    if section.get(key):
        if origin.from_file:
            return  # the variable with the secret itself wins
        raise _refusal(f"{variable(path)} and {origin.text} are both set", "unset one of them")
    section[key] = _secret_in(Path(str(file)), origin)


def _secret_in(file: Path, origin: _Origin) -> str:
    try:
        with file.open("rb") as stream:
            raw = stream.read(_MAX_SECRET_BYTES + 1)
        secret = raw.decode("utf-8").strip()
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise _refusal(f"{origin.text}: {file}: {reason}", "check the path and its mode") from None
    except UnicodeDecodeError:
        raise _refusal(f"{origin.text}: {file} is not text", "write the secret alone") from None
    if not secret or len(raw) > _MAX_SECRET_BYTES or not secret.isprintable():
        hint = "write the secret alone, on one line"
        raise _refusal(f"{origin.text}: {file} does not hold one secret", hint)
    return secret


def _described(
    problem: ValidationError,
    origins: Mapping[Steps, _Origin],
    known: set[tuple[str, ...]],
) -> UsageError:
    first = problem.errors(include_input=False, include_url=False)[0]
    path = tuple(first["loc"])
    name = ".".join(str(part) for part in path)
    where = next((origins[p].text for p in _outwards(path) if p in origins), "configuration")
    if first["type"] == "extra_forbidden":
        names = sorted({".".join(p) for p in known} | {p[0] for p in known})
        hint = did_you_mean(name, names, otherwise=f"known here: {_siblings(path, known)}")
        return _refusal(f"{where}: unknown setting {name}", hint)
    said = first["msg"].removeprefix("Value error, ")
    return _refusal(f"{where}: {name}: {said}", "")


def _outwards(path: Steps) -> Iterator[Steps]:
    for length in range(len(path), 0, -1):
        yield path[:length]


def _siblings(path: Steps, known: set[tuple[str, ...]]) -> str:
    depth = len(path) - 1
    return ", ".join(sorted({p[depth] for p in known if p[:depth] == path[:depth]}))


def _refusal(message: str, hint: str) -> UsageError:
    return UsageError(message, hint=hint, code="config")
