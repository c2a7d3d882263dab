"""Faults of memory, device, driver and firmware. Xids as in NVIDIA's catalogue."""

from __future__ import annotations

import numpy as np

from engine.simulate.environment import GONE, XID_ONLY, Environment
from engine.simulate.faults import Effect, Span

# After Xid 79 the host engine keeps the last Xid for a while before the GPU is dropped.
_OFF_BUS_LINGERS_S = 60.0
# A program that was killed is started again by its scheduler after this long.
_RESTART_S = 60.0


def _stopped(env: Environment, span: Span) -> None:
    """No work any more: the channel is gone and the GPU waits for somebody."""
    span.set(env.work, 0.0)


def _restarted(env: Environment, span: Span) -> None:
    """The program dies, and a new one starts a minute later."""
    span.scale(env.work, np.where(span.age < _RESTART_S, 0.0, 1.0))


def _needs_reset(env: Environment, span: Span) -> None:
    _stopped(env, span)
    span.set(env.recovery, 1.0)


def _ecc_uncorrectable(env: Environment, span: Span) -> None:
    _restarted(env, span)
    span.add(env.dbe, 1.0 + np.floor(3.0 * span.severity))
    span.add(env.remap_u, 1.0)
    span.set(env.remap_pending, 1.0)
    span.set(env.recovery, 1.0)


def _ecc_contained(env: Environment, span: Span) -> None:
    _restarted(env, span)
    span.add(env.dbe, 1.0)
    span.add(env.remap_u, 1.0)
    span.set(env.remap_pending, 1.0)


def _ecc_uncontained(env: Environment, span: Span) -> None:
    _needs_reset(env, span)
    span.add(env.dbe, 2.0)
    span.set(env.sram_exceeded, 1.0 if span.severity >= 0.75 else 0.0)


def _ecc_correctable_storm(env: Environment, span: Span) -> None:
    span.set(env.sbe_rate, 0.5 + 19.5 * span.severity)
    span.add(env.remap_c, np.floor(span.age / 300.0))


def _row_remap_pending(env: Environment, span: Span) -> None:
    span.add(env.remap_c, 1.0)
    span.set(env.remap_pending, 1.0)


def _row_remap_failure(env: Environment, span: Span) -> None:
    span.set(env.remap_failure, 1.0)
    span.set(env.banks_none, np.ceil(2.0 * span.severity))
    span.set(env.unrepairable, 1.0 if span.severity >= 0.75 else 0.0)
    span.add(env.remap_u, 8.0)


def _gpu_off_bus(env: Environment, span: Span) -> None:
    # In over half of such failures no Xid is seen at all (severity below 0.5 here).
    lingers = np.where(span.age < _OFF_BUS_LINGERS_S, XID_ONLY, GONE)
    span.set(env.sight, lingers if span.severity >= 0.5 else GONE)
    _stopped(env, span)


def _gsp_failure(env: Environment, span: Span) -> None:
    # DCGM gives blanks for the GPU until its host engine restarts.
    span.set(env.sight, XID_ONLY)
    _needs_reset(env, span)


EFFECTS = {
    "ecc_uncorrectable": Effect(_ecc_uncorrectable, xid=48),
    "ecc_contained": Effect(_ecc_contained, xid=94),
    "ecc_uncontained": Effect(_ecc_uncontained, xid=95),
    "ecc_correctable_storm": Effect(_ecc_correctable_storm, xid=92),
    "row_remap_pending": Effect(_row_remap_pending, xid=63),
    "row_remap_failure": Effect(_row_remap_failure, xid=64),
    "gpu_off_bus": Effect(_gpu_off_bus, xid=79),
    "gsp_failure": Effect(_gsp_failure, xid=119),
    "gpu_needs_reset": Effect(_needs_reset, xid=110),
    "driver_or_firmware_xid": Effect(_restarted, xid=39),
    "firmware_hang": Effect(_needs_reset, xid=62),
    "queue_hang_reset": Effect(_restarted, xid=109),
    "app_fault_xid": Effect(_restarted, xid=31),
}
