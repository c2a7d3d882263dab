"""What can be wrong with a GPU as ``nvidia-smi`` shows it, by id."""

from __future__ import annotations

from typing import Final

from engine.readers.smi.concerns_around import SURROUNDINGS
from engine.readers.smi.concerns_board import BOARD

CONCERNS: Final = {concern.id: concern for concern in (*BOARD, *SURROUNDINGS)}
