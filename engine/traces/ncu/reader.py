"""Reads what Nsight Compute prints: CSV of its pages, text, and the messages of a failed run."""

from __future__ import annotations

from typing import ClassVar, Final

from engine.model import Finding, Severity
from engine.readers.base import Context, Result
from engine.traces.ncu.compare import compared
from engine.traces.ncu.csvform import CsvForm
from engine.traces.ncu.messages import SOURCE, Message, message_of
from engine.traces.ncu.profile import Kernel, Profile
from engine.traces.ncu.textform import LAUNCH_PATTERN, TextForm
from engine.traces.ncu.verdicts import Verdict, verdicts

KIND: Final = "ncu"
_SHOWN: Final = 5
_PROFILES: Final = 16
_MATTERS: Final = 0.1
# So many lines of something else end a table: a program's own output may stand between its rows.
_PATIENCE: Final = 40


class NcuReader:
    """Kernels of one or two profiles; a second table with the same kernels is compared."""

    triggers: ClassVar[tuple[bytes, ...]] = (
        b'"Kernel Name"',
        b"==ERROR== ",
        b"==WARNING== ",
        b"==PROF== ",
    )
    pattern: ClassVar[bytes] = LAUNCH_PATTERN
    together: ClassVar[bool] = True

    def __init__(self, context: Context) -> None:
        self.open = False
        self._context = context
        self._table: CsvForm | None = None
        self._text: TextForm | None = None
        self._profiles: list[Profile] = []
        self._messages: dict[str, tuple[int, Message]] = {}
        self._foreign = 0
        self._seen = False

    def feed(self, number: int, text: str) -> bool:
        """Take a header, a launch, or a row of what is open."""
        taken = self._taken(number, text)
        self._foreign = 0 if taken else self._foreign + 1
        if self._foreign > _PATIENCE:
            self.open, self._table, self._text = False, None, None
        self._seen |= taken
        return taken

    def _taken(self, number: int, text: str) -> bool:
        if text.startswith(("==PROF==", "==ERROR==", "==WARNING==")):
            message = message_of(text)
            if message is not None:
                self._messages.setdefault(message.id, (number, message))
            return True
        if '"Kernel Name"' in text and (table := CsvForm.of(text)) is not None:
            self._table, self._text = table, None
            self._start()
            return True
        if ", Context " in text:
            form = self._text or TextForm()
            if self._text is None and ", Device " in text:
                self._start()
            if form.launch(text, number, self._profiles[-1] if self._profiles else self._start()):
                self._text, self.open = form, True
                return True
        if self._table is not None:
            return self._table.row(text, number, self._profiles[-1])
        return self._text is not None and self._text.row(text, self._profiles[-1])

    def _start(self) -> Profile:
        """Begin a profile; after sixteen the last one goes on."""
        if len(self._profiles) < _PROFILES:
            readings = self._context.catalogue.entries.get("kernel_readings", {})
            self._profiles.append(Profile(readings))
        self.open, self._foreign = True, 0
        return self._profiles[-1]

    def finish(self) -> Result:
        """Return verdicts on the kernels that took longest, and how they compare."""
        result = Result()
        profiles = [p for p in self._profiles if p.kernels]
        if not self._seen:
            return result
        result.kinds.append(KIND)
        for line, message in self._messages.values():
            result.findings.append(_said(line, message))
        if not profiles:
            return result
        common = len(profiles) > 1 and set(profiles[0].kernels) & set(profiles[-1].kernels)
        if common:
            units = self._context.catalogue.entries.get("kernel_readings", {})
            found, summary = compared(
                profiles[0], profiles[-1], {k: str(e["unit"]) for k, e in units.items()}, KIND
            )
            result.findings += found
            result.notes.append(summary)
        self._judge(profiles if not common else profiles[-1:], result)
        left_out = sum(p.left_out for p in profiles)
        if left_out:
            result.notes.append(f"{left_out} launches of further kernels were not read.")
        return result

    def _judge(self, profiles: list[Profile], result: Result) -> None:
        kernels = [kernel for profile in profiles for kernel in profile.kernels.values()]
        kernels.sort(key=lambda k: (-(k.total_us or 0.0), k.line))
        whole = sum(k.total_us or 0.0 for k in kernels)
        for kernel in kernels[:_SHOWN]:
            found = self._findings(kernel, whole)
            result.findings += found
            # What a kernel shows that takes hardly any of the time is no cause of anything.
            if (kernel.total_us or whole) >= _MATTERS * whole:
                told = (f.cause for f in found if f.cause)
                result.causes += [cause for cause in told if cause not in result.causes]
        if len(kernels) > _SHOWN:
            result.notes.append(
                f"{len(kernels) - _SHOWN} kernel(s) that took less time are not shown."
            )

    def _findings(self, kernel: Kernel, whole: float) -> list[Finding]:
        readings = {k: round(v, 3) for k, v in kernel.readings().items() if k != "matrix_kernel"}
        found = verdicts(kernel, self._context.catalogue)
        if not found:
            keys = ", ".join(sorted(readings)) or "none that is known"
            found = [
                Verdict(
                    "not_judged",
                    Severity.INFO,
                    None,
                    f"The readings at hand ({keys[:200]}) do not say what limits it.",
                    "Profile it with `--section SpeedOfLight --section Occupancy` at least.",
                    (SOURCE,),
                )
            ]
        data = {"kernel": kernel.name, "launches": kernel.count, **_named(readings)}
        head = f"{kernel.name}{_share(kernel, whole)}: "
        return [
            Finding(
                kind=KIND,
                id=one.id,
                severity=one.severity,
                says=head + one.says,
                action=one.action,
                entity=None,
                line=kernel.line or None,
                cause=one.cause,
                data=data if index == 0 else {"kernel": kernel.name},
                sources=one.sources,
            )
            for index, one in enumerate(found)
        ]


def _share(kernel: Kernel, whole: float) -> str:
    total = kernel.total_us
    if not total:
        return f" ({kernel.count} launch(es))"
    share = f", {100 * total / whole:.0f} % of the profiled time" if whole > total else ""
    return f" ({kernel.count} launch(es), {total / kernel.count:,.1f} us each{share})"


def _named(readings: dict[str, float]) -> dict[str, float]:
    """Return readings under names that carry their unit."""
    units = {"duration": "us", "sm_clock": "ghz", "waves": "count", "registers": "count"}
    plain = {"imbalance", "tail_wave", "issue_active", "warp_cycles", "active_threads"}
    raw = ("shared_", "local_", "cycles_", "host_sectors", "l2_sectors")
    found: dict[str, float] = {}
    for key, value in readings.items():
        if key.startswith(raw):
            continue
        if key.startswith("dram_") and key != "dram_throughput":
            found[f"{key}_gbs"] = value
        elif key in units:
            found[f"{key}_{units[key]}"] = value
        elif key in plain:
            found[key] = value
        else:
            found[f"{key}_percent"] = value
    return found


def _said(line: int, message: Message) -> Finding:
    return Finding(
        kind=KIND,
        id=message.id,
        severity=message.severity,
        says=message.says,
        action=message.action,
        entity=None,
        line=line,
        cause=None,
        data={},
        sources=(SOURCE,),
    )
