"""Fuzzing of the readers: mutated samples, with what must hold for every answer."""
