"""Variables of NCCL that a log, a script or a shell shows, and what they do.

NCCL prints ``NCCL_X set by environment to v`` for those it read. Names that it does not know are
ignored without a word; they are only seen in the ``export`` lines of scripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from engine.catalogue.nearest import nearest
from engine.catalogue.types import Catalogue
from engine.model import Finding, Severity
from engine.readers.base import errata_of
from engine.readers.nccl.lines import NcclLine
from engine.readers.nccl.messages import Messages, printable
from engine.readers.nccl.told import ORDER, Told

_SET = re.compile(r"^((?:NCCL|RCCL)_[A-Z0-9_]{1,60}) set (?:by environment )?to (.{0,300}?)\.?$")
# The value of another variable is not known.
_ASSIGNED = re.compile(
    r"^((?:TORCH_NCCL|NCCL|RCCL)_[A-Z0-9_]{1,60})[=:] ?(?![\"']?\$)[\"']?([^\"'\s#;&]{0,200})"
)
_INVALID = re.compile(
    r"^Invalid value (\S{1,80}) for ((?:NCCL_)?[A-Z0-9_]{1,60}), using default (\S{1,40})"
)
_UNUSED = re.compile(r"^Warning: ENV ((?:NCCL|RCCL)_[A-Z0-9_]{1,60}) is (unused|deprecated)")
# Of these, values must be the same on all ranks, or calls do not fit each other.
_ALIKE: Final = frozenset(
    (
        "NCCL_ALGO", "NCCL_PROTO", "NCCL_BUFFSIZE", "NCCL_NTHREADS", "NCCL_NET", "NCCL_NET_PLUGIN",
        "NCCL_IB_DISABLE", "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE",
        "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_MIN_CTAS", "NCCL_MAX_CTAS",
        "NCCL_NVLS_ENABLE", "NCCL_COLLNET_ENABLE", "NCCL_CROSS_NIC", "NCCL_CUMEM_ENABLE",
        "NCCL_MNNVL_ENABLE", "NCCL_PXN_DISABLE", "NCCL_IB_QPS_PER_CONNECTION",
        "NCCL_RUNTIME_CONNECT",
    )
)  # fmt: skip
_SOURCE: Final = "NVIDIA/nccl v2.30.7 docs/userguide/source/env.rst"
_MOST: Final = 1_024
# Logging and bookkeeping: nothing to say about them.
_QUIET: Final = ("NCCL_DEBUG", "NCCL_TESTS_", "NCCL_INSPECTOR_", "NCCL_PROFILE")
# Of images and builds, which NCCL does not read and nobody means it to.
_BUILD: Final = (
    "NCCL_VERSION", "NCCL_HOME", "NCCL_ROOT", "NCCL_DIR", "NCCL_PATH", "NCCL_LIB", "NCCL_INCLUDE",
    "NCCL_CFLAGS", "NCCL_BUILD", "NCCL_PREFIX", "NCCL_TESTS_",
)  # fmt: skip
# Read by plugins: Google's, Amazon's, Microsoft's, NVIDIA's SHARP.
_PLUGINS: Final = (
    "NCCL_GPUDIRECTTCPX", "NCCL_FASTRAK", "NCCL_SHIMNET", "NCCL_GIB", "NCCL_RAIL", "NCCL_TUNER",
    "NCCL_OFI", "NCCL_SHARP_", "NCCL_PLUGIN", "NCCL_UCX", "NCCL_SPCX", "NCCL_IBEXT", "NCCL_RCCL",
)  # fmt: skip


class Environment:
    """The variables in sight, by value and host, bounded."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._known = {
            name: entry
            for entry in catalogue.entries.get("nccl_variables", {}).values()
            if entry.get("kind") == "variable"
            for name in entry.get("names", ())
        }
        self._overrides = Messages(catalogue, "nccl_overrides")
        self.values: dict[str, dict[str, dict[str | None, int]]] = {}
        self._assigned: dict[str, int] = {}
        self._told: dict[str, Told] = {}

    def info(self, host: str | None, text: str, number: int) -> bool:
        """Take a set-up line; return whether it is about a variable."""
        found = _SET.match(text)
        if found is not None:
            self._add(host, found[1], found[2], number)
            return True
        found = _ASSIGNED.match(text)
        if found is not None:
            self._add(host, found[1], found[2], number)
            if len(self._assigned) < _MOST and not found[1].startswith(_BUILD):
                self._assigned.setdefault(found[1], number)
            return True
        return self._complaint(text, number)

    def value(self, name: str) -> str | None:
        """Return the value of a variable, None if it is not set or differs."""
        values = self.values.get(name, {})
        return next(iter(values)) if len(values) == 1 else None

    def tell(self, hosts: int) -> Iterator[Told]:
        """Yield what the variables in force do.

        Args:
            hosts: number of machines in the log.
        """
        yield from self._told.values()
        for name, values in self.values.items():
            for value, where in values.items():
                for host, number in where.items():
                    line = NcclLine(number, f" {name}={value};", "INFO", host)
                    self._overrides.feed(line)
        yield from self._overrides.tell()
        for name, values in self.values.items():
            if name in _ALIKE and (told := self._differs(name, values, hosts)):
                yield told
        for name, number in self._assigned.items():
            if (told := self._unknown(name, number)) is not None:
                yield told
        if (told := self._rest()) is not None:
            yield told

    def _add(self, host: str | None, name: str, value: str, number: int) -> None:
        if name.startswith(_BUILD) or (name not in self.values and len(self.values) >= _MOST):
            return
        values = self.values.setdefault(name, {})
        value = printable(value, 120)
        if value not in values and len(values) >= 64:
            return
        where = values.setdefault(value, {})
        if len(where) < _MOST:
            where.setdefault(host, number)

    def _complaint(self, text: str, number: int) -> bool:
        found = _INVALID.match(text)
        if found is not None:
            name = found[2] if found[2].startswith("NCCL_") else f"NCCL_{found[2]}"
            self._note(
                f"invalid:{name}", number, "variable_invalid", Severity.LOW,
                f"{name} has the value {printable(found[1], 80)}, which NCCL cannot read: it uses"
                " its"
                f" default, {printable(found[3], 40)}.",
                f"Correct or unset {name}.", {"variable": name},
            )  # fmt: skip
            return True
        found = _UNUSED.match(text)
        if found is not None:
            self._note(
                f"{found[2]}:{found[1]}", number, f"variable_{found[2]}", Severity.LOW,
                f"{found[1]} is {found[2]} in this version of NCCL"
                + ("; setting it has no effect." if found[2] == "unused" else "."),
                f"Remove {found[1]}; gpuwhy decode {found[1]} says what took its place.",
                {"variable": found[1]},
            )  # fmt: skip
        return found is not None

    def _note(
        self,
        key: str,
        number: int,
        id_: str,
        severity: Severity,
        says: str,
        action: str,
        data: dict[str, Any],
        errata: tuple[str, ...] = (),
    ) -> None:
        if len(self._told) < _MOST:
            self._told.setdefault(
                key,
                Told(
                    ORDER["note"],
                    number,
                    Finding(
                        "nccl", id_, severity, says, action, None, number, None, data, errata,
                        (_SOURCE,),
                    ),
                ),
            )  # fmt: skip

    def _differs(
        self, name: str, values: Mapping[str, Mapping[str | None, int]], hosts: int
    ) -> Told | None:
        """A variable that must be the same on all ranks is not."""
        by_host = {v: [h for h in where if h] for v, where in values.items()}
        everywhere = {h for found in by_host.values() for h in found}
        if len(values) > 1 and len(everywhere) > 1:
            said = "; ".join(f"{v} on {_few(found)}" for v, found in by_host.items() if found)
        elif len(values) == 1 and hosts > 1 and 0 < len(everywhere) < hosts <= _MOST:
            # Rank 0 alone reads some variables: that is no difference.
            return None
        else:
            return None
        number = min(n for where in values.values() for n in where.values())
        return Told(
            ORDER["root"],
            number,
            Finding(
                kind="nccl",
                id="variables_differ",
                severity=Severity.HIGH,
                says=(
                    f"{name} differs between hosts: {said}. Ranks that choose sizes, channels or"
                    " networks differently do not fit each other: errors about sizes, or a hang."
                ),
                action=(
                    "Set it alike everywhere, best nowhere; mpirun needs -x NAME, and"
                    " /etc/nccl.conf or ~/.nccl.conf of one node may add it."
                ),
                entity=None,
                line=number,
                cause="collective_mismatch",
                data={"variable": name, "values": {v: sorted(f)[:64] for v, f in by_host.items()}},
                sources=(_SOURCE,),
            ),
        )

    def _unknown(self, name: str, number: int) -> Told | None:
        entry = self._known.get(name)
        facts = entry.get("facts", {}) if entry else {}
        errata: tuple[str, ...] = ()
        if entry is not None and facts.get("real") is False:
            text = " ".join(str(entry["text"]).split())
            says = f"{name} does not exist: NCCL ignores it silently. {text}"
            errata = errata_of(entry)
        elif entry is not None and "removed_in" in facts:
            says = f"{name} was removed in NCCL {facts['removed_in']}: it has no effect."
        elif entry is None and name.startswith("NCCL_") and not name.startswith(_PLUGINS):
            near = nearest(name, self._known, 1)
            says = (
                f"{name} is not among the variables that NCCL is known to read; it ignores names"
                " that"
                " it does not know silently." + (f" Did you mean {near[0]}?" if near else "")
            )
        else:
            return None
        data: dict[str, Any] = {"variable": name, "known": entry is not None}
        return Told(
            ORDER["note"],
            number,
            Finding(
                kind="nccl",
                id="variable_without_effect",
                severity=Severity.LOW,
                says=says,
                action=(
                    "Remove it. What NCCL did read stands in its log with NCCL_DEBUG=INFO, as"
                    ' "set by environment".'
                ),
                entity=None,
                line=number,
                cause=None,
                data=data,
                errata=errata,
                sources=(_SOURCE,),
            ),
        )

    def _rest(self) -> Told | None:
        """Say which overrides are in force, and which of them NVIDIA calls debugging settings."""
        shown = {
            n: next(iter(v))
            for n, v in self.values.items()
            if not n.startswith(_QUIET)
            and (self._known.get(n, {}).get("facts") or {}).get("real") is not False
        }
        if not shown:
            return None
        debugging = [
            n for n in shown
            if (self._known.get(n, {}).get("facts") or {}).get("production") is False
        ]  # fmt: skip
        number = min(
            n for v in self.values.values() for where in v.values() for n in where.values()
        )
        listed = ", ".join(f"{n}={v}" for n, v in list(shown.items())[:16])
        says = f"Variables of NCCL in force: {listed}"
        says += f" and {len(shown) - 16} more." if len(shown) > 16 else "."
        if debugging:
            says += (
                f" NVIDIA files {', '.join(debugging[:8])} under debugging: fine for an"
                " experiment, not for production."
            )
        return Told(
            ORDER["note"],
            number,
            Finding(
                kind="nccl",
                id="environment",
                severity=Severity.INFO,
                says=says,
                action=(
                    "Keep those with an owner and a reason; delete the others and hold nccl-tests"
                    " before and after against each other."
                ),
                entity=None,
                line=number,
                cause=None,
                data={
                    "variables": dict(list(shown.items())[:64]),
                    "debugging_only": debugging[:64],
                },
                sources=(_SOURCE,),
            ),
        )


def _few(hosts: list[str]) -> str:
    shown = sorted(hosts)[:3]
    return ", ".join(shown) + (f" and {len(hosts) - 3} more" if len(hosts) > 3 else "")
