"""The reader: collects runs of nccl-tests from the lines of a text."""

from __future__ import annotations

import re
from typing import ClassVar

from engine.model import Finding
from engine.readers.base import Context, Result
from engine.readers.nccl_tests.findings import KIND, findings_of
from engine.readers.nccl_tests.learn import (
    BINARY,
    concludes,
    learn_command,
    learn_own_line,
    learn_paths,
    learn_settings,
    lists_device,
    starts_run,
)
from engine.readers.nccl_tests.lists import Lists
from engine.readers.nccl_tests.prose import collective_of, figures_of, learn_prose
from engine.readers.nccl_tests.rows import TYPES, parse_header, parse_row
from engine.readers.nccl_tests.rows import number as parse_number
from engine.readers.nccl_tests.run import Run
from engine.readers.nccl_tests.setup import Setup

_BINARIES = (
    rb"(?:all_reduce|all_gather|reduce_scatter|alltoallv?|broadcast|reduce|sendrecv|hypercube"
    rb"|gather|scatter)_perf\b"
)
_ROW = (
    rb"\b[0-9]{1,20}[ \t|,]{1,20}[0-9]{1,20}[ \t|,]{1,12}(?:"
    + "|".join(TYPES).encode()
    + rb")[ \t|,]"
)
# What separates the cells where somebody made a table of another kind of it.
_CELLS = str.maketrans("|,", "  ")
_CONTEXT = (
    rb"\bNCCL_(?:ALGO|NVLS_ENABLE|P2P_DISABLE|P2P_LEVEL|IB_DISABLE|IB_HCA|NET)(?:=| set by)"
    rb"|\b[0-9]{1,3} ?(?:x|\xc3\x97) ?[A-Za-z0-9 -]{0,24}[0-9]{2,3} ?Gb"
    rb"|\b[0-9]{2,3} ?(?:Gb/s\b|Gbps\b|Gbit|GbE\b)"
    rb"|\b[0-9]{1,3} ?(?:x|\xc3\x97) ?(?:[A-Za-z][A-Za-z0-9-]{1,14} )?(?:FDR|EDR|HDR|NDR|XDR)"
    rb"|\b[0-9]{1,3} ?(?:x|\xc3\x97) ?(?:[0-9]{1,2} )?(?:NVIDIA )?"
    rb"(?:[ABHV][1-9]00|GB[23]00|GH200|L40S?|RTX|MI[1-3][0-9]{2})"
    rb"|\b[DH]GX[ -][ABH][1-9]00\b"
    rb"|Using network Socket"
)
_OUT_OF_BOUNDS = re.compile(r"\bOut of bounds values[ \t]{0,4}:[ \t]{0,4}(\d{1,12})\b")
_AVERAGE = re.compile(r"\bAvg bus bandwidth[ \t]{0,8}:[ \t]{0,4}(\S{1,24})(.{0,200})")
_NAMED = re.compile(r"(?i)\bbus ?bw\b|\bbus[ _]bandwidth\b")
# A launcher's tag of the rank, which may stand in the middle of a row that was written in parts.
_TAG = re.compile(r"\[\d{1,6}(?:,\d{1,6})?\](?:<std(?:out|err)>:?)?")
# Where a text is no question, tables and points of Markdown and YAML, and sentences of so many
# words are documentation. What a run was made on may stand in the first lines.
_TOP, _WORDS = 20, 8
_POINT = re.compile(r"\s*(?:[|<>*-]|\w+: [\[{'\"A-Za-z])")
_WORD = re.compile(r"(?<!\S)[a-z]{2,20}[,.:;)]?(?!\S)")
# A whole report in JSON is a document's.
_DOCUMENT = re.compile(r"\s{0,8}\{\s{0,8}\"version\"\s{0,4}:")
# The log of a test has some thousand lines; in one with more lines than this no table stands.
_LOG = 50_000
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# A command line with many variables is long; a row, or what a person writes, is not.
_LONGEST, _PROSE = 8_192, 1_024


