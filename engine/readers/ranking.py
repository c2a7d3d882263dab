"""The order of the causes that several readers found in one paste: what to act on stands first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from engine.catalogue.types import Catalogue
from engine.model import Class, Confidence, Diagnosis, Severity
from engine.readers.base import Result
from engine.readers.joins import LINK

_ORDER: Final = tuple(Severity)
_LAST: Final = frozenset((Class.BENIGN, Class.BLIND))
_ROOTS: Final = frozenset((Class.FAULT, Class.WORKLOAD))
# What a reader sees of a fault elsewhere: it stands after any narrower cause.
_EFFECTS: Final = frozenset(
    ("collective_hang", "straggler", "waiting_on_straggler", "communication_bound", "regression")
)
# What stands after one narrower cause: the errors of a link whose GPU is gone. They stand right
# behind it where a reader tied them to it (`engine.readers.joins`), else after all others.
_AFTER: Final[Mapping[str, tuple[str, ...]]] = {"pcie_errors": ("gpu_off_bus",)}


def ranked(results: Sequence[Result], catalogue: Catalogue) -> tuple[str, ...]:
    """Return the causes, best first.

    A reader's own order holds, root first; readers are in the order of the worst that each found.
    Benign and blind causes stand after all others.

    Args:
        results: in the order of the readers.
        catalogue: its taxonomy says of what class a cause is.
    """
    ordered = sorted(results, key=lambda result: _worst(result, catalogue))
    causes = list(dict.fromkeys(c for result in ordered for c in result.causes))
    tied = {f.cause for result in results for f in result.findings if LINK in f.data}

    def place(cause: str) -> tuple[bool, bool]:
        others = [c for c in causes if c not in _EFFECTS and _class(c, catalogue) in _ROOTS]
        effect = cause in _EFFECTS and bool(others)
        late = any(root in causes and root not in tied for root in _AFTER.get(cause, ()))
        return (_class(cause, catalogue) in _LAST, effect or late)

    return tuple(sorted(causes, key=place))


def _worst(result: Result, catalogue: Catalogue) -> int:
    """Return the place of the worst severity with which a result names a cause to act on."""
    named = [f.severity for f in result.findings if f.cause and _acts(f.cause, catalogue)]
    named += [_weighed(d) for d in result.diagnoses if _acts(d.cause, catalogue)]
    return min(map(_ORDER.index, named), default=_ORDER.index(Severity.MEDIUM))


def _weighed(diagnosis: Diagnosis) -> Severity:
    """Return the severity of a diagnosis: what is merely possible stands behind what is sure."""
    critical = diagnosis.severity is Severity.CRITICAL
    possible = diagnosis.confidence is Confidence.POSSIBLE
    return Severity.HIGH if critical and possible else diagnosis.severity


def _acts(cause: str, catalogue: Catalogue) -> bool:
    return _class(cause, catalogue) not in _LAST


def _class(cause: str, catalogue: Catalogue) -> Class | None:
    info = catalogue.taxonomy.get(cause)
    return None if info is None else info.class_
