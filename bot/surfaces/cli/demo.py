"""``gpuwhy demo``."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from bot.surfaces.cli import options
from bot.surfaces.cli.output import report, show
from engine.errors import GpuwhyError, UsageError

if TYPE_CHECKING:
    from bot.commands.demo import Demo

# As a shell has it: the status of what a signal ended is 128 and the signal's number.
_SIGNALLED = 128
_QUIT = {"quit", "exit", "q"}
_HELP = {"?", "h"}
_HINT = "ask: sweep, why node-3:5, decode xid 79, help or quit"


@click.command("demo")
@click.option("--batch", is_flag=True, help="Do not ask for questions at the end.")
@click.option(
    "--prometheus/--scrape",
    default=None,
    help="Force how the readings are served (default: Prometheus if it is installed).",
)
@options.everything
@options.common
def command(
    *, batch: bool, prometheus: bool | None, everything: bool, common: options.Common
) -> int:
    """Run everything on a simulated fleet of 64 GPUs with ten planted faults.

    Nothing has to be configured, and nothing leaves this machine.
    """
    ended: list[int] = []

    def end(number: int, _frame: object) -> None:
        ended.append(number)
        signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a script may have it ignored
    for ending in (signal.SIGTERM, signal.SIGHUP):
        # Ended from outside, it cleans up as after Ctrl-C: no server and no files stay behind.
        signal.signal(ending, end)
    try:
        _run(batch=batch, prometheus=prometheus, everything=everything, common=common)
    except (KeyboardInterrupt, click.Abort):
        if not ended:
            raise
        return _SIGNALLED + ended[0]
    return 0


def _run(*, batch: bool, prometheus: bool | None, everything: bool, common: options.Common) -> None:
    from bot.commands.demo import Demo  # noqa: PLC0415 - so that --help starts fast
    from bot.surfaces.cli.inputs import make_engine, overlays  # noqa: PLC0415
    from bot.surfaces.cli.progress import Progress  # noqa: PLC0415

    with asyncio.Runner() as runner:
        with Progress("simulating 8 nodes of 8 GPUs"):
            engine = make_engine(overlays(common))
            demo = runner.run(Demo.start(engine, prometheus=prometheus))
            demo.everything = everything
        try:
            if common.as_json:
                _document(runner, demo)
                return
            _script(runner, demo, common.color)
            if not batch and sys.stdin.isatty():
                _prompt(runner, demo, common.color)
        finally:
            runner.run(demo.aclose())


def _document(runner: asyncio.Runner, demo: Demo) -> None:
    from dataclasses import replace  # noqa: PLC0415

    from bot.commands.demo import SCRIPT  # noqa: PLC0415

    steps: list[dict[str, Any]] = [
        {"command": f"gpuwhy {' '.join(words)}", "answer": runner.run(demo.ask(words)).data}
        for words in SCRIPT
    ]
    opening = demo.opening()
    show(replace(opening, data={**opening.data, "steps": steps}), as_json=True)


def _script(runner: asyncio.Runner, demo: Demo, color: str) -> None:
    from bot.commands.demo import SCRIPT, step  # noqa: PLC0415

    show(demo.opening(), as_json=False, color=color)
    for words in SCRIPT:
        click.echo()
        show(step(words), as_json=False, color=color)
        click.echo()
        show(runner.run(demo.ask(words)), as_json=False, color=color)


def _prompt(runner: asyncio.Runner, demo: Demo, color: str) -> None:
    with suppress(ImportError):
        import readline  # noqa: F401, PLC0415 - gives input() a history where it is built in

    click.echo(
        "\nAsk about the fleet: sweep, why node-3:5, decode xid 79; help says more, quit ends."
    )
    while True:
        try:
            typed = input("gpuwhy> ").strip()
        except EOFError:
            return
        if typed in _QUIT:
            return
        try:
            words = _words(typed)
            if words:
                show(runner.run(demo.ask(words)), as_json=False, color=color)
        except GpuwhyError as error:
            report(error, as_json=False)


def _words(typed: str) -> list[str]:
    """Return a question in words, however it was put, as the demonstration's own command.

    Raises:
        UsageError: nothing that is answered here.
    """
    from bot.router import parse_words, understand  # noqa: PLC0415 - so that --batch starts fast

    if not typed:
        return []
    if typed in _HELP:
        return ["help"]
    request = understand(typed) or parse_words(typed.removeprefix("gpuwhy "))
    match request.command:
        case "sweep":
            return ["sweep"]
        case "why":
            return ["why", str(request.args["target"])]
        case "decode":
            return ["decode", str(request.args["text"])]
        case "help":
            return ["help"]
    raise UsageError(f"the demonstration has no {request.command}", hint=_HINT)
