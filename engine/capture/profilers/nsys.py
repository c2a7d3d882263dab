"""Nsight Systems: record a program that was started under ``nsys launch``.

Seen with 2022.4 (Debian) and so written for it and later ones: ``nsys cancel`` may not be
implemented, so a recording is taken back by stopping it and throwing its file away; where the
importer is not installed beside nsys, the stop leaves a raw stream (``.qdstrm``) that
``QdstrmImporter`` turns into a report; a recording ends by itself when the program does, and a
stop then has nothing to say; a start in a session that is gone makes a new one without a program,
named by what was asked for (here called a phantom).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from engine.capture.errors import CaptureError
from engine.capture.executors.files import no_room, too_large
from engine.capture.executors.process import NOT_FOUND, NOT_RUNNABLE
from engine.capture.plan import CapturePlan, CaptureRequest, CaptureResult, CaptureStep
from engine.capture.ports import Completed, Executor
from engine.capture.profilers.nsyssessions import Session, choose, read_sessions
from engine.capture.settings import CaptureSettings
from engine.capture.steps import Steps
from engine.units import duration

REPORT = ".nsys-rep"
RAW = ".qdstrm"
# Public measurements differ that much; NVIDIA gives no number.
OVERHEAD = (
    "between under 1 % and 1.7 times the step time while it records, depending on how many kernels "
    "and calls there are a second; for moments at the stop up to 4 times, while buffers are written"
)
DISTURBS = (
    "the program runs on; a stall at the stop can trip a short collective time-out. DCGM is not "
    "paused. The trace holds the program's command line and may hold its environment"
)
_VERSION = re.compile(r"version\s+(\S{1,60})")
_NOT_CREATED = re.compile(r"Failed to create '[^'\n]*': ([^\n]{1,200}?)\.?\s*$", re.MULTILINE)
_LEFTOVER = re.compile(r"^\s*(/[\w./-]*/nsys-report-[0-9a-f]+\.(?:qdstrm|nsys-rep))$", re.MULTILINE)
_FREE_KIB = re.compile(r"^\S.*?\s\d+\s+\d+\s+(-?\d+)\s+\d+%\s", re.MULTILINE)
_SIZE = re.compile(r"^(\d+) (/\S+)$", re.MULTILINE)
# The program ended: its trace is being written, or the session is gone already.
_NOTHING_TO_STOP = re.compile(r"not applicable in this state|Failed to find session")
_POLL_S = 0.5
_POLLS = 40
_UNDO_TRIES = 3


class Nsys:
    """The profiler ``nsys``; see `engine.capture.profilers.base.Profiler`."""

    async def plan(
        self, request: CaptureRequest, settings: CaptureSettings, executor: Executor
    ) -> CapturePlan:
        """Find the armed session and write down what to run."""
        wait = settings.command_timeout_s
        ask = (settings.nsys, "sessions", "list")
        listed = await executor.run(ask, timeout_s=wait)
        _installed(listed, executor.host, settings.nsys)
        session = choose(read_sessions(listed.out), request.target, settings.nsys)
        said = await executor.run((settings.nsys, "--version"), timeout_s=wait)
        version = _VERSION.search(said.out)
        await _room(executor, settings)
        return CapturePlan(
            id=request.id,
            profiler=request.profiler,
            version=version[1] if version else "",
            target=request.target,
            session=session.name,
            route=executor.route,
            through=executor.through,
            duration_s=request.duration_s,
            steps=_steps(request, session, settings),
            overhead=OVERHEAD,
            disturbs=DISTURBS,
            file=str(settings.folder.absolute() / request.id / _file_name(request)),
            max_file_bytes=settings.max_file_bytes,
        )

    async def record(self, plan: CapturePlan, steps: Steps) -> CaptureResult:
        """Record, import if need be, and bring the file."""
        quick = plan.step("check").timeout_s
        await steps.do("check", lambda listed: _still_armed(plan, listed))
        await steps.do("folder")
        await steps.do("start", lambda ended: _started(plan, ended))
        started = await steps.do("confirm")
        if phantom := _phantom(plan, started):
            await steps.tidy(_shutdown(plan, phantom), timeout_s=quick)
            raise _gone(plan)
        seconds = await steps.wait("record", plan.duration_s)
        stopped = await steps.do("stop", lambda ended: _stopped(plan, ended))
        if unwritten := _NOT_CREATED.search(stopped.out + stopped.err):
            for leftover in _LEFTOVER.findall(stopped.out):
                await steps.tidy(("rm", "-f", "--", leftover), timeout_s=quick)
            raise CaptureError(f"nsys on {plan.host} could not write the trace: {unwritten[1]}")
        size, kind = await _report(plan, steps)
        file = Path(plan.file).with_suffix(kind)
        await steps.fetch("fetch" if kind == REPORT else "fetch_raw", file, size)
        try:
            await steps.do("clean")
        except CaptureError as error:
            # The trace is here; what is left on the target is told, and the journal keeps it.
            steps.log.append(error.one_line())
        return CaptureResult(str(file), size, seconds, tuple(steps.log))

    async def undo(self, plan: CapturePlan, step: CaptureStep, executor: Executor) -> None:
        """Stop the recording, and see that it is stopped; or remove the folder."""
        undo = step.undo or ()
        if step.id != "start":
            ended = await executor.run(undo, timeout_s=step.timeout_s)
            if ended.status != 0:
                raise CaptureError(f"{' '.join(undo)} on {plan.host} failed: {ended.said}")
            return
        ask = plan.step("check")
        for _ in range(_UNDO_TRIES):
            await executor.run(undo, timeout_s=plan.step("stop").timeout_s)
            listed = await executor.run(ask.argv or (), timeout_s=ask.timeout_s)
            if phantom := _phantom(plan, listed):
                await executor.run(_shutdown(plan, phantom), timeout_s=ask.timeout_s)
            session = _session(plan, listed)
            if listed.status == 0 and not (session and session.recording):
                return
            await asyncio.sleep(_POLL_S)
        said = f"session {plan.session} on {plan.host} may still be recording"
        raise CaptureError(said, hint=f"run there: {' '.join(undo)}", code="still_recording")


def _steps(
    request: CaptureRequest, session: Session, settings: CaptureSettings
) -> tuple[CaptureStep, ...]:
    nsys = settings.nsys
    quick = settings.command_timeout_s
    folder = str(PurePosixPath(settings.target_folder) / f"gpuwhy-{request.id}")
    output = f"{folder}/capture"
    report, raw = output + REPORT, output + RAW
    by_id = f"--session={session.id}"
    stop = (nsys, "stop", by_id)
    start = (nsys, "start", by_id, f"--output={output}", "--sample=none", "--cpuctxsw=none")
    remove = ("rm", "-rf", "--", folder)
    length = duration(request.duration_s)
    fetching = settings.fetch_timeout_s
    step = CaptureStep
    return (
        step("check", "see that the session is still armed", quick, (nsys, "sessions", "list")),
        step(
            "folder", "make a private folder", quick, ("mkdir", "-m", "700", "--", folder), remove
        ),
        step("start", f"start recording in session {session.name}", quick, start, stop),
        step("confirm", "see that the program is recorded", quick, (nsys, "sessions", "list")),
        step("record", f"wait {length}", request.duration_s),
        step("stop", "stop recording", settings.stop_timeout_s, stop, settles="start"),
        step(
            "measure",
            "see how large the trace is",
            quick,
            ("stat", "-c", "%s %n", "--", report, raw),
        ),
        step(
            "import",
            "turn a raw stream into a report, if nsys left one",
            settings.import_timeout_s,
            (settings.importer, "-i", raw, "-o", report),
        ),
        step("fetch", "bring the report", fetching, ("cat", "--", report)),
        step(
            "fetch_raw",
            "bring the raw stream instead, if there is no importer",
            fetching,
            ("cat", "--", raw),
        ),
        step("clean", "remove the folder", quick, remove, settles="folder"),
    )


async def _report(plan: CapturePlan, steps: Steps) -> tuple[int, str]:
    """Return size (bytes) and kind of the file to bring; the raw stream is imported if possible."""
    sizes = await _written(plan, steps)
    kind = REPORT
    if REPORT not in sizes:
        imported = await steps.do("import", lambda ended: _imported(plan, ended))
        if imported.status == 0:
            sizes = await _written(plan, steps)
        else:
            kind = RAW
            steps.log.append(
                "the raw stream was kept: QdstrmImporter is not on the target; "
                "Nsight Systems of the same version opens it"
            )
    if not sizes.get(kind):
        raise CaptureError(f"QdstrmImporter on {plan.host} left no report")
    if sizes[kind] > plan.max_file_bytes:
        raise too_large(plan.host, plan.max_file_bytes)
    return sizes[kind], kind


async def _written(plan: CapturePlan, steps: Steps) -> Mapping[str, int]:
    """Return the sizes (bytes) of the files that are there, by their kind, once there is one."""
    for _ in range(_POLLS):
        measured = await steps.do("measure", lambda _: None)
        sizes = {PurePosixPath(path).suffix: int(n) for n, path in _SIZE.findall(measured.out)}
        if any(sizes.values()):
            return sizes
        # The program ended meanwhile, and its trace is still being written out.
        await asyncio.sleep(_POLL_S)
    said = f"nsys on {plan.host} left no trace"
    raise CaptureError(said, hint="did the program end before anything was recorded?")


def _installed(listed: Completed, host: str, nsys: str) -> None:
    if listed.status in {NOT_FOUND, NOT_RUNNABLE}:
        hint = "install Nsight Systems there, or set the path of nsys"
        raise CaptureError(f"{nsys} cannot be run on {host}", hint=hint, code="tool_missing")
    if listed.status != 0:
        raise CaptureError(f"{nsys} sessions list on {host} failed: {listed.said}")


async def _room(executor: Executor, settings: CaptureSettings) -> None:
    ask = ("df", "-Pk", "--", settings.target_folder)
    said = await executor.run(ask, timeout_s=settings.command_timeout_s)
    free = _FREE_KIB.search(said.out)
    if said.status != 0 or free is None:
        raise CaptureError(f"cannot see the free space on {executor.host}: {said.said}")
    if int(free[1]) * 1024 < settings.max_file_bytes:
        where = f"on {executor.host}"
        place = settings.target_folder
        raise no_room(where, place, int(free[1]) * 1024, settings.max_file_bytes)


def _session(plan: CapturePlan, listed: Completed) -> Session | None:
    argv = plan.step("start").argv or ()
    return next((s for s in read_sessions(listed.out) if f"--session={s.id}" in argv), None)


def _phantom(plan: CapturePlan, listed: Completed) -> Session | None:
    argv = plan.step("start").argv or ()
    sessions = read_sessions(listed.out)
    return next((s for s in sessions if not s.programs and f"--session={s.name}" in argv), None)


def _shutdown(plan: CapturePlan, phantom: Session) -> tuple[str, ...]:
    """Return the command that ends a session without a program; no other is ever shut down."""
    return ((plan.step("start").argv or ())[0], "shutdown", f"--session={phantom.id}")


def _still_armed(plan: CapturePlan, listed: Completed) -> None:
    _installed(listed, plan.host, (plan.step("check").argv or ("nsys",))[0])
    session = _session(plan, listed)
    if session is not None and session.recording:
        said = f"session {plan.session} on {plan.host} is being recorded already"
        raise CaptureError(said, hint="wait until that ends", code="busy_session")
    if session is None or not session.armed or session.name != plan.session:
        raise _gone(plan)


def _started(plan: CapturePlan, ended: Completed) -> None:
    if ended.status != 0:
        raise CaptureError(f"nsys on {plan.host} did not start recording: {ended.said}")


def _stopped(plan: CapturePlan, ended: Completed) -> None:
    """Accept a stop that did it, or that found nothing to stop since the program had ended."""
    if ended.status != 0 and not _NOTHING_TO_STOP.search(ended.out + ended.err):
        raise CaptureError(f"nsys on {plan.host} did not stop recording: {ended.said}")


def _imported(plan: CapturePlan, ended: Completed) -> None:
    if ended.status not in {0, NOT_FOUND, NOT_RUNNABLE}:
        raise CaptureError(f"QdstrmImporter on {plan.host} failed: {ended.said}")


def _gone(plan: CapturePlan) -> CaptureError:
    said = f"the program of session {plan.session} on {plan.host} has ended since the plan was made"
    return CaptureError(said, hint="make a new plan once it runs again", code="session_gone")


def _file_name(request: CaptureRequest) -> str:
    host = (request.target.host or "").strip("[]").replace(":", "-")
    gpu = "" if request.target.gpu is None else f"-gpu{request.target.gpu}"
    return f"{host}{gpu}{REPORT}"
