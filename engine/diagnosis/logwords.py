"""Sentences of verdicts that rest on a kernel log: the code that decided, and what the gauge holds.

Without a log the Xid gauge is all there is, and the sentences of rules speak of its newest code. A
log has more than that one, so the one that the evidence names is put in its place.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.catalogue.types import Catalogue, CauseRule
from engine.diagnosis.logged import without_log
from engine.diagnosis.words import code_title, sentence
from engine.model import Evidence
from engine.samples import Frame
from engine.units import number

XID_HISTORY = "xid_history"
_NO_CAUSE = (
    "not a cause now: either it came before the time that the rules look at, or the kind only "
    "reports or accompanies something else, as 45 does when a process is killed."
)


def says(
    rule: CauseRule, frame: Frame, i: int, catalogue: Catalogue, evidence: Sequence[Evidence]
) -> str:
    """Fill the sentence of a cause for entity i."""
    xids = [e for e in evidence if e.signal == "xid" and isinstance(e.value, int | float)]
    if i not in frame.logged or not xids:
        return sentence(rule.says, frame, i, catalogue)
    by_log = list(dict.fromkeys(float(e.value or 0) for e in xids if e.op == "logged"))
    by_gauge = [e for e in xids if e.op != "logged"]
    _, values = without_log(frame).samples("xid", i)
    held = float(values[-1]) if values.size else 0.0
    title = catalogue.signals["xid"].title
    if rule.id == XID_HISTORY:
        name = frame.entities[i].name
        codes = [code for code in by_log if code != held or not by_gauge]
        said = [f"The kernel log has {_named(catalogue, code)} of {name}" for code in codes]
        # A gauge that moved shows what is judged by itself; its code is no history.
        moved = bool(np.any(np.diff(values)))
        if by_gauge and (not moved or any(e.op == "changed_to" for e in by_gauge)):
            given = {"xid.name": f"{title} {_named(catalogue, held).removeprefix('Xid ')}"}
            return ". ".join([*said, sentence(rule.says, frame, i, catalogue, given)])
        return ". ".join(said) + f", {_NO_CAUSE}" if said else rule.title
    shown = {float(e.value or 0) for e in by_gauge}
    code = by_log[0] if by_log else float(xids[0].value or 0)
    named = _named(catalogue, code)
    given = {"xid.name": f"{title} {named.removeprefix('Xid ')}" if code in shown else named}
    filled = sentence(rule.says, frame, i, catalogue, given)
    if not by_log or held <= 0 or held in {*by_log, *shown}:
        return filled
    return f"{filled} The Xid gauge holds {_named(catalogue, held).removeprefix('Xid ')}."


def _named(catalogue: Catalogue, code: float) -> str:
    title = code_title(catalogue, "xid", code)
    return f"Xid {number(code)} ({title})" if title else f"Xid {number(code)}"
