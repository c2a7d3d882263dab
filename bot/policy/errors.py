"""The error of an actor who may not do what was asked."""

from __future__ import annotations

from engine.errors import GpuwhyError


class RefusedError(GpuwhyError):
    """Policy does not allow this use."""

    default_code = "refused"
