"""An old Xid is history, not a cause: say when it came, if the source still knows.

``DCGM_FI_DEV_XID_ERRORS`` holds the last code until another comes or the host engine restarts
(dcgm-exporter issue 500), so a code that did not change in the window says nothing about now.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from engine.diagnosis.judge import Judgement
from engine.diagnosis.logwords import XID_HISTORY
from engine.model import Diagnosis
from engine.signals.normalise import Readings
from engine.units import duration

LOOKBACK_HISTORY_S = 86400.0


def of_gauge(note: Diagnosis) -> bool:
    """Return whether a note is about an old Xid that the gauge holds, not the kernel log alone."""
    xids = [e for e in note.evidence if e.signal == "xid"]
    return note.cause == XID_HISTORY and (not xids or any(e.op != "logged" for e in xids))


def date_xid(answer: Judgement, history: Readings, at: float) -> Judgement:
    """Return the judgement with the time of the old Xid's last change added to its note."""
    notes = tuple(
        _dated(note, answer, history, at) if of_gauge(note) else note for note in answer.notes
    )
    return replace(answer, notes=notes)


def _dated(note: Diagnosis, answer: Judgement, history: Readings, at: float) -> Diagnosis:
    frame = history.frame
    for i, entity in enumerate(frame.entities):
        if entity.uuid == answer.entity.uuid and entity.name == answer.entity.name:
            times, values = frame.samples("xid", i)
            if times.size < 2:
                break
            changed = np.flatnonzero(np.diff(values) != 0)
            if changed.size:
                when = float(times[changed[-1] + 1])
                stamp = datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
                says = f"{note.says} It changed at {stamp}, {duration(at - when)} earlier."
                return replace(note, says=says, since=when)
            seen = duration(at - float(times[0]))
            return replace(note, says=f"{note.says} It has not changed for at least {seen}.")
    return note
