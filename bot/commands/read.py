"""``read``: say what pasted text or files show."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from bot.answer import Answer
from bot.commands.readanswer import Part, answer
from engine.errors import GpuwhyError, InputError

if TYPE_CHECKING:
    from engine.catalogue.types import Catalogue
    from engine.diagnosis import Engine
    from engine.model import Why
    from engine.readers import Diagnose


@dataclass(frozen=True, slots=True)
class Input:
    """One thing to read: how to name it, and the file or the chunks of bytes."""

    name: str
    source: Path | Iterable[bytes]


def run(
    inputs: Sequence[Input],
    *,
    catalogue: Catalogue,
    diagnose: Diagnose | None = None,
    errors: Sequence[GpuwhyError] = (),
    on_progress: Callable[[int, int | None], None] | None = None,
    everything: bool = False,
) -> Answer:
    """Read every input; one that cannot be read does not stop the others.

    Args:
        inputs: what to read, in order.
        catalogue: the knowledge.
        diagnose: judges readings by the rules; None leaves that out.
        errors: what went wrong with other inputs before.
        on_progress: told how many bytes of how many of the current input have been read.
        everything: list all readings that were missing, not only the first few.

    Raises:
        InputError: none of the inputs can be read.
    """
    from engine.readers import Reading  # noqa: PLC0415 - keeps the formatting free of the engine

    reading = Reading(catalogue, diagnose)
    names: list[str] = []
    errors = list(errors)
    for one in inputs:
        try:
            _named_file(one)
            reading.add(one.name, one.source, on_progress)
            names.append(one.name)
        except InputError as error:
            named = error.message if one.name in error.message else f"{one.name}: {error.message}"
            errors.append(InputError(named, hint=error.hint, code=error.code))
    if errors and not names:
        raise errors[0]
    reads, together = reading.finish()
    found = [Part(name, part) for name, part in zip(names, reads, strict=True)]
    if together is not None:
        found.insert(0, Part(None, together))
    return answer(found, reading.causes, errors=errors, everything=everything)


def _named_file(one: Input) -> None:
    """Refuse an empty name, which would stand for the current folder.

    Raises:
        InputError: the name is empty.
    """
    if isinstance(one.source, Path) and not one.name.strip():
        raise InputError(
            "the name of the file is empty",
            hint="give a file, or - for standard input; an unset variable of the shell reads so",
        )


def judged_by(engine: Engine) -> Diagnose:
    """Return what judges exporter text by the rules of an engine, one answer for each GPU.

    It runs an event loop of its own, so it must not be called inside one.
    """

    def diagnose(text: bytes) -> Sequence[Why]:
        return asyncio.run(judge(engine, text))

    return diagnose


async def judge(engine: Engine, text: bytes) -> list[Why]:
    """Judge exporter text by the rules, one answer for each GPU.

    Raises:
        InputError: the text cannot be read.
    """
    from engine.sources.exposition import FileSource  # noqa: PLC0415 - numpy, not for formatting

    source = FileSource(["-"], stdin=BytesIO(text))
    try:
        return await engine.each(source)
    finally:
        await source.aclose()
