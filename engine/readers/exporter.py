"""Reader of exporter text (Prometheus exposition, OpenMetrics): collects, judges, names oddities.

Verdicts come from the injected judge, which applies the rules; what is odd about the text itself
is found here (`engine.readers.series_oddities`, `engine.readers.families`), and what LLM servers
say in `engine.readers.serving`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from engine.model import Entity, Severity, Verdict, Why
from engine.readers.base import Context, Result
from engine.readers.families import Families
from engine.readers.gaps import gaps_of
from engine.readers.readings import merge
from engine.readers.ruledout import ruled_out
from engine.signals.labels import gpu_entity
from engine.sources.sampleline import LineError, parse_head, parse_tail

if TYPE_CHECKING:
    from engine.readers.series import Collected

_NAME = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(\{|[ \t]+(?=[-+.0-9NI])|$)")
# The line as ``promtool query instant`` and the web interface print it.
_PROMTOOL = re.compile(r" => (\S{1,40}) @\[(\d{1,12}(?:\.\d{1,6})?)\]$")
# Labels alone, the name among them, as query results are printed.
_NAMELESS = re.compile(r'\{__name__="([a-zA-Z_:][a-zA-Z0-9_:]{0,200})"(?:, ?)?')
_XID_GAUGES = ("DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR")
_META = re.compile(r"# (?:TYPE|HELP|UNIT|EOF)\b")
_SEVERITIES = tuple(Severity)
# Labels that tell one GPU from another.
_PLACE = ("Hostname", "hostname", "instance", "node", "UUID", "gpu_uuid", "uuid", "gpu", "gpu_id")


class ExporterReader:
    """Reads samples, line by line, and keeps the text of the first ones for the judge.

    Some nodes' exporters are a few hundred KiB; a dump of a whole fleet is for ``why`` and
    ``sweep``, and that is said.
    """

    triggers: ClassVar[tuple[bytes, ...]] = (
        b"# TYPE ",
        b"# HELP ",
        b"DCGM_",
        b"nvidia.com/gpu",
        # Names that also come without labels.
        b"vllm:",
        b"sglang:",
        b"tgi_queue",
        b"tgi_batch",
        b"tgi_request",
        b"node_memory_",
        b"node_pressure_",
        b"node_nfs_",
        b"gpu_nodes_total",
    )
    # Labels; key="value" alone stands in many logs.
    pattern: ClassVar[bytes] = rb'[A-Za-z0-9_:]\{[A-Za-z_][A-Za-z0-9_]*="'
    LIMIT = 4 * 1024 * 1024
    # GPUs and what else has labels of its own: an answer for each is kept.
    PLACES = 512

    def __init__(self, context: Context) -> None:
        self.open = False
        self._context = context
        # numpy comes with the series; a paste without metrics does without it.
        from engine.readers.series import Collected  # noqa: PLC0415

        self._collected = Collected(context.catalogue)
        self._families = Families()
        self._lines: list[str] = []
        self._size = 0
        self._left_out = 0
        self._doubled, self._doubles = "", 0
        self._places: set[tuple[str, ...]] = {()}

    def feed(self, number: int, text: str) -> bool:
        """Take one line of exposition text."""
        if text.startswith("#"):
            if "nvidia.com/gpu" in text:
                self._collected.kubernetes = True
            taken = bool(_META.match(text))
            if taken:
                self._families.feed(number, text)
                self._keep(text)
            self.open |= taken
            return taken
        plain = _NAMELESS.sub(r"\1{", text.strip(), count=1)
        self.open = self._sample(number, _PROMTOOL.sub(r" \1 \2", plain))
        return self.open

    def finish(self) -> Result:
        """Judge the readings, and name what is odd about them."""
        collected, catalogue = self._collected, self._context.catalogue
        more = f" (and {self._doubles - 1} more like it)" if self._doubles > 1 else ""
        doubled = [f"{self._doubled}{more}."] if self._doubled else []
        if not collected.series and not collected.valueless and not self._families.declared:
            return Result(notes=doubled, kinds=["metrics"] if doubled else [])
        from engine.readers.amd_series import amd_slowed  # noqa: PLC0415
        from engine.readers.series_oddities import series_oddities  # noqa: PLC0415
        from engine.readers.serving.metrics import serving_findings  # noqa: PLC0415

        serving, serving_causes = serving_findings(collected, catalogue)
        findings = [
            *serving,
            *series_oddities(collected, catalogue),
            *self._families.oddities(collected),
        ]
        findings.sort(key=lambda f: _SEVERITIES.index(f.severity))
        result = Result(findings=findings, notes=doubled)
        result.kinds = list(dict.fromkeys(["metrics", *(f.kind for f in findings)]))
        if self._context.diagnose is not None and any(
            collected.judged(s) for s in collected.series.values()
        ):
            answers = self._context.diagnose("\n".join([*self._lines, ""]).encode())
            merge(result, _doubted(answers, collected))
            _shorten(result, answers, collected)
            result.diagnoses = ruled_out(result.diagnoses, _temperatures(collected))
        wrong = {d.entity.name for d in result.diagnoses}
        result.findings += amd_slowed(collected, wrong)
        result.findings.sort(key=lambda f: _SEVERITIES.index(f.severity))
        causes = [*serving_causes, *(f.cause for f in result.findings if f.cause)]
        result.causes = list(dict.fromkeys([*result.causes, *causes]))
        if collected.overflow or self._left_out:
            result.notes.append(
                f"The text holds more series than are judged here ({len(self._lines):,} lines): "
                "for all of them, gpuwhy sweep --metrics FILE."
            )
        return result

    def _sample(self, number: int, text: str) -> bool:
        head = _NAME.match(text)
        if head is None:
            return False
        labelled = head[2] == "{"
        if not labelled and not self._collected.knows(head[1]) and not (self.open and head[2]):
            return False
        raw = text.encode("utf-8", "replace")
        try:
            name, labels, end = parse_head(raw)
        except LineError as error:
            return self._unread(number, head[1], str(error))
        words = raw[end:].partition(b"#")[0].split()
        if not words and name in _XID_GAUGES and labels.get("err_code", "").isdecimal():
            words = [labels["err_code"][:9].encode()]  # the label repeats what the value was
            raw += b" " + words[0]
            text = raw.decode("utf-8", "replace")
        if not words:
            alone = not self._collected.series
            if alone and not (labelled and self._collected.knows(name)):
                return False  # a query, or a name in documentation
            self._collected.add_valueless(number, name)
            return True
        try:
            value, stamp = parse_tail(raw[end:])
        except LineError:
            return False
        self._collected.add(
            name,
            labels,
            value,
            number,
            words[0].decode("utf-8", "replace"),
            None if stamp != stamp else stamp,  # noqa: PLR0124 - NaN: no time
        )
        self._keep(text, tuple(labels[key] for key in _PLACE if key in labels))
        return True

    def _unread(self, number: int, name: str, why: str) -> bool:
        """Note a line that a label stands in twice; anything else may be a query, or prose."""
        doubled = why.endswith(" is given twice") and self._collected.knows(name)
        if doubled:
            self._doubled = self._doubled or f"Line {number} is not read: {why}"
            self._doubles += 1
        return doubled

    def _keep(self, text: str, place: tuple[str, ...] = ()) -> None:
        size = len(text) + 1
        if len(self._places) < self.PLACES:
            self._places.add(place)
        full = self._size + size > self.LIMIT or self._collected.overflow
        if full or place not in self._places:
            self._left_out += 1
            return
        self._size += size
        self._lines.append(text)


def _shorten(result: Result, answers: Sequence[Why], collected: Collected) -> None:
    """Say for which GPUs what is missing, and first which of them are slow without a reason."""
    exported: dict[str, dict[str, None]] = {}
    lines: dict[str, int] = {}
    for series in collected.series.values():
        name = gpu_entity([series.place]).name
        if collected.judged(series) and series.place.key[1]:
            lines.setdefault(name, series.line)
        if series.signal is not None and series.count:
            exported.setdefault(series.signal.id, {})[name] = None
            lines.setdefault(name, series.line)
    known = {answer.target.name for answer in answers}
    gaps = gaps_of(
        answers, {s: [n for n in names if n in known] for s, names in exported.items()}, lines
    )
    result.unknown = gaps.unknown
    result.findings = [*gaps.untold, *result.findings]
    result.findings.sort(key=lambda f: _SEVERITIES.index(f.severity))
    result.notes += gaps.notes


def _temperatures(collected: Collected) -> Iterator[tuple[Entity, float]]:
    """Die temperatures of the GPUs, of either maker."""
    from engine.readers.amd_gpu import amd_name, hot_spots  # noqa: PLC0415

    for series in collected.of("gpu_temp"):
        if series.value is not None:
            yield gpu_entity([series.place]), series.value
    yield from hot_spots((amd_name(s.name), s) for s in collected.series.values())


def _doubted(answers: Sequence[Why], collected: Collected) -> list[Why]:
    """Take back that GPUs are idle where the readings may be averages over days."""
    from engine.readers.profiling_oddities import averaged  # noqa: PLC0415

    names = {gpu_entity([series.place]).name for series in averaged(collected)}
    return [
        replace(
            answer,
            verdict=Verdict.UNKNOWN if answer.verdict is Verdict.IDLE else answer.verdict,
            notes=tuple(n for n in answer.notes if n.cause != "idle"),
        )
        if answer.target.name in names
        else answer
        for answer in answers
    ]
