"""Surfaces: where questions come in and answers go out. Heavy imports happen inside only."""
