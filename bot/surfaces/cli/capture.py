"""``gpuwhy capture``: captures without a server, by whoever has ssh to the machine."""

from __future__ import annotations

import asyncio
import secrets
import signal
import sys
from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from bot.surfaces.cli import options
from bot.surfaces.cli.group import NamingGroup
from bot.surfaces.cli.output import show
from bot.times import parse_span
from engine.errors import UsageError

if TYPE_CHECKING:
    from engine.capture import CapturePlan, CaptureResult, CaptureSettings

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path)
_SETTINGS = (
    click.option("--via", type=click.Choice(["auto", "local", "ssh"]), default="auto",
                 help="How to reach the host; auto: ssh, unless it is this machine."),
    click.option("--ssh-user", metavar="USER", help="Login there: the user of the program."),
    click.option("--ssh-port", type=int, metavar="PORT"),
    click.option("--ssh-identity", type=_FILE, metavar="FILE", help="Private key."),
    click.option("--ssh-config", type=_FILE, metavar="FILE", help="Instead of ~/.ssh/config."),
    click.option("--ssh-option", multiple=True, metavar="KEY=VALUE", help="As ssh -o; repeatable."),
    click.option("--nsys", metavar="PATH", help="Where nsys is on the host."),
    click.option("--importer", metavar="PATH", help="Where QdstrmImporter is on the host."),
    click.option("--folder", type=_FILE, help="Where captured files go."),
)  # fmt: skip


def _settings(function: F) -> F:
    """Add the options of captures; the command gets them as one argument ``settings``."""

    @wraps(function)
    def command(**values: Any) -> Any:
        from engine.capture import CaptureSettings, SshSettings, Via  # noqa: PLC0415 - fast --help

        paths = {name: values.pop(name) for name in ("nsys", "importer", "folder")}
        given = {name: path for name, path in paths.items() if path is not None}
        ssh = SshSettings(
            user=values.pop("ssh_user"),
            port=values.pop("ssh_port"),
            identity=values.pop("ssh_identity"),
            config=values.pop("ssh_config"),
            options=values.pop("ssh_option"),
        )
        settings = CaptureSettings(via=Via(values.pop("via")), ssh=ssh, **given)
        return function(settings=settings, **values)

    wrapped: Any = command
    for option in reversed(_SETTINGS):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return]


def _what(function: F) -> F:
    """Add the three arguments that say what to capture."""
    for argument in (
        click.argument("length", metavar="DURATION", type=parse_span),
        click.argument("target"),
        click.argument("profiler"),
    ):
        function = argument(function)
    return function


@click.group("capture", cls=NamingGroup)
def command() -> None:
    """Plan and run a profile of a program on a GPU.

    The program has to run under the profiler from its start: the plan says how, if it does not.
    """


@command.command("plan")
@_what
@_settings
@options.common
def plan(
    *,
    profiler: str,
    target: str,
    length: float,
    settings: CaptureSettings,
    common: options.Common,
) -> int:
    """Say what `capture run` would do: gpuwhy capture plan nsys node-3:5 10s."""
    from bot.commands.capture import plan_answer  # noqa: PLC0415 - so that --help starts fast

    _here_only(common)
    made = _finished(_planned(profiler, target, length, settings))
    return show(plan_answer(made), as_json=common.as_json, color=common.color)


def _here_only(common: options.Common) -> None:
    """Refuse to go past a server, and the permissions that it holds.

    Raises:
        UsageError: ``--server`` was given.
    """
    if common.server:
        raise UsageError(
            "capture goes to the host from here, not through a server",
            hint="ask the server with /gpu capture in Slack, or POST /api/v1/capture",
        )


@command.command("run")
@_what
@click.option("--yes", is_flag=True, help="Run the plan without asking.")
@_settings
@options.common
def run(
    *,
    profiler: str,
    target: str,
    length: float,
    yes: bool,
    settings: CaptureSettings,
    common: options.Common,
) -> int:
    """Record PROFILER on TARGET for DURATION and bring the file: capture run nsys node-3:5 10s.

    What an earlier run that was cut off has left is taken back first.
    """
    from bot.commands.capture import plan_answer, run_answer  # noqa: PLC0415

    _here_only(common)
    asks = not yes and not common.as_json and sys.stdin.isatty()
    if not yes and not asks:
        raise UsageError("nobody can be asked whether to run it", hint="add --yes")
    _finished(_recovered(settings))
    made = _finished(_planned(profiler, target, length, settings))
    if asks:
        show(plan_answer(made), as_json=False, color=common.color)
        click.confirm("Run it?", abort=True, err=True)
    result = _finished(_ran(made, settings))
    return show(run_answer(made, result), as_json=common.as_json, color=common.color)


async def _planned(
    profiler: str, target: str, length: float, settings: CaptureSettings
) -> CapturePlan:
    from bot.commands.capture import make_plan  # noqa: PLC0415

    named = secrets.token_hex(8)
    return await make_plan(profiler, target, length, capture_id=named, settings=settings)


async def _ran(made: CapturePlan, settings: CaptureSettings) -> CaptureResult:
    from bot.surfaces.cli.progress import Progress  # noqa: PLC0415
    from engine import capture  # noqa: PLC0415
    from engine.capture.filejournal import begin  # noqa: PLC0415

    with Progress("recording"), begin(made) as journal:
        return await capture.run(made, capture.reach(made, settings), journal)


async def _recovered(settings: CaptureSettings) -> None:
    """Finish or undo what earlier runs left; what cannot be undone now is tried again next time."""
    from engine import capture  # noqa: PLC0415
    from engine.capture.filejournal import abandoned  # noqa: PLC0415

    with abandoned(settings.folder) as found:
        for made, entries, journal in found:
            said = f"capture {made.id} of {made.target.name} had been cut off and was"
            try:
                reached = capture.reach(made, settings)
                result = await capture.recover(made, entries, reached, journal)
            except capture.CaptureError as error:
                click.echo(f"gpuwhy: {said} not undone: {error.one_line()}", err=True)
                continue
            journal.finish()
            click.echo(f"gpuwhy: {said} {f'kept: {result.file}' if result else 'undone'}", err=True)


def _finished(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; a signal to stop lets what was begun be undone first."""
    try:
        return asyncio.run(_stoppable(work))
    except asyncio.CancelledError:
        raise click.Abort from None


async def _stoppable(work: Coroutine[Any, Any, T]) -> T:
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    try:
        return await task
    finally:
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(number)
