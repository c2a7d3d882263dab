"""``dcgmi diag -j``: the JSON of DCGM 2 and 3 ("DCGM GPU Diagnostic") and 4 ("DCGM Diagnostic").

Iterated runs stand in a list "iterations". Sources: NVIDIA/DCGM dcgmi/Diag.cpp and
nvvs/include/NvvsJsonStrings.h 2.1 to 4.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.readers.base import Context, Result
from engine.readers.dcgmi.diag_result import (
    KIND as KIND_NAME,
)
from engine.readers.dcgmi.diag_result import (
    MAX_MESSAGES,
    MAX_TESTS,
    STATUSES,
    Message,
    Run,
    Test,
    gpus_in,
    report,
)
from engine.readers.documents import DocumentKind

_ROOTS: Final = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
_MOST: Final = 1_024


def _bodies(value: object) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield (outer object, diagnostic) of each run."""
    if not isinstance(value, Mapping):
        return
    iterations = value.get("iterations")
    if isinstance(iterations, list):
        for one in iterations[:256]:
            yield from _bodies(one)
        return
    for root in _ROOTS:
        body = value.get(root)
        if isinstance(body, Mapping):
            yield value, body
            return
    if isinstance(value.get("test_categories"), list):
        yield value, value


def _detect(value: object) -> bool:
    return next(_bodies(value), None) is not None


def _read(value: Any, context: Context, line: int) -> Result:
    runs = []
    for outer, body in _bodies(value):
        run = Run(line, error=_text(body.get("runtime_error")))
        meta = outer.get("metadata")
        meta = meta if isinstance(meta, Mapping) else {}
        run.dcgm = _text(body.get("version") or meta.get("version"))
        run.driver = _text(
            body.get("Driver Version Detected") or meta.get("Driver Version Detected")
        )
        for category in _list(body.get("test_categories")):
            for test in _list(category.get("tests")):
                if len(run.tests) < MAX_TESTS:
                    run.tests.append(_test(test, _text(category.get("category")), line))
        runs.append(run)
    return report(runs, context)


KIND: Final = DocumentKind(KIND_NAME, _detect, _read)


def _test(raw: Mapping[str, Any], category: str | None, line: int) -> Test:
    test = Test(_text(raw.get("name")) or "a test", line, category=category)
    for result in _list(raw.get("results")):
        status = STATUSES.get((_text(result.get("status")) or "").lower())
        gpus = _gpus(result)
        if status is not None:
            for gpu in gpus:
                test.of_gpu(gpu, status)
            if not gpus:
                test.status = status
        if status in ("fail", "warn"):
            for message in _messages(result, gpus, line):
                if len(test.messages) < MAX_MESSAGES:
                    test.messages.append(message)
    summary = raw.get("test_summary")
    if isinstance(summary, Mapping):
        status = STATUSES.get((_text(summary.get("status")) or "").lower())
        test.status = test.status or status
        if status in ("fail", "warn") and not test.messages:
            test.messages += list(_messages(summary, [], line))[:MAX_MESSAGES]
    return test


def _gpus(result: Mapping[str, Any]) -> list[int]:
    if "entity_id" in result:
        group = result.get("entity_group")
        number = _integer(result["entity_id"])
        is_gpu = group in (None, "GPU") and result.get("entity_group_id") in (None, 1)
        return [number] if number is not None and is_gpu else []
    said = result.get("gpu_id", result.get("gpu_ids"))
    if isinstance(said, str):
        parts = said.split(",")[:_MOST]
        return [n for n in map(_integer, parts) if n is not None]
    number = _integer(said)
    return [number] if number is not None else []


def _messages(result: Mapping[str, Any], gpus: list[int], line: int) -> Iterator[Message]:
    gpu = gpus[0] if len(gpus) == 1 else None
    found = result.get("warnings", result.get("warning"))
    for one in found[:_MOST] if isinstance(found, list) else [found]:
        if isinstance(one, Mapping):
            text = _text(one.get("warning") or one.get("error") or one.get("message"))
            code = _integer(one.get("error_id", one.get("error_code")))
        else:
            text, code = _text(one), None
        if text is None and code is None:
            continue
        named = next(iter(gpus_in(text or "")), None)
        yield Message(text or "", line, named if gpu is None else gpu, code)


def _list(value: object) -> list[Mapping[str, Any]]:
    if not isinstance(value, list):
        return []
    return [one for one in value[:_MOST] if isinstance(one, Mapping)]


def _text(value: object) -> str | None:
    return value.strip()[:1_024] or None if isinstance(value, str) else None


def _integer(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if 0 <= value < 100_000 else None
    if isinstance(value, str) and value.strip().isascii() and value.strip().isdecimal():
        return int(value.strip()[:6])
    return None
