"""Which metric names of LLM servers carry which quantity (``knowledge/serving``).

Relabelled prefixes (``vllm_`` for ``vllm:``, Ray's ``ray_vllm_``) and counters that lost their
``_total`` are found under their real names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from engine.catalogue.types import Catalogue

SERVERS: Mapping[str, str] = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    "trtllm": "TensorRT-LLM",
    "triton": "Triton",
    "tgi": "TGI",
    "dynamo": "Dynamo",
}
_PREFIX = re.compile(r"(?:ray_)?(vllm|sglang)[:_](?=[a-z])")
_CONDITION = re.compile(r'([^{]+)\{([a-z_]+)="([^"]*)"\}')
_PARTS = ("_bucket", "_sum", "_count")


@dataclass(frozen=True, slots=True)
class Name:
    """What a metric name means.

    Attributes:
        quantity: id of the entry of ``service_readings``.
        server: id of the server (`SERVERS`).
        base: the name as the server writes it, without a histogram's suffix.
        rank: place among the names of this quantity: the lowest with readings counts.
        part: ``_bucket``, ``_sum`` or ``_count`` of a histogram, else empty.
        match: label and value that a series must have, if any.
        scale: factor to the unit of the quantity.
    """

    quantity: str
    server: str
    base: str
    rank: int
    part: str = ""
    match: tuple[str, str] | None = None
    scale: float = 1.0


class Quantities:
    """The names of all quantities, looked up as text holds them."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.entries = catalogue.entries.get("service_readings", {})
        self._names: dict[str, list[Name]] = {}
        for quantity, entry in self.entries.items():
            for server, names in entry["names"].items():
                self._add(str(quantity), server, names, entry)

    def of(self, name: str) -> list[Name]:
        """Return what a metric name may mean; the match of labels is up to the caller."""
        return self._names.get(canonical(name), [])

    def counter(self, name: str) -> bool:
        """Return whether a name is that of a counter here, with its ``_total`` or without."""
        return any(self.entries[n.quantity]["kind"] == "counter" for n in self.of(name))

    def _add(
        self, quantity: str, server: str, names: list[str], entry: Mapping[str, object]
    ) -> None:
        bases: list[str] = []
        scales = entry.get("scale") or {}
        assert isinstance(scales, Mapping)
        for written in names:
            found = _CONDITION.fullmatch(written)
            base = found[1] if found else written
            if base not in bases:
                bases.append(base)
            name = Name(
                quantity,
                server,
                base,
                0 if entry.get("add") else bases.index(base),
                match=(found[2], found[3]) if found else None,
                scale=float(scales.get(base, 1.0)),
            )
            if entry["kind"] == "histogram":
                for part in _PARTS:
                    self._names.setdefault(base + part, []).append(replace(name, part=part))
                continue
            self._names.setdefault(base, []).append(name)
            if entry["kind"] == "counter" and base.endswith("_total"):
                self._names.setdefault(base.removesuffix("_total"), []).append(name)


def canonical(name: str) -> str:
    """Return a metric name with the server's own prefix: ``ray_vllm_x`` is ``vllm:x``."""
    found = _PREFIX.match(name)
    return f"{found[1]}:{name[found.end() :]}" if found else name


def server_of(name: str) -> str | None:
    """Return the id of the server that writes a metric name, None if it is no server's."""
    name = canonical(name)
    for start, server in (
        ("vllm:", "vllm"),
        ("sglang:", "sglang"),
        ("trtllm_", "trtllm"),
        ("nv_inference_", "triton"),
        ("nv_trt_llm_", "triton"),
        ("tgi_", "tgi"),
        ("dynamo_", "dynamo"),
    ):
        if name.startswith(start):
            return server
    return None
