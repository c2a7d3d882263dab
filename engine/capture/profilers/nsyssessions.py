"""Sessions of Nsight Systems: reading ``nsys sessions list`` and choosing the one for a target.

nsys cannot attach to a program that runs already (its option ``-p`` names an NVTX range). What it
can do is record a program that was started under ``nsys launch``: that is an armed session.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.capture.errors import CaptureError
from engine.model import Entity

# ID, time since its start (minutes:seconds), state, number of programs, name.
_ROW = re.compile(r"\s*(\d{1,20})\s+(\d+(?::\d+)+)\s+([A-Za-z]\w*)\s+(\d+)\s+(\S.*?)\s*")
_GPU_NAME = re.compile(r"gpuwhy-\d+")
_ARMED = "Launched"
# States in which the stream is being written; "Generation" is the writing out after the end.
_RECORDING = re.compile(r"(?:Delayed)?\w*Collection|StartRange|Generation")
_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Session:
    """One line of the list.

    Attributes:
        id: number by which nsys takes it; unlike a name it is unique, and nothing in it is
            replaced (``%h`` in a name is).
        name: as given to ``nsys launch --session-new=``.
        state: nsys's word, such as ``Launched`` or ``Collection``.
        programs: how many programs run in it.
    """

    id: str
    name: str
    state: str
    programs: int

    @property
    def armed(self) -> bool:
        """Whether a recording can be started."""
        return self.state == _ARMED and self.programs > 0

    @property
    def recording(self) -> bool:
        """Whether a recording runs, or is being written out."""
        return _RECORDING.fullmatch(self.state) is not None


def read_sessions(listing: str) -> tuple[Session, ...]:
    """Return the sessions in the output of ``nsys sessions list``; other lines do not matter."""
    rows = (_ROW.fullmatch(line) for line in listing.splitlines())
    return tuple(Session(r[1], r[5], r[3], int(r[4])) for r in rows if r)


def wanted_name(target: Entity) -> str:
    """Return the name that a session for this target should have."""
    return "gpuwhy" if target.gpu is None else f"gpuwhy-{target.gpu}"


def arming_line(target: Entity, nsys: str = "nsys") -> str:
    """Return the line that starts a program so that it can be recorded later."""
    return f"{nsys} launch --session-new={wanted_name(target)} --trace=cuda,nvtx,osrt PROGRAM …"


def choose(sessions: Sequence[Session], target: Entity, nsys: str) -> Session:
    """Return the session to record.

    The one with the target's name, or else the only one there is, unless its name says that it
    belongs to another GPU.

    Raises:
        CaptureError: none is armed (``not_armed``), several could be meant (``ambiguous_session``),
            or the one that is meant is being recorded already (``busy_session``).
    """
    name = wanted_name(target)
    host = target.host
    named = [session for session in sessions if session.name == name]
    others = [s for s in sessions if s.armed and not _of_another_gpu(s, target)]
    found = named or others
    ready = [session for session in found if session.armed]
    if len(ready) == 1:
        return ready[0]
    if any(session.recording for session in named):
        said = f"session {name} on {host} is being recorded already"
        raise CaptureError(said, hint="wait until that ends", code="busy_session")
    if len(ready) > 1:
        said = f"several programs on {host} run under nsys ({_names(ready)})"
        hint = f"start the one that is meant with --session-new={name}"
        raise CaptureError(said, hint=hint, code="ambiguous_session")
    there = [s for s in sessions if s.armed]
    seen = f" (there are sessions {_names(there)})" if there else ""
    raise CaptureError(
        f"no program for {target.name} runs under nsys on {host}{seen}, and nsys cannot attach to "
        "one that runs already",
        hint="start the program, as the same user and with the same TMPDIR, by: "
        + arming_line(target, nsys),
        code="not_armed",
    )


def _of_another_gpu(session: Session, target: Entity) -> bool:
    return target.gpu is not None and _GPU_NAME.fullmatch(session.name) is not None


def _names(sessions: Sequence[Session]) -> str:
    more = len(sessions) - _SHOWN
    shown = ", ".join(s.name for s in sessions[:_SHOWN])
    return f"{shown} and {more} more" if more > 0 else shown
