"""Two or three samples (tests/data/read) in one paste: each is found as if it stood alone.

A reader must neither take the lines of another tool nor stay open after its own have ended.
"""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest

from engine.model import Finding, Read, Severity
from engine.readers import read
from tests.support import packaged

SAMPLES = sorted((Path(__file__).parents[2] / "data" / "read").iterdir())
SEPARATORS = (b"", b"\n", b"$ next\n")
PASTES = 120
# GPUs and ports in one paste are put together: a list of them is told with what others say.
JOINED = frozenset({"nvidia_smi_l", "amd_smi", "rdma_link"})
Told = tuple[str, str, str | None, str]


def _pastes() -> list[tuple[bytes, tuple[Path, ...]]]:
    chance = random.Random(2026)
    sizes = (2, 2, 3)
    return [
        (chance.choice(SEPARATORS), tuple(chance.sample(SAMPLES, chance.choice(sizes))))
        for _ in range(PASTES)
    ]


@cache
def _bytes(path: Path) -> bytes:
    raw = path.read_bytes()
    return raw if raw.endswith(b"\n") else raw + b"\n"


@cache
def _alone(path: Path) -> Read:
    return read(_bytes(path), packaged.knowledge())


def _counts(finding: Finding) -> bool:
    """Whether a finding must be told of each: sums and lists are told once, over all."""
    return finding.severity is not Severity.INFO and finding.kind not in JOINED


def _told(finding: Finding) -> Told:
    return finding.kind, finding.id, finding.cause, finding.severity.name


@pytest.mark.parametrize(
    ("separator", "paths"),
    _pastes(),
    ids=lambda value: "+".join(p.name for p in value) if isinstance(value, tuple) else "",
)
def test_each_sample_is_found_in_a_mixed_paste(separator: bytes, paths: tuple[Path, ...]) -> None:
    answer = read(separator.join(map(_bytes, paths)), packaged.knowledge())
    told = {_told(finding) for finding in answer.findings}
    for path in paths:
        alone = _alone(path)
        missing = {_told(f) for f in alone.findings if _counts(f)} - told
        assert not missing, path.name
        assert set(alone.kinds) - set(answer.kinds) <= JOINED, path.name
    alone_unread = sum(_alone(path).unread_lines for path in paths)
    assert answer.unread_lines <= alone_unread + len(paths)


def test_text_below_a_trace_is_read() -> None:
    trace = next(path for path in SAMPLES if path.name == "kineto-trace.json")
    xid = b"[ 12.3] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
    answer = read(_bytes(trace) + xid, packaged.knowledge())
    assert {"kineto", "xid"} <= set(answer.kinds)


def test_a_bracket_in_a_log_does_not_swallow_it() -> None:
    xid = b"NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n"
    log = b"config: {\n{\n  timeout 3\n" + xid
    answer = read(log, packaged.knowledge())
    assert answer.causes == ("gpu_off_bus",)


def test_lines_in_a_document_of_no_known_kind_are_read() -> None:
    xid = b'  "message": "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."\n'
    for end in (b"}\n", b""):
        answer = read(b"first line\n{\n" + xid + end, packaged.knowledge())
        assert answer.causes == ("gpu_off_bus",)
