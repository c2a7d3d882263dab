"""Where a service is full: one engine of several, its KV cache."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from engine.model import Entity, Finding, Severity
from engine.readers.serving.advice import BALANCE, more_room
from engine.readers.serving.finding import Limits, finding
from engine.readers.serving.load import Engine, Load
from engine.readers.serving.words import count, engine_words, percent, percent_number

# Use of the cache by no request at all, from which it is told.
_HELD = 0.05


def imbalance(load: Load, limits: Limits) -> Iterator[Finding]:
    """Yield that one engine is full while another could have taken its work."""
    if len(load.engines) < 2:
        return
    engines = [e for e in load.engines.values() if "running" in e.now or "kv_usage" in e.now]
    if len(engines) < 2:
        return
    hot = max(engines, key=_pressure)
    cold = min(engines, key=_pressure)
    full = hot.now.get("kv_usage", 0.0) >= limits["kv_cache_note"]
    queue = hot.now.get("waiting", 0.0) >= limits["queue_waiting"]
    ratio = limits["engine_load_ratio"]
    if not (full or queue) or not _could_take(hot, cold, ratio) or cold.now.get("waiting"):
        return
    yield finding(
        load,
        "engine_imbalance",
        Severity.MEDIUM,
        f"{_cap(hot.called)} is {'full' if full else 'busy'} ({engine_words(hot)}) while "
        f"{cold.called} is nearly empty ({engine_words(cold)}): requests are routed unevenly "
        f"(imbalance between {len(engines)} engines).",
        BALANCE,
        cause="engine_imbalance",
        more={
            "hot_engine": hot.name,
            "cold_engine": cold.name,
            "hot_running": hot.now.get("running"),
            "cold_running": cold.now.get("running"),
            **{
                f"{which}_kv_cache_percent": percent_number(e.now["kv_usage"])
                for which, e in (("hot", hot), ("cold", cold))
                if "kv_usage" in e.now
            },
        },
        sources=limits.source("engine_load_ratio"),
    )


def _pressure(engine: Engine) -> tuple[float, float, float]:
    now = engine.now
    return (now.get("waiting", 0.0), now.get("kv_usage", 0.0), now.get("running", 0.0))


def _could_take(hot: Engine, cold: Engine, ratio: float) -> bool:
    compared = [q for q in ("running", "kv_usage") if q in hot.now and q in cold.now]
    return bool(compared) and all(cold.now[q] < ratio * hot.now[q] for q in compared)


def cache(load: Load, limits: Limits) -> Iterator[Finding]:
    """Yield a KV cache that thrashes or is nearly full."""
    top = load.highest("kv_usage")
    if top is None:
        return
    usage = top[1]
    pressed = usage >= limits["kv_cache_pressure"]
    if load.total("running") == 0 and load.total("waiting") == 0:
        if usage >= _HELD:
            yield _held(load, usage)
    elif pressed and _preempted(load)[0] and _thrashes(load, limits):
        yield _cascade(load, limits)
    elif pressed:
        yield _pressed(load, limits)
    elif usage >= limits["kv_cache_note"]:
        yield finding(
            load,
            "kv_cache_note",
            Severity.INFO,
            f"The KV cache is at {percent(usage)}{_where(load, limits)[0]}: well used, not yet "
            f"under pressure (diagnosed from {percent(limits['kv_cache_pressure'])}).",
            "Watch preemptions and the queue; high use alone is how a loaded server looks.",
            more={"kv_cache_percent": percent_number(usage)},
            sources=limits.source("kv_cache_note"),
        )


def _held(load: Load, usage: float) -> Finding:
    return finding(
        load,
        "kv_cache_held",
        Severity.LOW,
        f"The KV cache is at {percent(usage)} although no request runs or waits: cached prefixes "
        "count as free, so blocks were not given back, or these readings are of two moments.",
        "Send one request and read it again; if it stays, restart the server and upgrade it: "
        "blocks leak.",
        more={"kv_cache_percent": percent_number(usage)},
    )


def _where(load: Load, limits: Limits) -> tuple[str, Entity | None]:
    """Name the engines that are full: one of several by its name, more by their number."""
    several = len(load.engines)
    full = [e for e, value in load.having("kv_usage") if value >= limits["kv_cache_pressure"]]
    if several < 2:
        return "", load.entity
    if len(full) > 1:
        return f" at most, {len(full)} of {several} engines are full", load.entity
    top = load.highest("kv_usage")
    return (f" on {top[0].called}", load.one(top[0])) if top else ("", load.entity)


def _facts(load: Load) -> dict[str, Any]:
    top = load.highest("kv_usage")
    more: dict[str, Any] = {"kv_cache_percent": percent_number(top[1])} if top else {}
    if load.total("preemptions") is not None:
        more["preemptions"] = int(_preempted(load)[0])
    return more


def _cascade(load: Load, limits: Limits) -> Finding:
    top, waiting = load.highest("kv_usage"), load.total("waiting") or 0.0
    where, entity = _where(load, limits)
    if load.total("swapped"):
        again = "swapped out or computed again later"
    else:
        again = "prefilled again later"
        again += " (V1 of vLLM always recomputes)" if load.server == "vllm" else ""
    return finding(
        load,
        "kv_cache_cascade",
        Severity.HIGH,
        f"The KV cache is full ({percent(top[1] if top else 1.0)}{where}) and "
        f"{_preempted(load)[1]}: requests are thrown out of the batch and {again}, which costs "
        f"throughput and stalls answers under way. {count(waiting, 'request')} "
        f"{'waits' if waiting == 1 else 'wait'}.",
        more_room(load.server),
        cause="kv_cache_cascade",
        entity=entity,
        more=_facts(load),
        sources=limits.source("kv_cache_pressure", "preempted_share"),
    )


def _pressed(load: Load, limits: Limits) -> Finding:
    top, waiting = load.highest("kv_usage"), load.total("waiting") or 0.0
    where, entity = _where(load, limits)
    waits = f" and {count(waiting, 'request')} {_be(waiting)} waiting" if waiting else ""
    preempted, how = _preempted(load)
    seen = f" {_cap(how)}." if preempted else ""
    if not preempted and load.total("preemptions") is not None:
        seen = " No preemption is counted."
    return finding(
        load,
        "kv_cache_pressure",
        Severity.MEDIUM if waiting >= limits["queue_waiting"] else Severity.LOW,
        f"The KV cache is at {percent(top[1] if top else 1.0)}{where}{waits}: near its end, new "
        f"requests have to wait for blocks, and {_thrown(load)} begins when none is free.{seen}",
        more_room(load.server),
        cause="kv_cache_pressure",
        entity=entity,
        more=_facts(load),
        sources=limits.source("kv_cache_pressure"),
    )


def _be(value: float) -> str:
    return "is" if value == 1 else "are"


def _thrown(load: Load) -> str:
    return "retraction" if load.server == "sglang" else "preemption"


def _preempted(load: Load) -> tuple[float, str]:
    """How many requests were preempted, and that as the end of a sentence."""
    grown = load.growth("preemptions")
    total = grown if grown is not None else (load.total("preemptions") or 0.0)
    now, swapped = load.total("retracted_now") or 0.0, load.total("swapped") or 0.0
    if now and not total:
        verb = "is" if now == 1 else "are"
        return now, f"{count(now, 'request')} {verb} retracted or paused at this moment"
    if swapped and not total:
        verb = "is" if swapped == 1 else "are"
        return swapped, f"{count(swapped, 'request')} {verb} swapped out at this moment"
    verb = "was" if total == 1 else "were"
    return total, f"{count(total, 'preemption')} {verb} counted {load.since}"


def _thrashes(load: Load, limits: Limits) -> bool:
    """Preemptions of now, as far as one scrape can tell: many per request, or with a queue."""
    now = (load.total("retracted_now") or 0.0) + (load.total("swapped") or 0.0)
    if load.growth("preemptions") is not None or now:
        return bool(load.growth("preemptions") or now)
    finished = load.total("finished")
    if finished:
        return (load.total("preemptions") or 0.0) >= limits["preempted_share"] * finished
    return bool(load.total("waiting"))


def _cap(text: str) -> str:
    return text[:1].upper() + text[1:]
