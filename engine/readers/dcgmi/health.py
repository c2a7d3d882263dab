"""``dcgmi health -c``: the table of old and new versions, and its JSON.

New tables nest ``-> GPU``, ``-> 3``, ``-> Errors``, ``-> Memory system``; old ones (DCGM 1 and 2)
write ``GPU ID: 3`` and ``PCIe system: Warning - why`` under a title without a frame, with the group
beside the overall health. Source: NVIDIA/DCGM dcgmi/Health.cpp and DcgmiOutput.cpp 2.1 to 4.6; DCGM
User Guide 1.7, Background Health Checks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from engine.readers.base import Context, Result
from engine.readers.dcgmi.health_result import KIND as KIND_NAME
from engine.readers.dcgmi.health_result import Incident, Report, report
from engine.readers.documents import DocumentKind
from engine.readers.listing import Kept, Listing
from engine.readers.quantities import short

_TITLE: Final = re.compile(r"^\s{0,8}(?:[|+]\s?Health Monitor Report\b|Health Monitor Report\s*$)")
_RULE: Final = re.compile(r"^\s{0,8}[+|][-=+]{3,}")
_CELLS: Final = re.compile(r"^\s{0,8}\|(?P<left>[^|]{1,48})\|(?P<right>.{0,512}?)\|?\s*$")
_ARROW: Final = re.compile(r"^(?P<indent>\s{0,24})-> ?(?P<name>[\w -]{1,32}?)\s*$")
_GPU_ID: Final = re.compile(r"^(?P<kind>GPU|NvSwitch|CPU|ConnectX) ID: ?(?P<id>\d{1,5})\b")
_HEALTH: Final = re.compile(r"^(?P<health>Healthy|Warning|Failure|Internal error)\b")
_OLD_SYSTEM: Final = re.compile(
    r"^(?P<system>[A-Za-z][\w ]{1,24}?)(?: system)?: ?(?P<health>Healthy|Warning|Failure)\b"
    r"(?: - (?P<text>\S.{0,400}))?"
)
_NO_WATCHES: Final = "Health watches not enabled"
_KINDS: Final = ("GPU", "NvSwitch", "CPU", "ConnectX", "GPU_I", "GPU-I", "Switch")


class HealthReader(Listing[Report]):
    """Reads the report of a health check."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"Health Monitor Report",
        b"Health watches not enabled",
    )
    PATIENCE: ClassVar[int] = 2

    def __init__(
        self, context: Context, host: str | None = None, kept: Kept[Report] | None = None
    ) -> None:
        super().__init__(context, host, Kept(256) if kept is None else kept)
        self._report: Report | None = None
        self._kind = "GPU"
        self._entity: int | None = None
        self._incident: Incident | None = None

    def take(self, number: int, text: str) -> bool:
        """Take a line of the report."""
        if _NO_WATCHES in text:
            self.kept.add(Report(number, self.host, enabled=False))
            return True
        if _TITLE.match(text):
            self._report = Report(number, self.host)
            if not self.kept.add(self._report):
                self._report = None
            self._kind, self._entity, self._incident = "GPU", None, None
            self.inside = True
            return True
        if not self.inside:
            return False
        if _RULE.match(text):
            return True
        cells = _CELLS.match(text)
        if cells is None:
            return False
        self._row(number, cells["left"][1:].rstrip(), cells["right"].strip())
        return True

    def end(self) -> None:
        """Forget the report: what follows is another."""
        self._report = self._incident = None

    def judge(self, records: Sequence[Report]) -> Result:
        """Say what the reports show."""
        return report(records, self.context)

    def _row(self, number: int, left: str, right: str) -> None:
        if self._report is None:
            return
        name = left.strip()
        if name.startswith("Overall Health") or right.startswith("Overall Health"):
            said = _HEALTH.match(right.rpartition(":")[2].strip())
            self._report.overall = said["health"] if said else None
            return
        old = _GPU_ID.match(name) or _GPU_ID.match(right)
        if old is not None:
            self._kind, self._entity, self._incident = old["kind"], int(old["id"]), None
            right = right[old.end() :].strip() if right.startswith(old[0]) else right
        if name in _KINDS:
            self._kind, self._entity, self._incident = name, None, None
            return
        arrow = _ARROW.match(left)
        if arrow is not None:
            self._named(number, arrow["name"].strip(), right)
            return
        system = _OLD_SYSTEM.match(right)
        if system is not None and self._entity is not None:
            self._add(number, system["system"], system["health"])
            if system["text"] and self._incident is not None:
                self._incident.add(system["text"])
            return
        if right and self._incident is not None:
            self._incident.add(right)

    def _named(self, number: int, name: str, right: str) -> None:
        if name in _KINDS:
            self._kind, self._entity, self._incident = name, None, None
        elif name.isascii() and name.isdecimal():
            self._entity, self._incident = int(name[:6]), None
        elif name != "Errors":
            said = _HEALTH.match(right)
            if said is not None:
                self._add(number, name.removesuffix(" system"), said["health"])

    def _add(self, number: int, system: str, health: str) -> None:
        assert self._report is not None
        if health == "Healthy":
            self._incident = None
            return
        self._incident = Incident(number, self._kind, self._entity, system.strip(), health)
        self._report.add(self._incident)


def _detect(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    header, body = value.get("header"), value.get("body")
    named = isinstance(header, list) and "Health Monitor Report" in header[:4]
    return named and isinstance(body, Mapping)


def _read(value: Any, context: Context, line: int) -> Result:
    found = Report(line)
    body: Mapping[str, Any] = value["body"]
    overall = body.get("Overall Health")
    found.overall = _said(overall) if isinstance(overall, Mapping) else None
    for kind in _KINDS:
        for entity, one in _children(body.get(kind)):
            number = int(entity[:6]) if entity.isascii() and entity.isdecimal() else None
            for _, errors in _children(one, "Errors"):
                for system, incident in _children(errors):
                    health = _said(incident)
                    if health and health != "Healthy":
                        made = Incident(
                            line, kind, number, short(system.removesuffix(" system"), 32), health
                        )
                        for text in _overflow(incident):
                            made.add(text)
                        found.add(made)
    return report([found], context)


KIND: Final = DocumentKind(KIND_NAME, _detect, _read)


def _children(value: object, only: str | None = None) -> list[tuple[str, Mapping[str, Any]]]:
    children = value.get("children") if isinstance(value, Mapping) else None
    if not isinstance(children, Mapping):
        return []
    return [
        (str(name), child)
        for name, child in list(children.items())[:1_024]
        if isinstance(child, Mapping) and (only is None or name == only)
    ]


def _said(value: Mapping[str, Any]) -> str | None:
    said = value.get("value")
    found = _HEALTH.match(said) if isinstance(said, str) else None
    return found["health"] if found else None


def _overflow(value: Mapping[str, Any]) -> list[str]:
    said = value.get("overflow")
    items = said if isinstance(said, list) else [said]
    texts = [one.get("value") if isinstance(one, Mapping) else one for one in items[:64]]
    return [text[:256] for text in texts if isinstance(text, str)]
