"""Options that several commands share, and their types."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from bot.answer import Level
from bot.times import parse_moment, parse_span
from engine.catalogue.nearest import did_you_mean
from engine.errors import UsageError

F = TypeVar("F", bound=Callable[..., Any])

_LEVELS = [level.name.lower() for level in Level if level is not Level.CLEAR]
# Rules look at minutes; a day of raw samples is more than any of them asks for.
_MIN_WINDOW_S = 60.0
_MAX_WINDOW_S = 86400.0


def moment(text: str) -> float:
    """Read a moment (Unix s); the type of an option."""
    return parse_moment(text, now=time.time())


def _window(text: str) -> float:
    seconds = parse_span(text)
    if not _MIN_WINDOW_S <= seconds <= _MAX_WINDOW_S:
        raise UsageError(f"window {text} is out of range", hint="give 1m to 1d")
    return seconds


def _level(word: str) -> Level:
    if word.lower() not in _LEVELS:
        hint = did_you_mean(word, _LEVELS, otherwise=f"use one of {', '.join(_LEVELS)}")
        raise UsageError(f"no level {word!r}", hint=hint)
    return Level[word.upper()]


@dataclass(frozen=True, slots=True)
class Common:
    """What every command takes: the form of the output, and where knowledge comes from.

    ``server`` is the address of a ``gpuwhy serve`` that answers instead of this process.
    """

    as_json: bool
    color: str
    config: Path | None
    overlay: tuple[Path, ...]
    server: str | None = None


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Where readings come from, as given on the command line; at most one is set.

    ``timeout`` is the longest wait for one answer (s); None: as configured.
    """

    prometheus: str | None
    metrics: tuple[str, ...]
    scrape: tuple[str, ...]
    timeout: float | None = None

    def as_typed(self) -> str:
        """Return the options that name the source, to be put into a command that is offered.

        A URL with credentials in it is left out, and so is standard input.
        """
        given = [("--prometheus", u) for u in [self.prometheus] if u]
        given += [("--metrics", f) for f in self.metrics if f != "-"]
        given += [("--scrape", u) for u in self.scrape]
        shown = [(name, value) for name, value in given if "@" not in value]
        return shlex.join(word for pair in shown for word in pair)


@dataclass(frozen=True, slots=True)
class LogOptions:
    """Where Xids of kernel logs come from, as given on the command line; adds to the settings."""

    loki: str | None
    kernel_log: tuple[str, ...]
    ssh_dmesg: bool

    @property
    def given(self) -> bool:
        """Whether any of them is set."""
        return bool(self.loki or self.kernel_log or self.ssh_dmesg)


_FILE = click.Path(path_type=Path)
_COMMON = (
    click.option("--json", "as_json", is_flag=True, help="Print the JSON document."),
    click.option(
        "--color",
        type=click.Choice(["auto", "always", "never"]),
        default="auto",
        help="Colours and tables; auto: on a terminal.",
    ),
    click.option("--config", type=_FILE, help="Configuration file (default: gpuwhy.yaml)."),
    click.option(
        "--overlay",
        type=_FILE,
        multiple=True,
        help="Folder with knowledge and rules of your own; repeatable.",
    ),
    click.option(
        "--server",
        metavar="URL",
        help="Have this gpuwhy serve answer, with the token in GPUWHY_TOKEN.",
    ),
)
_SOURCE = (
    click.option("--prometheus", metavar="URL", help="Ask this Prometheus-compatible server."),
    click.option(
        "--metrics", metavar="FILE", multiple=True, help="Read a metrics file; - is stdin."
    ),
    click.option("--scrape", metavar="URL", multiple=True, help="Scrape this exporter directly."),
    click.option(
        "--timeout",
        type=parse_span,
        metavar="SPAN",
        help="Longest wait for one answer of it (default: prometheus.timeout, 30s).",
    ),
)
_LOGS = (
    click.option("--loki", metavar="URL", help="Take Xids from the kernel logs of this Loki."),
    click.option(
        "--kernel-log",
        metavar="FILE",
        multiple=True,
        help="Take Xids from this kernel log; - is stdin, repeatable.",
    ),
    click.option(
        "--ssh-dmesg", is_flag=True, help="Take Xids from the kernel logs of the hosts, by ssh."
    ),
)
_PERIOD = (
    click.option(
        "--at",
        type=moment,
        metavar="TIME",
        help='Moment to judge: RFC 3339, epoch, "03:12", "2h ago".',
    ),
    click.option(
        "--window", type=_window, metavar="SPAN", help="How far back to look (default: 15m)."
    ),
)
everything = click.option(
    "--all", "everything", is_flag=True, help="Leave nothing out: all readings that are missing."
)
fail_on = click.option(
    "--fail-on",
    type=_level,
    metavar="LEVEL",
    help=f"Exit with 1 from this level on: {', '.join(_LEVELS)}.",
)


def common(function: F) -> F:
    """Add the options of `Common`; the command gets them as one argument ``common``."""
    return _gathered(function, _COMMON, "common", Common)


def source(function: F) -> F:
    """Add the options of `SourceOptions` as ``source``."""
    return _gathered(function, _SOURCE, "source", SourceOptions)


def logs(function: F) -> F:
    """Add the options of `LogOptions` as ``logs``."""
    return _gathered(function, _LOGS, "logs", LogOptions)


def period(function: F) -> F:
    """Add ``--at`` and ``--window``."""
    for option in reversed(_PERIOD):
        function = option(function)
    return function


def _gathered(function: F, options: tuple[Callable[[F], F], ...], name: str, kind: Any) -> F:
    fields = tuple(kind.__dataclass_fields__)

    @wraps(function)
    def command(**values: Any) -> Any:
        values[name] = kind(**{field: values.pop(field) for field in fields})
        return function(**values)

    wrapped: Any = command
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return]
