"""CPU stacks of Python programs: dumps of a moment and recordings, as py-spy writes them.

`frames` says what a process does by the table ``stack_frames``; `dump` and `judge` lay the dumps of
a job's processes beside each other, `folded` adds up a recording.
"""

from __future__ import annotations

from typing import Any

from engine.readers.base import Context, Result
from engine.readers.documents import DocumentKind
from engine.traces.pyspy.dump import KIND, DumpReader, dumped, is_json, of_json
from engine.traces.pyspy.folded import FoldedReader
from engine.traces.pyspy.frames import Activities


def _read(value: Any, context: Context, line: int) -> Result:
    return dumped(of_json(value, line), Activities(context.catalogue))


PY_SPY_JSON = DocumentKind(KIND, is_json, _read)

__all__ = ["PY_SPY_JSON", "DumpReader", "FoldedReader"]
