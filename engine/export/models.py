"""Facts about GPU models as recorded series: each GPU gets the number of its model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

from engine.catalogue.types import Catalogue
from engine.condition.selectors import constant, selector
from engine.export.names import GPU_INFO
from engine.samples import Matcher

_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$]")


def attribute_expr(catalogue: Catalogue, name: str) -> str:
    """Return one fact (such as ``tdp_w``) of every GPU whose model is known to have it.

    Exact model names go before patterns, and patterns in the order of the models, as
    `Catalogue.model_for` does.
    """
    parts = []
    for rows in (_exact(catalogue, name), _patterns(catalogue, name)):
        for value, group in groupby(rows, key=lambda row: row[0]):
            regex = "|".join(found for _, found in group)
            gpus = selector(GPU_INFO, [Matcher("modelName", "=~", regex)])
            parts.append(f"{gpus} * {constant(value)}")
    return " or on (UUID) ".join(parts)


def _patterns(catalogue: Catalogue, name: str) -> Iterator[tuple[float, str]]:
    for model in catalogue.models:
        if name in model.attrs and model.pattern:
            yield model.attrs[name], model.pattern


def _exact(catalogue: Catalogue, name: str) -> Iterator[tuple[float, str]]:
    """Yield the exact model names to which the patterns alone would give another value."""
    for model in catalogue.models:
        for exact in model.match:
            first = next((m for m in catalogue.models if m.regex.fullmatch(exact)), None)
            value = model.attrs.get(name)
            if value is not None and (first is None or first.attrs.get(name) != value):
                yield value, _SPECIAL.sub(r"\\\g<0>", exact)
