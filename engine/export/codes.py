"""Events of code signals: the Xid gauge keeps its last code for days, so only a change counts."""

from __future__ import annotations

from engine.catalogue.types import Catalogue, Signal
from engine.condition.selectors import duration
from engine.export.names import ENTITY, PREFIX, by, recorded_name
from engine.export.recorded import SEEN, Recording

# How often the rule group is evaluated (s): what dcgm-exporter's Helm chart scrapes at.
INTERVAL_S = 15


def change_rule(signal: Signal, catalogue: Catalogue, interval_s: int) -> Recording:
    """Return the rule that records each change of a code, with the new code as a label.

    The series has a sample only at the evaluation that saw the change. Xids that the exporter
    counts by code are merged in: the gauge does not show a second event of the same code.
    """
    name = recorded_name(signal)
    changed = f"{name} != {_before(name, interval_s)}"
    expr = f'count_values {by(ENTITY)} ("code", {changed})'
    counter = catalogue.signals.get("xid_count") if signal.id == "xid" else None
    if counter is not None:
        counted = f'{recorded_name(counter)}{{xid!=""}}'
        before = _before(counted, interval_s)
        rose = f"(({counted} > {before}) or ({counted} > 0 unless {before}))"
        coded = f'label_replace({rose}, "code", "$1", "xid", "(.+)")'
        expr = f"group {by((*ENTITY, 'code'))} ({expr} or {coded})"
    return Recording(change_name(signal), expr)


def change_name(signal: Signal) -> str:
    """Return the name of the series of a code signal's changes."""
    return f"{PREFIX}:{signal.id}:change"


def event_rule(record: str, signal: Signal, codes: frozenset[int]) -> Recording:
    """Return the rule that records changes to some codes, whichever of them."""
    wanted = "|".join(str(code) for code in sorted(codes))
    return Recording(record, f'group {by(ENTITY)} ({change_name(signal)}{{code=~"{wanted}"}})')


def _before(series: str, interval_s: int) -> str:
    return f"last_over_time({series}[{SEEN}] offset {duration(interval_s)})"
