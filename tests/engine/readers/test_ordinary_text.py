"""Ordinary texts (tests/data/ordinary): nothing is wrong with a GPU in any of them.

Logs of other programs, tables, source code, configuration, and texts that talk about faults of GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import pytest

from engine.catalogue import Catalogue
from engine.model import Read, Severity
from engine.readers import read
from tests.engine.readers.conftest import ReadText
from tests.support.readings import judge

TEXTS = sorted((Path(__file__).parents[2] / "data" / "ordinary").iterdir())
# A reader that is slow on a text of another kind takes far more.
SLOWEST_S = 2.0
DULL = "Compare the node with one that is known to be good, and keep the log.\n" * 50


def claims(answer: Read) -> Iterator[str]:
    """Yield what an answer says that is wrong with something."""
    for finding in answer.findings:
        if finding.severity is not Severity.INFO or finding.cause not in (None, "healthy", "idle"):
            yield f"line {finding.line}: {finding.says}"
    yield from (f"{d.severity}: {d.cause}" for d in answer.diagnoses)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_nothing_is_claimed_of_an_ordinary_text(path: Path, catalogue: Catalogue) -> None:
    raw = path.read_bytes()
    begin = perf_counter()
    answer = read(raw, catalogue, judge)
    assert list(claims(answer)) == []
    assert perf_counter() - begin < SLOWEST_S


def test_there_are_many_of_them() -> None:
    assert len(TEXTS) >= 60


@pytest.mark.parametrize(
    "line",
    [
        "## CUDA out of memory",
        "- The call returns `ncclInvalidUsage` when two ranks use one GPU.",
        '"GPU is lost" means that the driver cannot reach the board any more.',
        "| ncclSystemError | 2 | a call of the system failed |",
        "**See:** [PyTorch 'Heartbeat monitor timed out'](messages.md#heartbeat)",
        '      - "CUDA out of memory on rank 3"',
        "With 2 nodes you should see about 350 GB/s busbw in such a table.",
        "Mind a server with KV cache 98 percent, 40 running, 212 waiting.",
    ],
)
def test_documentation_only_mentions(line: str, read_text: ReadText) -> None:
    assert list(claims(read_text(f"{DULL}{line}\n{DULL}"))) == []


@pytest.mark.parametrize(
    "line",
    [
        "    return ncclSystemError;",
        "  if (err == cudaErrorIllegalAddress) {",
        '  fprintf(stderr, "CUDA error: an illegal memory access was encountered\\n");',
        "// fails with CUDA_ERROR_ILLEGAL_ADDRESS in the second iteration",
        "  ncclInternalError = 3,",
        'OOM = "CUDA out of memory"',
        'slog.Error("Failed to connect to remote hostengine")',
        "| `CUDA out of memory` | the GPU is full |",
    ],
)
def test_code_only_mentions_in_a_short_text_too(line: str, read_text: ReadText) -> None:
    assert list(claims(read_text(line))) == []


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("RuntimeError: CUDA error: an illegal memory access was encountered", "app_fault_xid"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", None),
        ("[ 12.3] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.", "gpu_off_bus"),
        (
            "the log has `NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.`",
            "gpu_off_bus",
        ),
        ('level=error msg="CUDA error: an illegal memory access was encountered"', "app_fault_xid"),
    ],
)
def test_a_message_counts_in_a_long_text(line: str, cause: str | None, read_text: ReadText) -> None:
    answer = read_text(f"{DULL}{line}\n{DULL}")
    assert (cause or "gpu_memory_full") in answer.causes


def test_what_a_short_question_quotes_counts(read_text: ReadText) -> None:
    answer = read_text("My job ends with `CUDA error: an illegal memory access was encountered`.")
    assert answer.causes == ("app_fault_xid",)


def test_figures_in_a_short_question_count(read_text: ReadText) -> None:
    answer = read_text(
        "all_reduce_perf on 2x8 H100 with 8x 400G gives 40 GB/s busbw, is that fine?"
    )
    assert [f.kind for f in answer.findings] == ["nccl_tests"]


def test_a_cut_topology_blames_no_gpu(catalogue: Catalogue) -> None:
    sample = Path(__file__).parents[2] / "data" / "read" / "nccl-topology-healthy.xml"
    lines = sample.read_bytes().splitlines(keepends=True)
    for end in range(4, len(lines), 3):
        assert list(claims(read(b"".join(lines[:end]), catalogue))) == []
