"""Mutations that logs meet in life, and some that only an attacker makes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

_DIGITS = b"0123456789"
_TOKENS = (
    b"-1", b"0", b"18446744073709551615", b"9" * 400, b"0x", b"0xFFFFFFFFFFFFFFFF", b"NaN", b"inf",
    b"-", b"N/A", b"[Not Supported]", b"1e309", "\u0661\u0662".encode(), b"%", b"(null)", b"\xff",
    b"\x00", b"\x1b[31m", b"\r", b"{", b"}", b"[" * 50, b'"', b"\\", b": ", b",", b"|", b"=", b"\t",
    b"/" * 40, b"../..", b"<!channel>", b"$(id)", "\u202e".encode(), b" " * 300,
)  # fmt: skip

Random = random.Random


def mutate(rng: Random, samples: Sequence[bytes]) -> bytes:
    """Return one input: a sample or two, changed a few times."""
    raw = rng.choice(samples)
    if rng.random() < 0.3:
        raw = _interleaved(rng, raw, rng.choice(samples))
    for _ in range(rng.randint(1, 6)):
        raw = rng.choice(_CHANGES)(rng, raw)
    return raw[:200_000]


def _cut(rng: Random, raw: bytes) -> bytes:
    a = rng.randint(0, len(raw))
    return raw[:a] if rng.random() < 0.5 else raw[a:]


def _drop(rng: Random, raw: bytes) -> bytes:
    a = rng.randint(0, len(raw))
    return raw[:a] + raw[a + rng.randint(1, 40) :]


def _double(rng: Random, raw: bytes) -> bytes:
    a = rng.randint(0, len(raw))
    b = min(len(raw), a + rng.randint(1, 200))
    return raw[:b] + raw[a:b] * rng.randint(1, 3) + raw[b:]


def _token(rng: Random, raw: bytes) -> bytes:
    a = rng.randint(0, len(raw))
    return raw[:a] + rng.choice(_TOKENS) + raw[a + rng.randint(0, 6) :]


def _number(rng: Random, raw: bytes) -> bytes:
    """Replace one number in the text."""
    places = [i for i in range(len(raw)) if raw[i : i + 1] in _DIGITS and raw[i - 1 : i] != b"."]
    if not places:
        return raw
    a = b = rng.choice(places)
    while b < len(raw) and raw[b : b + 1] in _DIGITS:
        b += 1
    new = rng.choice([b"0", b"1", b"-5", b"99999999999999999999", str(rng.random()).encode(), b""])
    return raw[:a] + new + raw[b:]


def _flip(rng: Random, raw: bytes) -> bytes:
    if not raw:
        return raw
    a = rng.randrange(len(raw))
    return raw[:a] + bytes([raw[a] ^ (1 << rng.randrange(8))]) + raw[a + 1 :]


def _shuffle(rng: Random, raw: bytes) -> bytes:
    lines = raw.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines)


def _lines(rng: Random, raw: bytes) -> bytes:
    """Leave out, repeat or truncate lines."""
    out: list[bytes] = []
    for line in raw.split(b"\n"):
        dice = rng.random()
        if dice < 0.1:
            continue
        out.append(line[: rng.randint(0, len(line))] if dice < 0.2 else line)
        if dice > 0.95:
            out.append(line)
    return b"\n".join(out)


def _ends(_: Random, raw: bytes) -> bytes:
    return raw.replace(b"\n", b"\r\n")


def _prefix(rng: Random, raw: bytes) -> bytes:
    prefix = rng.choice(
        [b"> ", b"| ", b"node-3: ", b"Nov 29 03:12:01 node-3 kernel: ", b"\t", b"0: "]
    )
    return b"\n".join(prefix + line for line in raw.split(b"\n"))


def _spaces(rng: Random, raw: bytes) -> bytes:
    return raw.replace(b" ", rng.choice([b"  ", b"", b"\t", "\u00a0".encode()]))


def _utf16(_: Random, raw: bytes) -> bytes:
    return raw.decode("utf-8", "replace").encode("utf-16")


def _interleaved(rng: Random, one: bytes, other: bytes) -> bytes:
    """Mix the lines of two samples, each in its order, as ranks do."""
    left, right = one.split(b"\n")[:400], other.split(b"\n")[:400]
    out: list[bytes] = []
    while left or right:
        take = left if left and (not right or rng.random() < 0.5) else right
        out.append(take.pop(0))
    return b"\n".join(out)


_CHANGES: tuple[Callable[[Random, bytes], bytes], ...] = (
    _cut, _drop, _drop, _double, _token, _token, _token, _number, _number, _number, _flip, _shuffle,
    _lines, _lines, _ends, _prefix, _spaces, _utf16,
)  # fmt: skip
