"""The listings of ``amd-smi`` (metric, static, list, bad-pages, process): keys, indented by four.

A GPU starts with ``GPU: 0``. Where a paste has lost its indentation, the last key alone tells what
a value is, as in the tool's CSV. Source: ROCm/amdsmi amdsmi_cli/amdsmi_logger.py 24.6 to 26.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from engine.readers.amd_smi.fields import csv_path, put
from engine.readers.amd_smi.state import AmdGpu

_DEVICE: Final = re.compile(r"^\s{0,12}(?P<kind>GPU|CPU|CORE): (?P<id>\d{1,4})\s*$")
_KEY: Final = re.compile(
    r"^(?P<indent>[ \t]{0,40})(?P<key>[A-Z0-9][A-Z0-9_ #]{0,63}):"
    r"(?:\s{1,4}(?P<value>.{0,2048}))?\s*$"
)
# A long list goes on in lines without a key: "   0 %, 0 %]".
_MORE: Final = re.compile(r"^\s{4,40}(?:[0-9N/A %.,'\]\[]|ACTIVE|NOT|MHz){1,400}$")
_SECTIONS: Final = frozenset(
    (
        "usage", "power", "clock", "temperature", "pcie", "ecc", "ecc_blocks", "fan", "mem_usage",
        "throttle", "limit", "asic", "bus", "vbios", "ifwi", "driver", "board", "ras", "partition",
        "numa", "vram", "cache_info", "energy", "retired", "pending", "un_res", "process_info",
    )
)  # fmt: skip


class ListingForm:
    """Reads the listings of all subcommands; what it does not know is passed over."""

    def __init__(self, emit: Callable[[AmdGpu], None], host: str | None) -> None:
        self._emit = emit
        self._host = host
        self._gpu: AmdGpu | None = None
        self._base = 0
        self._path: list[tuple[int, str]] = []

    def starts(self, number: int, text: str) -> bool:
        """Return whether a line starts the listing of a device."""
        found = _DEVICE.match(text)
        if found is None:
            return False
        self._gpu, self._path = None, []
        self._base = len(text) - len(text.lstrip())
        if found["kind"] == "GPU":
            self._gpu = AmdGpu(number, int(found["id"]), self._host)
            self._emit(self._gpu)
        return True

    def take(self, number: int, text: str) -> bool:
        """Take a line under a device."""
        if self.starts(number, text):
            return True
        found = _KEY.match(text)
        if found is None:
            return bool(_MORE.match(text))
        indent = len(found["indent"].expandtabs(4))
        key = found["key"].strip().lower().replace(" ", "_")
        if indent <= self._base and key not in _SECTIONS and csv_path(key) is None:
            return False
        while self._path and self._path[-1][0] >= indent:
            self._path.pop()
        value = found["value"]
        if self._gpu is not None and value is not None and value.strip():
            path = ".".join([*(k for _, k in self._path), key])
            if not put(self._gpu, path, value) and indent <= self._base:
                put(self._gpu, csv_path(key) or key, value)
        elif len(self._path) < 8:
            self._path.append((indent, key))
        return True
