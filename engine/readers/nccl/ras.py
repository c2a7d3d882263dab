"""The report of RAS, NCCL's own health thread: ``ncclras -v`` or ``echo verbose status | nc …``.

Forms (NVIDIA/nccl v2.24 to v2.30.7 src/ras/client_support.cc)::

    #0-0 (27a079b828ff1a75) MISMATCH
      Communicator ranks have different AllReduce operation counts
      26 ranks have launched up to operation 6650
      Rank 7 has launched up to operation 60 -- GPU 3 managed by process 1650386 on node node1
      2 ranks have launched up to operation 6649
      Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210
    #0-0 (cf264af53edbe986) INCOMPLETE
      The missing rank: 21
    DEAD
      Process 3487984 on node 172.16.64.213 managing GPU 5

Counts are of launches, taken while the job runs: one operation of difference is no news.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from engine.readers.nccl import ras_words
from engine.readers.nccl.ras_words import Communicator, Lost
from engine.readers.nccl.told import Told

TRIGGERS: Final = (
    b"Communicator ranks have different",
    b"launched up to operation",
    b"not launched any operations",
    b"managed by process ",
    b" managing GPU",
    b"issing communicator data",
    b"he missing rank",
    b"via the RAS network",
    b") MISMATCH",
    b") INCOMPLETE",
)
_COMMUNICATOR = re.compile(r"#(?P<id>\d{1,7}-\d{1,7}) \((?P<hash>[0-9a-f]{1,20})\)")
_MANY = re.compile(r"(?P<count>\d{1,7}) ranks have (?:launched up to operation|not launched)")
_ONE = re.compile(r"\bRank (?P<rank>\d{1,7}) has (?:launched up to operation|not launched)")
_UP_TO = re.compile(r"up to operation (?P<operation>\d{1,18})")
_RANK = re.compile(r"\bRank (?P<rank>\d{1,7})\b.{0,60}? -- GPU (?P<gpu>[\d,-]{1,60})")
_ON = re.compile(r"process (?P<pid>\d{1,10}) on node (?P<node>[\w.:-]{1,100})")
_PROCESS = re.compile(
    r"Process (?P<pid>\d{1,10}) on node (?P<node>[\w.:-]{1,100})"
    r"(?: managing GPUs? (?P<gpus>[\d,-]{1,60}))?"
)
_MISSING = re.compile(r"[Tt]he missing ranks?: (?P<ranks>[\d, ]{1,400})")
_ROW = re.compile(
    r"^\s{0,12}\d{1,7} {1,12}\d{1,7} {1,12}[\d-]{1,15} {1,12}[\d-]{1,15} {1,12}[\d-]{1,15}"
    r" {1,12}[\d-]{1,15} {1,12}(?P<status>[A-Z,/]{2,40}) {1,12}(?P<errors>[A-Z,/]{2,40})\s*$"
)
_OPERATION = re.compile(r"different (?P<operation>\w{1,40}) operation counts")
_MOST: Final = 1_024
# A row may come two lines after the head or another row.
_ROWS: Final = 3


class Ras:
    """Gathers what reports of RAS say, bounded."""

    def __init__(self) -> None:
        self._communicators: dict[str, Communicator] = {}
        self._now: Communicator | None = None
        self._lost = Lost()
        self._sound: list[int] = []
        self._unsound = False
        self._left = 0
        self.overflow = 0

    @property
    def open(self) -> bool:
        """Whether the next line is wanted: the table of communicators."""
        return self._left > 0

    def feed(self, number: int, text: str) -> bool:
        """Take a line; return whether it is of such a report."""
        text = text[:1_024]
        return (
            self._table(number, text)
            or self.head(number, text)
            or self._counts(number, text)
            or self._gone(number, text)
        )

    def head(self, number: int, text: str) -> bool:
        """Take the head of a communicator; return whether it is one."""
        found = _COMMUNICATOR.match(text.strip()[:80])
        if found is not None:
            self._now = self._communicator(number, found["id"])
        return found is not None

    def tell(self, *, hang: bool) -> Iterator[Told]:
        """Yield who is dead, does not answer, or is behind; ``hang``: the poster says it hangs."""
        if self._lost.processes or self._lost.missing:
            yield ras_words.gone(self._lost)
        elif self._sound and not self._unsound:
            yield ras_words.well(self._sound[0])
        for one in self._communicators.values():
            if one.spread:
                yield ras_words.apart(one, hang=hang)

    def _table(self, number: int, text: str) -> bool:
        if "Status  Errors" in text:
            self._left = _ROWS
            return True
        if not self._left:
            return False
        self._left -= 1
        row = _ROW.match(text)
        if row is None:
            # The second line of the head.
            return "per comm" in text
        if row["status"] == "RUNNING" and row["errors"] == "OK":
            self._sound.append(number)
        else:
            self._unsound = True
        self._left = _ROWS
        return True

    def _communicator(self, number: int, name: str) -> Communicator | None:
        if name not in self._communicators and len(self._communicators) >= _MOST:
            self.overflow += 1
            return None
        return self._communicators.setdefault(name, Communicator(number, name))

    def _counts(self, number: int, text: str) -> bool:
        differ = _OPERATION.search(text)
        many, one = _MANY.search(text), _ONE.search(text)
        rank = _RANK.search(text)
        if not (differ or many or one or rank):
            return False
        if self._now is None:
            self._now = self._communicator(number, "?")
        now = self._now
        if now is None:
            return True
        if differ:
            now.operation = differ["operation"]
            return True
        up_to = _UP_TO.search(text)
        if many:
            now.last = int(up_to["operation"]) if up_to else 0
            if len(now.many) < _MOST:
                now.many[now.last] = int(many["count"])
            return True
        named = one or rank
        reach = (int(up_to["operation"]) if up_to else 0) if one else now.last
        if named is not None and reach is not None and len(now.reach) < _MOST:
            now.reach[int(named["rank"])] = reach
            place = _ON.search(text)
            if place is not None:
                now.places[int(named["rank"])] = place["node"]
        return True

    def _gone(self, number: int, text: str) -> bool:
        missing = _MISSING.search(text)
        if missing is not None:
            for word in missing["ranks"].replace(",", " ").split():
                if len(self._lost.missing) < _MOST and len(word) <= 7:
                    self._lost.missing.setdefault(int(word), number)
            return True
        if "considered dead" in text:
            self._lost.dead = self._lost.dead or number
            return True
        process = _PROCESS.search(text)
        if process is not None and len(self._lost.processes) < _MOST:
            gpus = process["gpus"] or ""
            self._lost.processes.setdefault((process["node"], process["pid"]), (number, gpus))
        return process is not None or "issing communicator data" in text
