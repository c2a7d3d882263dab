"""Series and families, and their two text forms: Prometheus exposition and OpenMetrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from engine.simulate.fields import Form
from engine.simulate.noise import Flags, Floats

# DCGM's blanks (dcgm_structs.h): what leaks out of exporters that do not filter them.
INT64_BLANK, INT64_NOT_SUPPORTED = "9223372036854775792", "9223372036854775794"
FP64_BLANK, FP64_NOT_SUPPORTED = "140737488355328.000000", "140737488355330.000000"


@dataclass(slots=True)
class Series:
    """Samples of one label set.

    Attributes:
        labels: without ``__name__``.
        values: float64[n], at the times the whole answer shares.
        ok: bool[n], False where there is no sample.
        form: how values are printed.
        blank: text printed instead of a value that is NaN; None leaves such samples out.
    """

    labels: Mapping[str, str]
    values: Floats
    ok: Flags
    form: Form = Form.INT64
    blank: str | None = None

    def texts(self) -> list[str]:
        """Return every value as the exporter prints it."""
        values = self.values
        if self.form is Form.INT64:
            whole = np.where(np.isnan(values), 0.0, values).astype(np.int64).tolist()
            texts = [str(v) for v in whole]
        else:
            texts = [f"{v:.6f}" for v in values.tolist()]
        if self.blank is not None:
            for i in np.flatnonzero(np.isnan(values)):
                texts[i] = self.blank
        return texts

    def present(self) -> Flags:
        """Return which samples are there, bool[n]."""
        return self.ok if self.blank is not None else self.ok & ~np.isnan(self.values)


@dataclass(slots=True)
class Family:
    """All series of one metric name. ``kind``: gauge or counter, as the exporter says."""

    name: str
    kind: str
    help: str
    series: list[Series] = field(default_factory=list)


def render_labels(labels: Mapping[str, str]) -> str:
    """Return labels in braces, values escaped as the text format asks; empty if there are none."""
    if not labels:
        return ""
    parts = []
    for name, value in labels.items():
        safe = value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        parts.append(f'{name}="{safe}"')
    return "{" + ",".join(parts) + "}"


def exposition_lines(families: Iterable[Family], stamps: Sequence[int | None]) -> Iterator[str]:
    """Yield the lines of one scrape.

    Args:
        families: families in order; a name may come twice and its series are then put together.
        stamps: timestamp (ms) of each sample column, None for none: the scraper's own clock.
    """
    merged: dict[str, tuple[Family, list[str]]] = {}
    for family in families:
        _, lines = merged.setdefault(family.name, (family, []))
        for series in family.series:
            prefix = f"{family.name}{render_labels(series.labels)}"
            texts = series.texts()
            for i in np.flatnonzero(series.present()).tolist():
                stamp = stamps[i]
                lines.append(f"{prefix} {texts[i]}" + ("" if stamp is None else f" {stamp}"))
    for name, (family, lines) in merged.items():
        if lines:
            yield f"# HELP {name} {family.help}"
            yield f"# TYPE {name} {family.kind}"
            yield from lines


def openmetrics_header(family: Family) -> str:
    """Return HELP and TYPE lines in OpenMetrics.

    There a counter's name ends in ``_total``. DCGM's counters do not, so they are ``unknown``.
    """
    name, kind = family.name, family.kind
    if kind == "counter":
        name, kind = (
            (name.removesuffix("_total"), kind) if name.endswith("_total") else (name, "unknown")
        )
    return f"# HELP {name} {family.help}\n# TYPE {name} {kind}\n"


def openmetrics_samples(name: str, series: Series, stamps: Sequence[str]) -> str:
    """Return all samples of a series, one line each with its timestamp (s)."""
    prefix = f"{name}{render_labels(series.labels)} "
    texts, present = series.texts(), series.present()
    if present.all():
        return "".join([f"{prefix}{v} {t}\n" for v, t in zip(texts, stamps, strict=True)])
    keep = np.flatnonzero(present).tolist()
    return "".join([f"{prefix}{texts[i]} {stamps[i]}\n" for i in keep])
