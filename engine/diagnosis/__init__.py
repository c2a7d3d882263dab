"""Diagnosis: observe, infer, rank, explain. `Engine` is the public face."""

from engine.diagnosis.engine import DEFAULT_WINDOW_S, Engine

__all__ = ["DEFAULT_WINDOW_S", "Engine"]
