"""How much faster a metrics file is read than by prometheus_client's parsers, in one run.

    python benchmarks/bench_exposition.py [MEGABYTES]

The file looks like a dump of a metrics server: many samples of one series after another.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from engine.samples import Matcher, Selection
from engine.sources import FileSource

SAMPLES = 61  # 15 minutes, one sample every 15 s
T0 = 1_764_432_000
ROUNDS = 3


def dump(megabytes: float, *, milliseconds: bool) -> str:
    """Return exposition text of about this size: 40 metrics of as many GPUs as it takes."""
    names = [f"DCGM_FI_DEV_METRIC_{k}" for k in range(40)]
    gpus = max(1, round(megabytes * 1e6 / (len(names) * SAMPLES * 233)))
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
                stamp = T0 + 15 * k
                text = f"{stamp}000" if milliseconds else str(stamp)
                lines.append(f"{head} {1000 + k * 0.37:.3f} {text}\n")
    lines.append("# EOF\n")
    return "".join(lines)


async def count_samples(path: Path, wave: list[Selection]) -> int:
    """Read a file and return how many samples came.

    A batch must not be what `asyncio.run` returns: on leaving, it takes the repr of the result.
    """
    batch = await FileSource([path]).select(wave, at=None)
    return sum(len(s.ts) for s in batch.series)


def best(run: Callable[[], int], rounds: int) -> tuple[float, int]:
    """Return the best time (s) of some rounds, and what the last one counted."""
    times = []
    count = 0
    for _ in range(rounds):
        gc.collect()
        began = time.perf_counter()
        count = run()
        times.append(time.perf_counter() - began)
    return min(times), count


def main() -> None:
    """Print one line a format and question."""
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 16.0
    everything = [Selection((), (), 1e9)]
    one_gpu = [Selection((), (Matcher("Hostname", "=", "node-0"), Matcher("gpu", "=", "5")), 1e9)]
    print(
        f"{'format':<12} {'MB':>5} {'asked for':<10} "
        f"{'samples':>8} {'ours s':>8} {'theirs s':>9} ratio"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "metrics.txt"
        for title, theirs in (
            ("OpenMetrics", openmetrics.text_string_to_metric_families),
            ("text", text_string_to_metric_families),
        ):
            text = dump(megabytes, milliseconds=title == "text")
            path.write_text(text)

            def read_theirs(text: str = text, theirs: Callable[..., object] = theirs) -> int:
                return sum(len(family.samples) for family in theirs(text))  # type: ignore[attr-defined]

            slow, expected = best(read_theirs, 1)
            for asked, wave in (("all", everything), ("one GPU", one_gpu)):

                def read_ours(wave: list[Selection] = wave) -> int:
                    return asyncio.run(count_samples(path, wave))

                fast, count = best(read_ours, ROUNDS)
                assert asked != "all" or count == expected
                print(
                    f"{title:<12} {len(text) / 1e6:5.1f} {asked:<10} {count:8} "
                    f"{fast:8.3f} {slow:9.3f} {slow / fast:4.0f}x"
                )


if __name__ == "__main__":
    main()
