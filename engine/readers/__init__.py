"""Readers: say what pasted text or a file shows.

Each kind of text has one reader, a small class with triggers, a parser and sentences, registered
in `engine.readers.table`. Kinds may be mixed in one paste: every line is offered to each reader
in turn.
"""

from engine.readers.base import Diagnose
from engine.readers.paste import read

__all__ = ["Diagnose", "read"]
