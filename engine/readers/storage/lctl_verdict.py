"""What Lustre parameters show: connections to servers, and what Lustre says of its own health."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from engine.model import Finding, Severity
from engine.readers.listing import at, finding, node
from engine.readers.quantities import decimal, integer, listed, median, plural
from engine.readers.storage.lctl_counters import judge_rpcs, judge_settings, judge_statistics
from engine.readers.storage.lctl_parameter import SOURCES, Parameter
from engine.units import number

# An idle connection is dropped by design and made again on demand (2.12 and newer).
_SOUND: Final = frozenset({"FULL", "IDLE"})
_STATES: Final = {
    "EVICTED": (
        "the server has thrown this client out: reads and writes fail with EIO until it is back"
    ),
    "DISCONN": "the connection to the server is lost: I/O to it waits",
    "CONNECTING": "the client tries to connect: I/O to it waits",
    "CLOSED": "the connection is closed",
    "NEW": "it has never been connected",
    "RECOVER": "the server recovers: I/O waits until it is done",
    "REPLAY": "the client replays its requests after a server's restart: I/O waits",
    "REPLAY_LOCKS": "the client replays its locks after a server's restart: I/O waits",
    "REPLAY_WAIT": "the server waits for other clients to replay: I/O waits",
}
# A server's mean answer so far above its siblings' is named: ours.
_SLOWER, _SLOW_US = 10, 50_000


def judge_parameters(parameters: Sequence[Parameter]) -> list[Finding]:
    """Say what parameters show, by kind."""
    by_name: dict[str, list[Parameter]] = {}
    for one in parameters:
        by_name.setdefault(one.name, []).append(one)
    found = [
        *_imports([p for p in parameters if p.name in ("import", "state") and p.lines]),
        *_health(by_name.get("health_check", [])),
        *judge_rpcs(by_name.get("rpc_stats", [])),
        *judge_statistics([p for p in parameters if p.name in ("stats", "md_stats")]),
    ]
    settings = [p for p in parameters if p.value and p.name != "health_check"]
    if settings:
        found.append(judge_settings(settings))
    return found


def _imports(imports: Sequence[Parameter]) -> Iterable[Finding]:
    states: dict[str, list[Parameter]] = {}
    for one in imports:
        state = (one.pair("state") or one.pair("current_state") or "").upper()
        if state:
            states.setdefault(state, []).append(one)
    bad = {s: held for s, held in states.items() if s not in _SOUND}
    for state, held in bad.items():
        first = held[0]
        names = list(dict.fromkeys(p.target for p in held))
        yield finding(
            "lctl",
            "import_" + re.sub(r"[^a-z_]", "", state.lower()),
            Severity.HIGH,
            f"{at(first.host)}{listed(names)}: import state {state[:16]}: "
            f"{_STATES.get(state, 'not connected')}.",
            "dmesg -T | grep -i lustre (was evicted, Connection to … was lost), lctl ping NID of "
            "the server; then the network port and the server itself.",
            line=first.line,
            cause="storage_slow",
            data={
                "state": state[:16],
                "targets": names[:64],
                "connected": len(states.get("FULL", [])),
                "timeouts": integer(first.pair("timeouts") or ""),
            },
            entity=node(first.host),
            sources=SOURCES,
        )
    yield from _slow_server(imports)
    if states and not bad:
        count = sum(map(len, states.values()))
        yield finding(
            "lctl",
            "imports",
            Severity.INFO,
            f"{at(imports[0].host)}{plural(count, 'connection')} to Lustre servers "
            f"({listed(f'{len(v)} {s}' for s, v in states.items())}): none is lost."
            + (" IDLE is dropped by design and made again on demand." if "IDLE" in states else ""),
            "Nothing to do here.",
            line=imports[0].line,
            data={"states": {s: len(v) for s, v in states.items()}},
            entity=node(imports[0].host),
            sources=SOURCES,
        )


def _slow_server(imports: Sequence[Parameter]) -> Iterable[Finding]:
    waits = {
        p.target: w
        for p in imports
        if (w := decimal((p.pair("avg_waittime") or "").partition(" ")[0])) is not None
    }
    middle = median(list(waits.values()))
    slow = {t: w for t, w in waits.items() if w >= max(_SLOWER * middle, _SLOW_US)}
    if not slow or len(waits) < 4:
        return
    worst = max(slow, key=lambda t: slow[t])
    first = next(p for p in imports if p.target == worst)
    yield finding(
        "lctl",
        "server_slow",
        Severity.MEDIUM,
        f"{at(first.host)}{listed(f'{t} ({number(w / 1000)} ms)' for t, w in slow.items())} "
        f"answers on average far later than the other servers ({number(middle / 1000)} ms).",
        "Look at that server: its disks (a rebuild, a full target), load, and its network port.",
        line=first.line,
        cause="storage_slow",
        data={"target": worst, "avg_waittime_ms": slow[worst] / 1000, "median_ms": middle / 1000},
        entity=node(first.host),
        sources=SOURCES,
    )


def _health(checks: Sequence[Parameter]) -> Iterable[Finding]:
    for one in checks:
        text = " ".join([one.value, *one.lines]).strip().lower()
        sound = text.startswith("healthy")
        yield finding(
            "lctl",
            "health_check",
            Severity.INFO if sound else Severity.HIGH,
            f"{at(one.host)}Lustre says of itself: {'healthy' if sound else 'NOT healthy'}."
            + ("" if sound else " A target has failed or the module has hit a bug (LBUG)."),
            "Nothing to do."
            if sound
            else "dmesg -T | grep -i lustre for the target; an LBUG needs a reboot of that host.",
            line=one.line,
            cause=None if sound else "storage_slow",
            data={"healthy": sound},
            entity=node(one.host),
            sources=SOURCES,
        )
