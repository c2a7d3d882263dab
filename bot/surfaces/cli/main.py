"""The ``gpuwhy`` command: runs a subcommand and turns every outcome into an exit status.

0 answered, 1 answered and ``--fail-on`` was met, 2 wrong usage or unreadable input, 3 the source
could not be reached, 70 an error in gpuwhy itself, 130 interrupted, 141 the reader of the output
went away, 143 a demonstration that was told to end.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext

import click

from bot.surfaces.cli.group import LazyGroup
from bot.surfaces.cli.output import OutputClosedError, report
from engine import __version__
from engine.errors import GpuwhyError, UsageError

INTERNAL_ERROR = 70
INTERRUPTED = 130
PIPE_CLOSED = 141


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="gpuwhy", message="%(prog)s %(version)s")
@click.pass_context
def root(context: click.Context) -> None:
    """Ask why a GPU is slow; get the root cause, the proof and the next command.

    Start with: gpuwhy demo
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main() -> None:
    """Run the command line of this process and exit."""
    _open_closed_streams()
    sys.exit(run(sys.argv[1:]))


def _open_closed_streams() -> None:
    """Stand in for standard streams that the process was started without (``gpuwhy … >&-``).

    Else the first socket or file opened would take the place of one, and what is printed go there.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit status; nothing is raised."""
    with _shown_log() if os.environ.get("GPUWHY_DEBUG") else nullcontext():
        return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
    as_json = "--json" in _before_separator(arguments)
    try:
        status = root.main(list(arguments), prog_name="gpuwhy", standalone_mode=False)
    except GpuwhyError as error:
        return _failed(error, as_json)
    except click.ClickException as error:
        return _failed(_wrong_usage(error), as_json)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except OutputClosedError:
        return PIPE_CLOSED
    except Exception as error:  # noqa: BLE001 - the last stop: a user never sees a traceback unasked
        return _broken(error, as_json)
    return status if isinstance(status, int) else 0


@contextmanager
def _shown_log() -> Iterator[None]:
    """Print what the engine logs: the tracebacks of faults that an answer only mentions."""
    import logging  # noqa: PLC0415 - so that --help starts fast

    log = logging.getLogger("engine")
    handler = logging.StreamHandler()
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _before_separator(arguments: Sequence[str]) -> Sequence[str]:
    return arguments[: arguments.index("--")] if "--" in arguments else arguments


def _wrong_usage(error: click.ClickException) -> UsageError:
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "gpuwhy"
    return UsageError(error.format_message().rstrip("."), hint=f"see {path} --help")


def _failed(error: GpuwhyError, as_json: bool) -> int:
    report(error, as_json=as_json)
    return error.exit_status


def _broken(error: Exception, as_json: bool) -> int:
    said = f"internal error: {type(error).__name__}: {error}"
    shown = GpuwhyError(
        said, hint="run with GPUWHY_DEBUG=1 for the traceback, and report it", code="internal"
    )
    _failed(shown, as_json)
    if os.environ.get("GPUWHY_DEBUG"):
        traceback.print_exception(error)
    return INTERNAL_ERROR
