"""Randomness as a pure function of (seed, channel, entity, step): no generator carries state.

Every draw is a hash of its coordinates, so a reading does not depend on who asked before, on how
many other GPUs there are, or on the order in which blocks of time are computed. Only integer
arithmetic and exact scaling are used: the same bytes come out on every platform.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Words = npt.NDArray[np.uint64]

_MASK = (1 << 64) - 1
# Constants of the SplitMix64 generator (Steele, Lea, Flood, OOPSLA 2014).
_GOLDEN = 0x9E3779B97F4A7C15
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_STRIDE = np.uint64(0xD6E8FEB86659FD93)


def entity_id(name: str) -> int:
    """Return the 64-bit number that stands for an entity's name in every draw."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")


def entity_ids(names: list[str]) -> Words:
    """Return `entity_id` of each name, uint64[n]."""
    return np.array([entity_id(name) for name in names], dtype=np.uint64)


def _mix(word: Words) -> Words:
    word = (word ^ (word >> np.uint64(30))) * _MIX_1
    word = (word ^ (word >> np.uint64(27))) * _MIX_2
    return word ^ (word >> np.uint64(31))


def _words(seed: int, channel: str, entities: Words, steps: Ints) -> Words:
    """Return hashed words, uint64[steps, entities]."""
    key = np.uint64((seed * _GOLDEN + entity_id(channel)) & _MASK)
    per_entity = _mix(entities ^ key)
    per_step = steps.astype(np.uint64) * _STRIDE
    return _mix(per_entity[None, :] + per_step[:, None])


def uniform(seed: int, channel: str, entities: Words, steps: Ints) -> Floats:
    """Return independent numbers in [0, 1), float64[steps, entities]."""
    words = _words(seed, channel, entities, steps) >> np.uint64(11)
    return np.asarray(words.astype(np.float64) * 2.0**-53, dtype=np.float64)


def constant(seed: int, channel: str, entities: Words) -> Floats:
    """Return one number in [0, 1) per entity that never changes, float64[entities]."""
    return uniform(seed, channel, entities, np.zeros(1, dtype=np.int64)).reshape(-1)


def normal(seed: int, channel: str, entities: Words, steps: Ints) -> Floats:
    """Return roughly normal numbers, mean 0, deviation 1, bounded by 3.47, [steps, entities].

    The sum of four 16-bit uniforms (Irwin-Hall): bounded, so that noise alone never breaks a
    physical limit, and exact, unlike a logarithm.
    """
    words = _words(seed, channel, entities, steps)
    total: Floats = np.zeros(words.shape)
    for shift in (0, 16, 32, 48):
        total += ((words >> np.uint64(shift)) & np.uint64(0xFFFF)).astype(np.float64)
    return np.asarray((total / 65536.0 - 2.0) * 3.0**0.5, dtype=np.float64)


def smooth(seed: int, channel: str, entities: Words, steps: Ints, period: int) -> Floats:
    """Return noise in [-1, 1] that wanders over ``period`` steps, float64[steps, entities]."""
    knots, where = np.unique(steps // period, return_inverse=True)
    left = uniform(seed, channel, entities, knots)[where]
    right = uniform(seed, channel, entities, knots + 1)[where]
    part = (steps % period) / period
    blend = (part * part * (3.0 - 2.0 * part))[:, None]
    return 2.0 * (left + (right - left) * blend) - 1.0
