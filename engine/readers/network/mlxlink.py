"""Reader of ``mlxlink`` (text and ``--json``): physical link, bit errors, module, PCIe side.

Source: NVIDIA MFT documentation, mlxlink utility; Mellanox/mstflint mlxlink.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from engine.readers.base import Context, Result
from engine.readers.documents import DocumentKind
from engine.readers.listing import Listing, result_of
from engine.readers.network.mlxlink_verdict import Module, judge_modules
from engine.readers.quantities import short

_SECTIONS: Final = frozenset(
    (
        "operational info",
        "supported info",
        "troubleshooting info",
        "module info",
        "physical counters and ber info",
        "tool information",
        "eye opening info",
        "pcie operational (enabled) info",
        "management pcie performance counters info",
        "fec capability info",
        "histogram of fec errors",
        "device info",
    )
)
_PAIR: Final = re.compile(r"^\s{0,4}([A-Za-z][^:]{0,60}?)\s{0,60}:\s{1,4}(\S.{0,300})?$")
_COMMAND: Final = re.compile(r"(?:mlx|mst)link\b.{0,80}? -d (\S{1,64})(?:\s|$)")


class MlxlinkReader(Listing[Module]):
    """Reads the ``Key : value`` lines of each section."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"Operational Info",
        b"Operational (Enabled) Info",
        b"Physical Counters and BER Info",
    )
    pattern: ClassVar[bytes] = rb"(?:mlx|mst)link\b[^\n]* -d "
    PATIENCE = 6

    _module: Module | None = None
    _device: str | None = None

    def take(self, number: int, text: str) -> bool:
        """Take a line of ``mlxlink``."""
        command = _COMMAND.search(text[:400])
        if command:
            self._device, self._module = short(command[1]), None
            return True
        bare = text.strip().lower()
        if bare in _SECTIONS:
            if bare.endswith("operational info") or self._module is None:
                self._module = Module(number, self._device, self.host)
                self.kept.add(self._module)
                self._device = None
            self.inside = True
            return True
        if not self.inside or self._module is None:
            return False
        if set(bare) == {"-"}:
            return True
        pair = _PAIR.match(text)
        if pair is None:
            self.inside = text.startswith(" ")
            return False
        self._module.add(pair[1], (pair[2] or "").strip())
        return True

    def end(self) -> None:
        """Start afresh with the next listing."""
        self._module = None

    def judge(self, records: Sequence[Module]) -> Result:
        """Say what links and modules show."""
        return result_of(["mlxlink"], judge_modules(records))


def _output(value: object) -> Mapping[str, Any] | None:
    result = value.get("result") if isinstance(value, dict) else None
    output = result.get("output") if isinstance(result, dict) else None
    return output if isinstance(output, dict) else None


def _is_mlxlink(value: object) -> bool:
    output = _output(value)
    return output is not None and (
        "Operational Info" in output or "Physical Counters and BER Info" in output
    )


def _read(value: object, _context: Context, line: int) -> Result:
    module = Module(line, None, None)
    for section in (_output(value) or {}).values():
        for key, held in section.items() if isinstance(section, dict) else ():
            if isinstance(held, str | int | float):
                module.add(str(key), short(str(held), 300))
            elif isinstance(held, dict) and isinstance(held.get("values"), list):
                module.add(str(key), short(",".join(map(str, held["values"][:16])), 300))
    return result_of(["mlxlink"], judge_modules([module]))


MLXLINK_JSON = DocumentKind("mlxlink", _is_mlxlink, _read)
