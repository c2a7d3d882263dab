"""Reader of exporter text (Prometheus exposition, OpenMetrics): collects, judges, names oddities.

Verdicts come from the injected judge, which applies the rules; what is odd about the text itself
is found here (`engine.readers.value_oddities`, `engine.readers.label_oddities`).
"""

from __future__ import annotations

import re
from typing import ClassVar

from engine.errors import InputError
from engine.model import Severity
from engine.readers.base import Context, Result
from engine.readers.readings import merge
from engine.sources.sampleline import LineError, parse_head, parse_tail

_NAME = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(\{|[ \t]+(?=[-+.0-9NI])|$)")
# The line as ``promtool query instant`` and the web interface print it.
_PROMTOOL = re.compile(r" => (\S{1,40}) @\[(\d{1,12}(?:\.\d{1,6})?)\]$")
_META = re.compile(r"# (?:TYPE|HELP|UNIT|EOF)\b")
_SEVERITIES = tuple(Severity)


class ExporterReader:
    """Reads samples, line by line, and keeps their text for the judge.

    Raises:
        InputError: more exporter text than `LIMIT` bytes; files of that size are for ``why``.
    """

    triggers: ClassVar[tuple[bytes, ...]] = (
        b'="',
        b"# TYPE ",
        b"# HELP ",
        b"DCGM_",
        b"nvidia.com/gpu",
    )
    LIMIT = 128 * 1024 * 1024

    def __init__(self, context: Context) -> None:
        self.open = False
        self._context = context
        # numpy comes with the series; a paste without metrics does without it.
        from engine.readers.series import Collected  # noqa: PLC0415

        self._collected = Collected(context.catalogue)
        self._lines: list[str] = []
        self._size = 0

    def feed(self, number: int, text: str) -> bool:
        """Take one line of exposition text."""
        if text.startswith("#"):
            if "nvidia.com/gpu" in text:
                self._collected.kubernetes = True
            taken = bool(_META.match(text))
            if taken:
                self._keep(text)
            self.open |= taken
            return taken
        self.open = self._sample(number, _PROMTOOL.sub(r" \1 \2", text.strip()))
        return self.open

    def finish(self) -> Result:
        """Judge the readings, and name what is odd about them."""
        if not self._collected.series and not self._collected.valueless:
            return Result()
        from engine.readers.label_oddities import label_oddities  # noqa: PLC0415
        from engine.readers.value_oddities import value_oddities  # noqa: PLC0415

        catalogue = self._context.catalogue
        findings = [
            *value_oddities(self._collected, catalogue),
            *label_oddities(self._collected, catalogue),
        ]
        findings.sort(key=lambda f: _SEVERITIES.index(f.severity))
        result = Result(findings=findings)
        result.kinds = list(dict.fromkeys(["metrics", *(f.kind for f in findings)]))
        if self._context.diagnose is not None:
            merge(result, self._context.diagnose("\n".join([*self._lines, ""]).encode()))
        result.causes += [f.cause for f in findings if f.cause and f.cause not in result.causes]
        if self._collected.overflow:
            result.notes.append(
                f"Oddities were looked for in the first {self._collected.LIMIT} series only."
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
        except LineError:
            return False
        words = raw[end:].partition(b"#")[0].split()
        if not words:
            self._collected.add_valueless(number, name)
            return True
        try:
            value, _stamp = parse_tail(raw[end:])
        except LineError:
            return False
        self._collected.add(name, labels, value, number, words[0].decode("utf-8", "replace"))
        self._keep(text)
        return True

    def _keep(self, text: str) -> None:
        self._size += len(text) + 1
        if self._size > self.LIMIT:
            raise InputError(
                f"more than {self.LIMIT // 1_048_576} MiB of exporter text",
                hint="ask about it with: gpuwhy why TARGET --metrics FILE",
            )
        self._lines.append(text)
