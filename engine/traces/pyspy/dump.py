"""Stack dumps: ``py-spy dump`` of one or many processes, and Python's own faulthandler."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from engine.readers.base import Context, Result
from engine.traces.pyspy.frames import MAX_FRAMES, Activities, Frame, frame_of, short_file
from engine.traces.pyspy.judge import judge

KIND: Final = "py_spy_dump"
_MAX_PROCESSES: Final = 4_096
_MAX_THREADS: Final = 64
_PROCESS: Final = re.compile(r"^Process (?P<pid>\d{1,10}): (?P<command>.{0,4000})")
_PYTHON: Final = re.compile(r"^Python v\d")
_THREAD: Final = re.compile(
    r'^Thread (?P<id>0x[0-9A-Fa-f]+|\d+) \((?P<state>[a-z+]+)\)(?:: "(?P<name>[^"]{0,200})")?\s*$'
)
_FAULT: Final = re.compile(
    r"^(?P<current>Current thread|Thread) 0x(?P<id>[0-9a-f]+)(?: \[.{0,40}\])? "
    r"\(most recent call first\):"
)
_FAULT_FRAME: Final = re.compile(
    r'^  File "(?P<file>[^"]{1,400})", line (?P<line>\d{1,7}) in (?P<function>.{1,200})$'
)


@dataclass(slots=True)
class Thread:
    """One thread: its name, whether it runs on a CPU, and its stack, innermost frame first."""

    name: str
    active: bool
    gil: bool
    frames: list[Frame] = field(default_factory=list)


@dataclass(slots=True)
class Process:
    """One dump of a process; ``pid`` is None where the dump does not say."""

    pid: int | None
    command: str
    line: int
    threads: list[Thread] = field(default_factory=list)

    @property
    def main(self) -> Thread | None:
        """The main thread; without names the first one."""
        named = next((t for t in self.threads if t.name == "MainThread"), None)
        return named or (self.threads[0] if self.threads else None)


class DumpReader:
    """Dumps of all inputs beside each other: ranks of a job, or moments of one process."""

    triggers: ClassVar[tuple[bytes, ...]] = (b" (most recent call first):",)
    pattern: ClassVar[bytes] = (
        rb"(?m)^(?:> ?)?(?:Process \d+: \S"
        rb"|Thread (?:0x[0-9A-Fa-f]+|\d+) \((?:idle|active)[a-z+]*\))"
    )
    together: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        self.open = False
        self._activities = Activities(context.catalogue)
        self._processes: list[Process] = []
        self._pending: Process | None = None
        self._thread: Thread | None = None
        self._left_out = 0

    def feed(self, number: int, text: str) -> bool:
        """Take a line of a dump."""
        if hit := _PROCESS.match(text):
            self._pending = Process(int(hit["pid"]), hit["command"], number)
            self._thread, self.open = None, True
            return True
        if self.open and _PYTHON.match(text):
            return True
        if hit := _THREAD.match(text):
            state = hit["state"].split("+")
            return self._begin(number, hit["name"] or "", "active" in state, "gil" in state)
        if hit := _FAULT.match(text):
            current = hit["current"].startswith("Current")
            return self._begin(number, "MainThread" if current else "", active=False, gil=current)
        if self._thread is not None:
            return self._frame(text)
        self.open = False
        return False

    def _begin(self, number: int, name: str, active: bool, gil: bool) -> bool:
        if self._pending is None:
            # A dump whose head was not pasted.
            self._pending = Process(None, "", number)
        process = self._pending
        if process not in self._processes[-1:]:
            if len(self._processes) >= _MAX_PROCESSES:
                self._left_out += 1
            else:
                self._processes.append(process)
        self._thread = Thread(name, active, gil)
        if len(process.threads) < _MAX_THREADS:
            process.threads.append(self._thread)
        self.open = True
        return True

    def _frame(self, text: str) -> bool:
        assert self._thread is not None
        frame = None
        if hit := _FAULT_FRAME.match(text):
            frame = Frame(hit["function"], short_file(hit["file"]), int(hit["line"]))
        elif text.startswith("    "):
            # Arguments and locals (--locals) stand deeper than the frames.
            if text.startswith("        "):
                return True
            frame = frame_of(text)
        if frame is None:
            self.open, self._thread = text.strip() in {"...", ""}, None
            return self.open
        if len(self._thread.frames) < MAX_FRAMES:
            self._thread.frames.append(frame)
        return True

    def finish(self) -> Result:
        """Return what the processes do, and which one the others wait for."""
        return dumped(self._processes, self._activities, self._left_out)


def dumped(processes: list[Process], activities: Activities, left_out: int = 0) -> Result:
    """Return what dumps show."""
    result = Result()
    if processes:
        result.kinds.append(KIND)
        judge(processes, activities, result, KIND)
    if left_out:
        result.notes.append(f"{left_out} more process dump(s) were not read.")
    return result


def is_json(value: object) -> bool:
    """Return whether a document is ``py-spy dump --json``: a list of threads with frames."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(t, dict) and isinstance(t.get("frames"), list) and "thread_id" in t
            for t in value[:8]
        )
    )


def of_json(value: Any, line: int) -> list[Process]:
    """Return the processes of a JSON dump; what is malformed is left out."""
    found: dict[int, Process] = {}
    for one in value[:4_096]:
        if not isinstance(one, dict):
            continue
        pid = one.get("pid")
        pid = pid if isinstance(pid, int) else 0
        process = found.setdefault(pid, Process(pid or None, "", line))
        frames = [_json_frame(f) for f in (one.get("frames") or [])[:MAX_FRAMES]]
        if len(process.threads) < _MAX_THREADS:
            process.threads.append(
                Thread(
                    str(one.get("thread_name") or "")[:200],
                    one.get("active") is True,
                    one.get("owns_gil") is True,
                    [f for f in frames if f is not None],
                )
            )
    return list(found.values())


def _json_frame(value: object) -> Frame | None:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        return None
    line = value.get("line")
    file = value.get("short_filename") or value.get("filename") or ""
    return Frame(
        value["name"][:300], short_file(str(file)[:400]), line if isinstance(line, int) else None
    )
