"""The catalogue: everything the product knows and every rule, loaded from YAML and checked.

Public: `load_catalogue` and the shapes it returns. `engine.catalogue.lint` judges the quality of
what loads. Importing this package costs the standard library only; PyYAML and pydantic come in
when there is no compiled index.
"""

from __future__ import annotations

from engine.catalogue.loader import load_catalogue, write_packaged_index
from engine.catalogue.types import (
    Catalogue,
    CauseInfo,
    CauseRule,
    GpuModel,
    Pattern,
    Place,
    RuleTest,
    Signal,
    Spelling,
    SymptomRule,
)

__all__ = [
    "Catalogue",
    "CauseInfo",
    "CauseRule",
    "GpuModel",
    "Pattern",
    "Place",
    "RuleTest",
    "Signal",
    "Spelling",
    "SymptomRule",
    "load_catalogue",
    "write_packaged_index",
]
