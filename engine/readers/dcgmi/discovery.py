"""Reader of ``dcgmi discovery -l``: which GPUs DCGM sees, and which it has lost.

Source: NVIDIA/DCGM dcgmi/Query.cpp 2.1 to 4.6.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Context, Result
from engine.readers.dcgmi.diag_result import entity_of
from engine.readers.listing import Kept, Listing, finding, result_of
from engine.readers.quantities import listed, short

_CELLS: Final = re.compile(r"^\s{0,8}\|(?P<left>[^|]{1,48})\|(?P<right>.{0,256}?)\|?\s*$")
_RULE: Final = re.compile(r"^\s{0,8}[+|][-=+]{3,}")
MAX_GPUS: Final = 512


@dataclass(slots=True)
class Board:
    """One GPU or switch that discovery lists."""

    line: int
    host: str | None
    kind: str
    id: int
    name: str | None = None
    status: str | None = None


class DiscoveryReader(Listing[Board]):
    """Reads ``dcgmi discovery -l``."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"| Device Information",)
    _title: ClassVar[re.Pattern[str]] = re.compile(
        r"^\s{0,8}\|\s?(?P<kind>GPU|Switch|CPU|ConnectX)(?: ID)?\s{1,40}\|\s?Device Information"
    )

    def __init__(
        self, context: Context, host: str | None = None, kept: Kept[Board] | None = None
    ) -> None:
        super().__init__(context, host, Kept(MAX_GPUS) if kept is None else kept)
        self._kind = "GPU"
        self._board: Board | None = None

    def take(self, number: int, text: str) -> bool:
        """Take a line of the table."""
        title = self._title.match(text)
        if title is not None:
            self._kind, self._board, self.inside = title["kind"], None, True
            return True
        if not self.inside:
            return False
        if _RULE.match(text):
            return True
        cells = _CELLS.match(text)
        if cells is None:
            return False
        left, right = cells["left"].strip(), cells["right"].strip()
        if left.isascii() and left.isdecimal():
            self._board = Board(number, self.host, self._kind, int(left[:6]))
            self.kept.add(self._board)
        if self._board is not None:
            key, _, value = right.partition(":")
            if key == "Name":
                self._board.name = short(value)
            elif key == "Status":
                self._board.status = short(value, 24)
        return True

    def judge(self, records: Sequence[Board]) -> Result:
        """Say what is there, and what is not in order."""
        found = [f for one in records if (f := _of_board(one)) is not None]
        gpus = [one for one in records if one.kind == "GPU"]
        names = list(dict.fromkeys(one.name for one in gpus if one.name))
        found.append(
            finding(
                "dcgmi_discovery",
                "summary",
                Severity.INFO,
                f"DCGM sees {len(gpus)} GPU(s)"
                + (f" ({listed(names, 4)})" if names else "")
                + f" and {len(records) - len(gpus)} other device(s). The list says nothing about "
                "their health.",
                "For health: dcgmi health -s a; dcgmi health -c; dcgmi diag -r 2.",
                line=records[0].line,
                data={"gpus": len(gpus), "models": names or None},
            )
        )
        return result_of(["dcgmi_discovery"], found)


def _of_board(one: Board) -> Finding | None:
    lost = one.status in ("Lost", "Detached")
    if one.kind != "GPU" or one.status not in ("Lost", "Detached", "Inaccessible"):
        return None
    return finding(
        "dcgmi_discovery",
        "lost",
        Severity.CRITICAL,
        f"DCGM lists GPU {one.id} as {one.status.lower()}: it was there and does not answer now.",
        "Read dmesg for Xid 79 (fallen off the bus) and the Xids before it; drain the node and "
        "power-cycle it.",
        line=one.line,
        cause="gpu_off_bus" if lost else None,
        data={"gpu": one.id, "status": one.status},
        entity=entity_of(one.id, one.host),
    )
