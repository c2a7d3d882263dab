"""All that is looked for in the series of exporter text, besides what the rules judge."""

from __future__ import annotations

from collections.abc import Iterator

from engine.catalogue.types import Catalogue
from engine.model import Finding
from engine.readers.amd_series import amd_series
from engine.readers.gpu_summary import gpu_summary
from engine.readers.health_series import health_checks
from engine.readers.label_oddities import label_oddities
from engine.readers.node_series import node_series
from engine.readers.profiling_oddities import profiling_oddities
from engine.readers.series import Collected
from engine.readers.slowed_time import slowed_time
from engine.readers.value_oddities import value_oddities


def series_oddities(collected: Collected, catalogue: Catalogue) -> Iterator[Finding]:
    """Yield a finding for each oddity, from the several modules that know one kind each."""
    yield from value_oddities(collected, catalogue)
    yield from label_oddities(collected, catalogue)
    yield from profiling_oddities(collected, catalogue)
    yield from amd_series(collected)
    yield from node_series(collected)
    yield from slowed_time(collected, catalogue)
    yield from health_checks(collected, catalogue)
    yield from gpu_summary(collected)