class NcclTestsReader:
    """Reads output of nccl-tests and rccl-tests, and what people write about it."""

    triggers: ClassVar[tuple[bytes, ...]] = (b"Out of bounds values", b"nccl-tests")
    pattern: ClassVar[bytes] = (
        _BINARIES
        + rb"|\bnThread [0-9]+ nGpus |\bRank +[0-9]+ .{0,24}Pid +[0-9]+ on |[Bb]us ?[Bb][Ww]\b|"
        + rb"[Bb]us[ _][Bb]andwidth|"
        + _ROW
        + rb"|"
        + _CONTEXT
    )
    skims: ClassVar[tuple[bytes, ...]] = (b"via NET/",)
    MAX_RUNS = 64

    def __init__(self, context: Context) -> None:
        self.open = self.long = False
        self._catalogue = context.catalogue
        self._runs: list[Run] = []
        self._run: Run | None = None
        # What stands before the first line of a run.
        self._setup = Setup()
        self._dropped = 0
        self._lists = Lists()

    def feed(self, number: int, text: str) -> bool:
        """Take a line of a run, or what is said about it."""
        text = _CONTROL.sub(" ", text[:_LONGEST])
        taken = self._take(number, text)
        self.open = self._lists.open
        return taken

    def skim(self, number: int, block: bytes) -> int:
        """Look for paths between nodes that explain a low figure, in a log as a test prints it."""
        if number < _LOG:
            learn_paths(self._setup, block)
        return 0

    def _take(self, number: int, text: str) -> bool:
        if _DOCUMENT.match(text):
            return False
        if self._row(number, text):
            return True
        if self._lists.feed(number, text):
            return True
        layout = parse_header(text)
        if layout is not None:
            if self._run is not None and self._run.rows:
                self._begin(number)
            self._current(number).layout = layout
            return True
        if self._footer(number, text) or self._own(number, text):
            return True
        announced = self._lists.announce(number, text)
        return self._said(number, text) or announced

    def finish(self) -> Result:
        """Judge every run."""
        self._close()
        findings: list[Finding] = []
        seen: set[str] = set()
        for run in self._runs:
            for finding in findings_of(run, self._catalogue):
                if finding.says not in seen:
                    seen.add(finding.says)
                    findings.append(finding)
        if listed := self._lists.finding(KIND):
            findings.append(listed)
        result = Result(findings=findings)
        if findings:
            result.kinds = [KIND]
        result.causes = list(dict.fromkeys(f.cause for f in _worst_first(findings) if f.cause))
        if self._dropped:
            result.notes.append(
                f"{self._dropped} more runs of nccl-tests were not judged: the first "
                f"{self.MAX_RUNS} were."
            )
        return result

    def _row(self, number: int, text: str) -> bool:
        """Take a row; what somebody wrote behind it is read as well."""
        layout = self._run.layout if self._run else None
        row, remark = parse_row(number, text, layout), ""
        if row is None and ("|" in text or "," in text):
            row = parse_row(number, text.translate(_CELLS), layout)
        if row is None and "[" in text:
            row = parse_row(number, _TAG.sub(" ", text), layout)
        if row is None and " #" in text:
            bare, _, remark = text.partition(" #")
            row = parse_row(number, bare, layout)
        if row is None:
            return False
        self._current(number).add(row)
        if remark:
            learn_prose(self._setup, remark[:_PROSE])
        return True

    def _own(self, number: int, text: str) -> bool:
        run = self._run
        if run is not None and (
            (run.started and starts_run(text)) or (run.footed and lists_device(text))
        ):
            self._begin(number)
        if concludes(text):
            self._close()
            return True
        if not learn_own_line(self._setup, text):
            return False
        self._current(number)
        return True

    def _footer(self, number: int, text: str) -> bool:
        if found := _OUT_OF_BOUNDS.search(text):
            self._current(number).out_of_bounds = int(found[1])
            return True
        average = _AVERAGE.search(text)
        if average is None:
            return False
        run = self._current(number)
        run.average = parse_number(average[1])
        run.average_line = number
        run.failed = "FAILED" in average[2]
        figures = figures_of(average[2], plain=False)
        if figures.peak is not None:
            run.figures = figures
        return True

    def _said(self, number: int, text: str) -> bool:
        """Take a command line, or a sentence."""
        if self.long and _documented(text):
            if number <= _TOP:
                learn_prose(self._setup, text[:_PROSE])
            return False
        found = BINARY.search(text)
        binary = found is not None
        prose = text[:_PROSE]
        if found is not None:
            prose = f"{text[: found.start()][:_PROSE]} {text[found.end() :][:_PROSE]}"
        named = binary or _NAMED.search(text) is not None
        if not named and "nccl-tests" not in text:
            mine = text.lstrip().startswith("#")
            learn_settings(self._setup, text)
            said = "NCCL INFO" not in text and learn_prose(self._setup, prose)
            return said and mine
        if "NCCL INFO" in text:
            learn_settings(self._setup, text)
            return False
        if binary and self._run is not None and self._run.started:
            self._begin(number)
        if binary:
            learn_command(self._setup, text)
        else:
            learn_settings(self._setup, text)
        learn_prose(self._setup, prose)
        figures = figures_of(prose, plain=binary)
        if figures.any or figures.average is not None:
            if self._run is not None and self._run.figures.any and not self._run.rows:
                self._begin(number)
            run = self._current(number)
            run.setup.collective = run.setup.collective or collective_of(prose)
            if not run.figures.any:
                run.figures = figures
        return binary or figures.any or figures.average is not None

    def _current(self, number: int) -> Run:
        if self._run is None:
            self._run = Run(self._setup, number)
        return self._run

    def _begin(self, number: int) -> None:
        """Start another run."""
        self._close()
        self._run = Run(self._setup, number)

    def _close(self) -> None:
        """End a run; what was said of nodes, cards and settings holds for the next, too."""
        run, self._run = self._run, None
        if run is None:
            return
        self._setup = run.setup.next()
        if not run.judged:
            return
        if len(self._runs) < self.MAX_RUNS:
            self._runs.append(run)
        else:
            self._dropped += 1


def _documented(text: str) -> bool:
    if text.lstrip().startswith("#"):
        return False
    return _POINT.match(text) is not None or len(_WORD.findall(text[:_PROSE])) >= _WORDS


def _worst_first(findings: list[Finding]) -> list[Finding]:
    order = ["data_corruption"]
    return sorted(findings, key=lambda f: f.cause not in order)
