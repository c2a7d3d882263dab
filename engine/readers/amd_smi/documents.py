"""JSON of ``amd-smi`` (a list, or ``gpu_data``) and of ``rocm-smi`` (``card0`` …)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.readers.amd_smi.fields import csv_path, flat, put
from engine.readers.amd_smi.judge import judge
from engine.readers.amd_smi.limits import KIND
from engine.readers.amd_smi.rocm import put_key
from engine.readers.amd_smi.state import AmdGpu
from engine.readers.base import Context, Result
from engine.readers.documents import DocumentKind

_CARD: Final = re.compile(r"^card(\d{1,4})$")
_MOST: Final = 4_096
_PAGES: Final = ("retired", "pending", "un_res")
# A key of which one stands in an object of the tool, beside "gpu".
_SECTIONS: Final = frozenset(
    (
        "usage", "power", "clock", "temperature", "pcie", "ecc", "ecc_blocks", "mem_usage",
        "throttle", "asic", "bus", "limit", "driver", "bdf", "retired", "pending", "un_res",
        "power_usage", "gfx", "hotspot_temperature", "memory_temperature", "link_status",
        "link_metrics", "gfx_clk", "gfx_clock",
    )
)  # fmt: skip


def _gpus(value: object) -> list[Mapping[str, Any]]:
    """Return the objects of GPUs of ``amd-smi``."""
    if isinstance(value, Mapping):
        value = value.get("gpu_data", value)
        value = [value] if isinstance(value, Mapping) else value
    if not isinstance(value, list):
        return []
    return [
        one
        for one in value[:_MOST]
        if isinstance(one, Mapping)
        and _index(one.get("gpu")) is not None
        and _SECTIONS & one.keys()
    ]


def _cards(value: object) -> dict[int, Mapping[str, Any]]:
    """Return the objects of GPUs of ``rocm-smi``; the key of one must be known."""
    if not isinstance(value, Mapping):
        return {}
    found: dict[int, Mapping[str, Any]] = {}
    for name, one in list(value.items())[:_MOST]:
        card = _CARD.match(str(name)[:16])
        if card is not None and isinstance(one, Mapping):
            probe = AmdGpu(0)
            if any(put_key(probe, str(key)[:96], "1") for key in list(one)[:256]):
                found[int(card[1])] = one
    return found


def _detect(value: object) -> bool:
    return bool(_gpus(value) or _cards(value))


def _read(value: Any, context: Context, line: int) -> Result:
    records = [*_of_amd(_gpus(value), line), *_of_rocm(_cards(value), line)]
    return judge(records, context)


AMD_SMI_JSON: Final = DocumentKind(KIND, _detect, _read)


def _of_amd(objects: list[Mapping[str, Any]], line: int) -> Iterator[AmdGpu]:
    for one in objects:
        gpu = AmdGpu(line, _index(one.get("gpu")))
        for path, raw in flat(one).items():
            if path == "gpu" or path.startswith(_PAGES):
                continue
            if not put(gpu, path, raw) and "." not in path and (known := csv_path(path)):
                put(gpu, known, raw)  # `amd-smi monitor --json` is flat, as its CSV
        for kind in _PAGES:
            _pages(gpu, kind, one.get(kind))
        status = one.get("link_status")
        if isinstance(status, list):
            letters = [str(letter).strip().upper()[:1] for letter in status[:64]]
            gpu.links_down = [i for i, letter in enumerate(letters) if letter == "D"]
            gpu.numbers["xgmi_links_up"] = float(letters.count("U"))
        yield gpu


def _pages(gpu: AmdGpu, kind: str, raw: object) -> None:
    if isinstance(raw, Mapping):
        raw = [raw]
    if isinstance(raw, list):
        gpu.pages[kind] = sum(1 for page in raw if isinstance(page, Mapping))
    elif isinstance(raw, str):
        put(gpu, kind, raw)


def _of_rocm(cards: dict[int, Mapping[str, Any]], line: int) -> Iterator[AmdGpu]:
    for index, one in cards.items():
        gpu = AmdGpu(line, index)
        for key, raw in list(one.items())[:512]:
            put_key(gpu, str(key)[:96], raw)
        yield gpu


def _index(raw: object) -> int | None:
    if isinstance(raw, bool) or not isinstance(raw, int):
        return None
    return raw if 0 <= raw < 1_024 else None
