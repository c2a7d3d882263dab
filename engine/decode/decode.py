"""From what was typed to every way it can be read."""

from __future__ import annotations

from engine.catalogue.nearest import fold
from engine.catalogue.types import Catalogue
from engine.decode.names import by_name, nearest_names, signal_of
from engine.decode.numbers import CODE_TABLES, MASK_TABLE, code, mask, readings
from engine.decode.request import KINDS, Number, Request, read_request
from engine.model import Candidate, Decode

Found = tuple[tuple[Candidate, ...], tuple[str, ...]]

# Signals whose values are codes, and the codes they are.
_CODE_SIGNALS = {"xid": "xid", "sxid_fatal": "sxid", "sxid_nonfatal": "sxid"}


def decode(text: str, catalogue: Catalogue) -> Decode:
    """Say what one thing means.

    Understood are a throttle mask (``0x48``, ``72``, ``throttle 0x48``), an Xid (``xid 79``), an
    SXid (``sxid 12028``), a DCGM field by number or macro (``field 1003``, ``sm_active``), a metric
    of any exporter (also with its value: ``DCGM_FI_DEV_XID_ERRORS 79``), an NVML or DCGM constant,
    an Xid symbol, a GPU model and a cause. A bare number is given in every reading
    (`engine.decode.numbers.readings` says in which order). What nobody has documented is said to
    be undocumented, or has no candidates and the nearest names.

    Args:
        text: what was typed, at most 200 characters.
        catalogue: knowledge; rules are not needed.

    Raises:
        UsageError: nothing or too much was given, several numbers, or a number that can be no code.
    """
    request = read_request(text)
    found, near = _by_number(request, catalogue) if request.number else _by_name(request, catalogue)
    return Decode(request.text, found, near)


def _by_number(request: Request, catalogue: Catalogue) -> Found:
    number = request.number
    assert number is not None
    if not request.before:
        return readings(number, catalogue), ()
    kind = KINDS.get(fold(request.before), "") or _kind_of_metric(request.before, catalogue)
    if kind == "throttle":
        return (mask(number.value, catalogue),), ()
    if kind in CODE_TABLES:
        return _code(kind, number, catalogue)
    return _by_name(request, catalogue)


def _code(kind: str, number: Number, catalogue: Catalogue) -> Found:
    found, near = code(kind, number.value, catalogue)
    return (found,), near


def _kind_of_metric(name: str, catalogue: Catalogue) -> str:
    """Return what the values of a metric are: a mask, a sort of code, or nothing of the kind."""
    signal = signal_of(name, catalogue)
    if signal is None:
        return ""
    return "throttle" if signal.bits == MASK_TABLE else _CODE_SIGNALS.get(signal.id, "")


def _by_name(request: Request, catalogue: Catalogue) -> Found:
    found = by_name(request.text, catalogue)
    if found:
        return found, ()
    first, _, rest = request.text.partition(" ")
    kind = KINDS.get(fold(first.rstrip(":=")))
    if kind and rest:
        found = by_name(rest, catalogue, kind)
        return found, () if found else nearest_names(rest, catalogue, kind)
    return (), nearest_names(request.text, catalogue)
