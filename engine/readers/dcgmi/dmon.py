"""Reader of ``dcgmi dmon``: columns by their short names, one row for each entity and moment.

Rows without a value for a field (``N/A``, or blank) keep their other values. Moments are taken to
be one second apart, the tool's default; counters are judged by their last value only, since a
rate would depend on that. Source: NVIDIA/DCGM dcgmi/DeviceMonitor.cpp 2.4 to 4.6.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import ClassVar, Final

from engine.readers.base import Context, Result
from engine.readers.dcgmi.dmon_findings import (
    RATIOS,
    Course,
    impossible_findings,
    judged,
    mask_findings,
    profiling_blank,
    silent_finding,
    summary,
)
from engine.readers.dcgmi.dmon_outliers import outlier_findings
from engine.readers.listing import Kept, Listing, result_of
from engine.readers.readings import absorb

_HEADER: Final = re.compile(r"^\s{0,8}#\s?Entity\b")
_UNITS: Final = re.compile(r"^\s{0,16}I[dD](?:\s|$)")
_ROW: Final = re.compile(
    r"^\s{0,16}(?P<kind>GPU(?:[ _-](?:I|CI))?|(?:Nv)?Switch|CPU|Core|Link|(?:GPU|SW) \d{1,4} LINK)"
    r"[ :]{1,4}(?P<id>\d{1,5})(?:\s|$)"
)
_TOKEN: Final = re.compile(r"\S{1,64}")
_NUMBER: Final = re.compile(r"^-?[0-9]{1,20}(?:\.[0-9]{1,12})?$")
# DCGM's blanks, which old versions print as numbers (dcgm_structs.h).
_BLANK_FROM: Final = (9.2e18, 140737488355328.0, 2147483632.0)
# GPU, copy, encoder and decoder utilisation.
_PERCENTS: Final = frozenset({203, 204, 206, 207})
MAX_ENTITIES: Final = 512


class DmonReader(Listing[Course]):
    """Reads the field monitor."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"#Entity", b"# Entity")
    PATIENCE: ClassVar[int] = 3

    def __init__(
        self, context: Context, host: str | None = None, kept: Kept[Course] | None = None
    ) -> None:
        super().__init__(context, host, Kept(MAX_ENTITIES) if kept is None else kept)
        self._columns: list[tuple[str, int, int]] = []
        self._courses: dict[tuple[str, int], Course] = {}

    @cached_property
    def _fields(self) -> dict[str, int]:
        entries = self.context.catalogue.entries.get("dcgm_fields", {})
        return {str(e["short"]): int(e["id"]) for e in entries.values() if e.get("short")}

    def take(self, number: int, text: str) -> bool:
        """Take a header, its line of units, or a row."""
        if _HEADER.match(text):
            columns = [(m[0], m.start(), m.end()) for m in _TOKEN.finditer(text)]
            names = [c for c in columns if c[0].lstrip("#") not in ("Entity", "")]
            if not any(c[0] in self._fields for c in names):
                return False
            self._columns, self.inside = names, True
            return True
        if not self.inside:
            return False
        row = _ROW.match(text)
        if row is None:
            return bool(_UNITS.match(text))
        self._row(number, text, row)
        return True

    def judge(self, records: Sequence[Course]) -> Result:
        """Put the readings to the rules, and say what they lack."""
        catalogue = self.context.catalogue
        findings = list(mask_findings(records, catalogue))
        findings += [f for f in (profiling_blank(records), silent_finding(records)) if f]
        findings += impossible_findings(records, catalogue)
        findings += outlier_findings(records)
        findings.append(summary(records, catalogue))
        result = result_of(["dcgmi_dmon"], findings)
        absorb(result, judged(records, self.context))
        return result

    def _row(self, number: int, text: str, row: re.Match[str]) -> None:
        kind = row["kind"].replace("_", "-").replace(" I", "-I").replace(" CI", "-CI")
        key = (kind, int(row["id"]))
        course = self._courses.get(key)
        if course is None:
            course = Course(kind, key[1], self.host, number)
            if not self.kept.add(course):
                return
            self._courses[key] = course
        values: dict[int, float] = {}
        for name, cell in self._cells(text, row.end("id")):
            field_id = self._fields.get(name)
            if field_id is None:
                continue
            value = _value(cell)
            if value is not None and value > _most(field_id):
                course.odd.setdefault(field_id, (number, value))
                course.odd_count += 1
            elif value is None:
                course.blank[field_id] = course.blank.get(field_id, 0) + 1
            else:
                values[field_id] = value
        course.newest |= values
        course.moments.append((course.rows, values))
        course.rows += 1

    def _cells(self, text: str, start: int) -> Iterator[tuple[str, str]]:
        """Pair cells with columns: in order if all are there, else by where they stand."""
        tokens = [(m[0], m.start(), m.end()) for m in _TOKEN.finditer(text, start)]
        if len(tokens) == len(self._columns):
            for column, token in zip(self._columns, tokens, strict=True):
                yield column[0], token[0]
            return
        for cell, begins, ends in tokens:
            near = min(
                self._columns,
                key=lambda c: min(abs(c[1] - begins), abs(c[2] - ends)),
                default=None,
            )
            if near is not None:
                yield near[0], cell


def _most(field_id: int) -> float:
    """The highest value that a share of time can have: 1 for PROF fields, 100 percent else."""
    if field_id in RATIOS:
        return 1.001
    return 100.0 if field_id in _PERCENTS else float("inf")


def _value(cell: str) -> float | None:
    if not _NUMBER.match(cell):
        return None
    value = float(cell)
    if value >= _BLANK_FROM[0] or value in (_BLANK_FROM[1], _BLANK_FROM[1] + 2):
        return None
    return None if _BLANK_FROM[2] <= value <= _BLANK_FROM[2] + 3 else value
