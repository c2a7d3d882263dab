"""The JSON that nccl-tests writes with ``-J FILE`` (NVIDIA/nccl-tests 2.19.6 src/util.cu)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from engine.nccl.records import printable
from engine.readers.base import Context, Result
from engine.readers.documents import DocumentKind
from engine.readers.nccl_tests.findings import KIND, findings_of
from engine.readers.nccl_tests.learn import BINARY
from engine.readers.nccl_tests.rows import Placement, Row
from engine.readers.nccl_tests.run import MAX_ROWS, Run
from engine.readers.nccl_tests.setup import Setup

_PLACEMENTS = ("out_of_place", "in_place")
_SETTINGS = 64


def _detect(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    results = value.get("results")
    if not isinstance(results, list) or "average_bus_bandwidth" not in value:
        return isinstance(results, list) and "nccl_version" in value and "config" in value
    return True


def _read(value: Any, context: Context, line: int) -> Result:
    run = Run(_setup(value), line)
    for entry in value["results"]:
        row = _row(entry, line)
        if row is not None and len(run.rows) < MAX_ROWS:
            run.add(row)
    bounds, average = value.get("out_of_bounds"), value.get("average_bus_bandwidth")
    if isinstance(bounds, Mapping):
        run.out_of_bounds = _whole(bounds.get("count"))
    if isinstance(average, Mapping):
        run.average = _real(average.get("bandwidth"))
        run.failed = average.get("okay") in ("false", False)
    result = Result(kinds=[KIND])
    if run.judged:
        result.findings = list(findings_of(run, context.catalogue))
        result.causes = [f.cause for f in result.findings if f.cause]
    return result


NCCL_TESTS_JSON = DocumentKind(KIND, _detect, _read)
"""The document of one run."""


def _setup(value: Mapping[str, Any]) -> Setup:
    setup = Setup()
    arguments = value.get("args")
    first = arguments[0] if isinstance(arguments, list) and arguments else ""
    named = BINARY.search(first) if isinstance(first, str) else None
    setup.collective = named[1] if named else None
    config = value.get("config")
    if isinstance(config, Mapping):
        threads, gpus = _whole(config.get("nthreads")), _whole(config.get("ngpus"))
        setup.per_process = threads * gpus if threads and gpus else None
        setup.min_bytes = _whole(config.get("minimum_bytes"))
        setup.max_bytes = _whole(config.get("maximum_bytes"))
    # Some releases, and tools that keep a part of the document, list the devices beside it.
    for holder in (config, value):
        if isinstance(holder, Mapping):
            _devices(setup, holder.get("devices"))
    environment = value.get("env")
    for entry in environment if isinstance(environment, list) else ():
        if isinstance(entry, str) and entry.startswith("NCCL_") and len(setup.settings) < _SETTINGS:
            name, _, said = entry.partition("=")
            setup.settings[printable(name, 64)] = printable(said, 200)
    return setup


def _devices(setup: Setup, devices: object) -> None:
    """Take the devices; a process with several GPUs lists only its first."""
    listed = [d for d in devices if isinstance(d, Mapping)] if isinstance(devices, list) else []
    own = setup.per_process or 1
    several = own > 1 and all((_whole(d.get("rank")) or 0) % own == 0 for d in listed)
    for device in listed:
        rank = _whole(device.get("rank"))
        host, model = device.get("hostname"), device.get("device_info")
        if rank is None:
            continue
        last = rank + own - 1 if several else rank
        where = printable(host, 255) if isinstance(host, str) else ""
        name = printable(model.strip(), 120) if isinstance(model, str) else ""
        for one in (rank, *([last] if last != rank else ())):
            setup.list_device(one, str(device.get("pid", ""))[:16], where, name)


def _row(entry: object, line: int) -> Row | None:
    if not isinstance(entry, Mapping):
        return None
    size, count = _whole(entry.get("size")), _whole(entry.get("count"))
    placements = tuple(p for key in _PLACEMENTS if (p := _placement(entry, key)) is not None)
    if size is None or count is None or not placements:
        return None
    redop, kind, root = (
        printable(str(entry.get(key, "")), 16).strip() for key in ("redop", "type", "root")
    )
    rooted = int(root) if re.fullmatch(r"-?[0-9]{1,9}", root) else None
    return Row(line, size, count, kind, redop, rooted, placements)


def _placement(entry: Mapping[str, Any], key: str) -> Placement | None:
    block = entry.get(key)
    if not isinstance(block, Mapping):
        return None
    time = _real(block.get("time", block.get("cpu_time")))
    algbw, busbw = _real(block.get("alg_bw")), _real(block.get("bus_bw"))
    if time is None or algbw is None or busbw is None:
        return None
    iterations = entry.get(f"{key}_per_iter")
    slowest = cv = None
    if isinstance(iterations, Mapping):
        slowest, cv = _real(iterations.get("max_us")), _real(iterations.get("cv_pct"))
    wrong = _real(block.get("nwrong"))
    return Placement(
        time, algbw, busbw, None if wrong is None else int(wrong), slowest_us=slowest, cv_percent=cv
    )


def _real(value: object) -> float | None:
    """Return a number that is finite and not negative; nccl-tests writes NaN as a string."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < 1e18 else None


def _whole(value: object) -> int | None:
    found = _real(value)
    return None if found is None else int(found)
