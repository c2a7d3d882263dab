"""Readers: say what pasted text or a file shows.

Each kind of text has one reader, a small class with triggers, a parser and sentences, registered
in `engine.readers.table`. Kinds may be mixed in one paste: every line is offered to each reader
in turn.

The table of all readers is loaded with the first `read`: who wants a single module of this folder,
as the log sources do, does not pay for all of them.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.readers.base import Diagnose
    from engine.readers.paste import Reading, read

__all__ = ["Diagnose", "Reading", "read"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from engine.readers import paste  # noqa: PLC0415 - see the module docstring

    return getattr(paste, name)
