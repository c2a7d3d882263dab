"""Shapes of readings: scrape times with gaps, noise that remembers, gauges and counters."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from engine.samples import Floats, RawSeries
from engine.simulate.scenarios.base import AT

# What people set as scrape_interval (s); dcgm-exporter's chart has 15, Prometheus' default is 60.
STEPS_S = (10.0, 15.0, 30.0, 60.0)
# Readings begin before the usual window of 15 minutes, as they do on a server.
SPAN_S = 1800.0


def scrapes(
    rng: np.random.Generator,
    *,
    span_s: float = SPAN_S,
    step_s: float | None = None,
    missing: float = 0.02,
    end: float = AT,
) -> Floats:
    """Return the times (Unix s, ascending, whole milliseconds) at which one exporter was scraped.

    Args:
        rng: where chance comes from.
        span_s: how far back the first scrape is (s).
        step_s: scrape interval (s); None takes one of `STEPS_S`.
        missing: share of scrapes that failed; the newest one never does.
        end: the newest scrape is less than one interval before this (Unix s).
    """
    step = step_s if step_s is not None else float(rng.choice(STEPS_S))
    count = max(int(span_s // step), 1)
    phase = rng.uniform(0.0, step)
    jitter = rng.normal(0.0, 0.01, count).clip(-0.03, 0.03)
    ts: Floats = end - phase - step * np.arange(count - 1, -1, -1.0) + jitter
    ts = np.minimum(ts, end)
    keep = rng.random(count) >= missing
    keep[-1] = True
    kept: Floats = np.round(ts[keep], 3)
    return kept


def wobble(rng: np.random.Generator, n: int, sd: float, memory: float = 0.6) -> Floats:
    """Return n values of first-order autoregressive noise around 0 with standard deviation sd."""
    steps = rng.normal(0.0, sd * np.sqrt(1.0 - memory * memory), n)
    out = np.empty(n)
    level = rng.normal(0.0, sd)
    for k in range(n):
        level = memory * level + steps[k]
        out[k] = level
    return out


def noisy(
    rng: np.random.Generator, base: Floats | float, n: int, sd: float, *, lo: float = 0.0,
    hi: float = np.inf,
) -> Floats:  # fmt: skip
    """Return base plus noise, held within ``[lo, hi]``."""
    return np.clip(base + wobble(rng, n, sd), lo, hi)


def ratio(rng: np.random.Generator, base: Floats | float, n: int, spread: float = 0.06) -> Floats:
    """Return a share of time 0 to 1 around base; noise shrinks towards both ends, as in life."""
    level = np.broadcast_to(np.asarray(base, dtype=np.float64), (n,))
    sd = spread * np.sqrt(np.clip(level * (1.0 - level), 0.0, 0.25)) * 2.0
    return np.clip(level + wobble(rng, n, 1.0) * sd, 0.0, 1.0)


def counter(
    rng: np.random.Generator, ts: Floats, per_s: Floats | float, *, start: float = 0.0,
    whole: bool = False, reset_at: float | None = None,
) -> Floats:  # fmt: skip
    """Return a cumulative counter that grows by ``per_s`` (units a second) on average.

    Args:
        rng: where chance comes from.
        ts: times (Unix s).
        per_s: rate, one figure or one for each time.
        start: value at the first time.
        whole: True counts events (Poisson), False something continuous, two per cent noise.
        reset_at: the counter starts again from 0 at this moment (Unix s).
    """
    rate = np.broadcast_to(np.asarray(per_s, dtype=np.float64), ts.shape)
    gone = np.diff(ts, prepend=ts[:1]) * rate
    if whole:
        added = rng.poisson(np.maximum(gone, 0.0)).astype(np.float64)
    else:
        added = gone * np.maximum(1.0 + rng.normal(0.0, 0.02, ts.size), 0.0)
    out = start + np.cumsum(added)
    if reset_at is not None and (after := ts >= reset_at).any():
        first = int(np.argmax(after))
        out[first:] -= out[first - 1] if first else out[0]
    return out


def since(ts: Floats, moment: float, before: float, after: float) -> Floats:
    """Return ``before`` for times earlier than a moment (Unix s), ``after`` from then on."""
    return np.where(ts < moment, before, after)


def series(name: str, labels: Mapping[str, str], ts: Floats, values: Floats | float) -> RawSeries:
    """Return one series; a single value is repeated, and NaN means that a sample is missing."""
    full = np.array(np.broadcast_to(np.asarray(values, dtype=np.float64), ts.shape))
    there = ~np.isnan(full)
    return RawSeries(name, dict(labels), ts[there], full[there])
