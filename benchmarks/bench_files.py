"""How much faster a metrics file is read than by prometheus_client's parsers, in one run.

The file looks like a dump of a metrics server: many samples of one series after another.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as exposition

from benchmarks.cold import measure
from benchmarks.harness import Row, medians
from engine.samples import Matcher, Selection
from engine.sources import FileSource

MEGABYTES, SAMPLES, STEP_S = 16.0, 61, 15
ROUNDS, TARGET_RATIO = 3, 15.0
_T0 = 1_764_432_000
_METRICS = 40
_LINE_BYTES = 233

ALL = Selection((), (), 1e9)
ONE_GPU = Selection((), (Matcher("Hostname", "=", "node-0"), Matcher("gpu", "=", "5")), 1e9)
# Run by an interpreter of its own, so that its peak memory is that of reading the file.
_READ = "from benchmarks.bench_files import {0}, count_samples as c; c({1!r}, {0})"


def dump(megabytes: float, *, milliseconds: bool) -> str:
    """Return exposition text of about this size: 40 metrics of as many GPUs as it takes."""
    names = [f"DCGM_FI_DEV_METRIC_{k}" for k in range(_METRICS)]
    gpus = max(1, round(megabytes * 1e6 / (len(names) * SAMPLES * _LINE_BYTES)))
    lines = []
    for name in names:
        lines.append(f"# TYPE {name} gauge\n")
        for g in range(gpus):
            head = (
                f'{name}{{gpu="{g % 8}",UUID="GPU-{g:08}-aaaa-bbbb-cccc-0123456789ab",'
                f'pci_bus_id="00000000:{g % 8:02}:00.0",device="nvidia{g % 8}",'
                f'modelName="NVIDIA H100 80GB HBM3",Hostname="node-{g // 8}",'
                f'DCGM_FI_DRIVER_VERSION="535.129.03"}}'
            )
            for k in range(SAMPLES):
                stamp = _T0 + STEP_S * k
                text = f"{stamp}000" if milliseconds else str(stamp)
                lines.append(f"{head} {1000 + k * 0.37:.3f} {text}\n")
    lines.append("# EOF\n")
    return "".join(lines)


def count_samples(path: str, selection: Selection) -> int:
    """Read a file and return how many samples came."""

    async def read() -> int:
        batch = await FileSource([Path(path)]).select([selection], at=None)
        return sum(len(series.ts) for series in batch.series)

    return asyncio.run(read())


def rows() -> list[Row]:
    """Read both formats, everything and one GPU, and the same text by prometheus_client."""
    out: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "metrics.txt")
        for title, parser in (("OpenMetrics", openmetrics), ("text", exposition)):
            text = dump(MEGABYTES, milliseconds=title == "text")
            Path(path).write_text(text, encoding="utf-8")
            out += _compare(title, text, path, parser)
        out += _memory(path, len(text) / 1e6)
    return out


def _compare(
    title: str, text: str, path: str, parser: Callable[[str], Iterable[Metric]]
) -> list[Row]:
    counted: list[int] = []

    def theirs() -> None:
        counted.append(sum(len(family.samples) for family in parser(text)))

    (slow,) = medians(1, theirs)
    whole, one = medians(
        ROUNDS, lambda: count_samples(path, ALL), lambda: count_samples(path, ONE_GPU)
    )
    if count_samples(path, ALL) != counted[0]:
        message = f"{title}: prometheus_client finds {counted[0]} samples, another number than ours"
        raise RuntimeError(message)
    size = len(text) / 1e6
    return [
        Row(
            f"{what} file, {size:.0f} MB, {asked}",
            f"{took:.2f} s, {size / took:.0f} MB/s",
            f"{slow:.2f} s (prometheus_client)",
            f"{slow / took:.0f}x",
            f">= {TARGET_RATIO:.0f}x",
            slow / took >= TARGET_RATIO,
        )
        for what, asked, took in ((title, "all series", whole), (title, "one GPU", one))
    ]


def _memory(path: str, size: float) -> list[Row]:
    """Return the peak memory of reading, above that of the imports alone."""
    commands = [
        [sys.executable, "-c", "import benchmarks.bench_files"],
        *([sys.executable, "-c", _READ.format(name, path)] for name in ("ALL", "ONE_GPU")),
    ]
    bare, *costs = measure(1, *commands)
    return [
        Row(
            f"  peak memory, {size:.0f} MB file, {asked}",
            f"{cost.memory / 1e6:.0f} MB",
            f"{bare.memory / 1e6:.0f} MB (imports)",
            f"+{(cost.memory - bare.memory) / 1e6:.0f} MB",
        )
        for asked, cost in zip(("all series", "one GPU"), costs, strict=True)
    ]
