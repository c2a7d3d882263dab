"""All scenarios: whatever the modules of this package list under ``SCENARIOS``."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from engine.simulate.scenarios.base import Scenario


def collect() -> dict[str, Scenario]:
    """Return every scenario by id, sorted.

    Raises:
        ValueError: two scenarios have the same id.
    """
    found: dict[str, Scenario] = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module.name == "registry":
            continue
        name = f"engine.simulate.scenarios.{module.name}"
        for scenario in getattr(importlib.import_module(name), "SCENARIOS", ()):
            if scenario.id in found:
                raise ValueError(f"two scenarios are called {scenario.id}")
            found[scenario.id] = scenario
    return dict(sorted(found.items()))


SCENARIOS = collect()
