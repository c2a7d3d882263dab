"""An error as an answer, for surfaces that have no other way to show it."""

from __future__ import annotations

from bot.answer import Answer, Block, Level, Text, Tone, line, strong
from engine.errors import GpuwhyError


def failed(error: GpuwhyError) -> Answer:
    """Return what went wrong, and what to do about it."""
    blocks: tuple[Block, ...] = (Text(line(error.hint)),) if error.hint else ()
    return Answer(
        title=line(strong(error.message, Tone.WARNING)),
        blocks=blocks,
        data={"error": {"code": error.code, "message": error.message, "hint": error.hint}},
        level=Level.UNKNOWN,
    )


def internal(problem: BaseException) -> GpuwhyError:
    """Return what people are told about an error in gpuwhy itself; the log has the rest."""
    said = f"internal error: {type(problem).__name__}"
    return GpuwhyError(said, hint="the server's log has more; please report it", code="internal")
