"""Mask secrets in text that people paste, before it is repeated or kept.

What is masked: tokens and keys by their known shapes (GitHub, Slack, AWS, Google, Hugging Face,
OpenAI, Weights & Biases, NVIDIA NGC, JSON Web Tokens, PEM private keys), what stands after
``password=``, ``Authorization:`` and the like, passwords in URLs, e-mail addresses, and public
network addresses. Private addresses (RFC 1918, RFC 6598, link-local, unique local, loopback) stay:
which peer does not answer is what an answer is about. So do PCI addresses, UUIDs and MAC-like GUIDs
of host adapters.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from re import Match

_SHAPES = (
    r"gh[pousr]_[A-Za-z0-9]{20,255}",
    r"github_pat_[A-Za-z0-9_]{20,255}",
    r"glpat-[A-Za-z0-9_-]{20,64}",
    r"xox[abeprs]-[A-Za-z0-9-]{10,250}",
    r"xapp-\d-[A-Za-z0-9-]{10,250}",
    r"(?:AKIA|ASIA)[0-9A-Z]{16}",
    r"AIza[0-9A-Za-z_-]{35}",
    r"ya29\.[0-9A-Za-z_-]{20,400}",
    r"hf_[A-Za-z0-9]{20,64}",
    r"sk-(?:[A-Za-z0-9]{2,12}-)?[A-Za-z0-9_-]{20,200}",
    r"nvapi-[A-Za-z0-9_-]{20,128}",
    r"glsa_[A-Za-z0-9_]{20,64}",
    r"npm_[A-Za-z0-9]{36}",
    r"pypi-[A-Za-z0-9_-]{50,250}",
    r"eyJ[A-Za-z0-9_-]{10,2000}\.eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{5,1000}",
    r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,64}",
    r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,120}",
    r"hv[sb]\.[A-Za-z0-9_-]{20,200}",
    r"\d{8,12}:AA[A-Za-z0-9_-]{30,40}",
    r"https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/_-]{10,200}",
)
_TOKEN = re.compile(r"(?<![A-Za-z0-9_-])(?:" + "|".join(_SHAPES) + r")")
_PEM = re.compile(
    r"-----BEGIN ([A-Z ]{0,40}PRIVATE KEY)-----[A-Za-z0-9+/=\s:,-]{0,20000}(?:-----END \1-----)?"
)
# A name that ends in one of these, then = or :, then the secret.
_NAMED = re.compile(
    r"""(?ix)
    \b((?:[a-z0-9]{1,24}[_.-]){0,6}
       (?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key|access[_-]?key(?:[_-]id)?|private[_-]?key
         |private[_-]?key[_-]id|account[_-]?key|sig|cookie|credentials?|auth(?:orization)?[_-]?token|session[_-]?key|client[_-]?secret)
     ["']?\s{0,3}[=:]\s{0,3}["']?)
    (?!\s|\[redacted)([^\s"',;]{3,512})
    """
)
_OPTION = re.compile(
    r"(?i)(?<![\w-])(--?(?:[a-z0-9]{1,24}-){0,3}(?:password|passwd|passphrase|secret|token)\s{1,3})"
    r"([^\s\"';]{3,512})"
)
_HEADER = re.compile(
    r"(?i)\b((?:proxy-)?authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token|digest)?)"
    r"\s{1,3}(?!(?:bearer|basic|token|digest)\b)([A-Za-z0-9._~+/=-]{6,4096})"
)
_BEARER = re.compile(r"(?i)\b(bearer)\s{1,3}([A-Za-z0-9._~+/=-]{16,4096})")
# The last @ before a slash ends the login: a password may hold others.
_URL_LOGIN = re.compile(r"(?i)\b([a-z][a-z0-9+.-]{1,20}://)[^\s/@:]{0,128}:[^\s/]{1,256}@")
_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}"
    r"(?:\.[A-Za-z0-9-]{1,63}){0,6}\.[A-Za-z]{2,24}\b"
)
_V4 = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.]*\d)")
_V6 = re.compile(r"(?<![0-9A-Za-z:.])(?:[0-9A-Fa-f]{1,4}:){2,7}:?[0-9A-Fa-f:]{0,39}(?![0-9A-Za-z])")
# Words and shapes without which nothing but an address is a secret.
_HINT = re.compile(
    r"(?i)@|gh[pousr]_|glpat-|xox|xapp-|AKIA|ASIA|AIza|ya29|hf_|sk-|nvapi|glsa_|npm_|pypi-|eyJ"
    r"|pass|secret|token|key|credential|authorization|bearer"
)
_MIXED = re.compile(r"[A-Za-z].*\d|\d.*[A-Za-z]")
# So many characters of a secret are no more than a word.
_SHOWN = 6
_CHEAP = re.compile(r"[@=:.-]|_[A-Za-z0-9]|AKIA|ASIA|AIza|eyJ")
# Version numbers look like addresses: "driver 550.54.15.1" has a part over 255 or stands after one
# of these words.
_VERSION = re.compile(r"(?i)(?:version|driver|release|v|nccl|cuda|firmware|vbios|fw)[ :=]{0,3}$")


def redact(text: str) -> str:
    """Return a text with its secrets masked as ``[redacted …]``; other text is left as it is."""
    if not _CHEAP.search(text):
        return text
    if "PRIVATE KEY" in text:
        text = _PEM.sub("[redacted key]", text)
    text = _URL_LOGIN.sub(r"\1[redacted]@", text)
    text = _HEADER.sub(r"\1 [redacted]", text)
    text = _TOKEN.sub("[redacted token]", text)
    text = _NAMED.sub(_named, text)
    text = _OPTION.sub(_named, text)
    text = _BEARER.sub(r"\1 [redacted]", text)
    if "@" in text:
        text = _EMAIL.sub("[redacted e-mail]", text)
    text = _V4.sub(_address, text)
    return _V6.sub(_address, text)


def secrets_in(text: str) -> set[str]:
    """Return the secrets of a text: what quotes a part of it may repeat the start of one."""
    if not _HINT.search(text):
        return set()
    found = {hit[0] for pattern in (_TOKEN, _EMAIL) for hit in pattern.finditer(text)}
    for pattern in (_NAMED, _OPTION, _HEADER, _BEARER):
        # A plain word after a name is no more of a secret than elsewhere.
        found |= {hit[2] for hit in pattern.finditer(text) if _MIXED.search(hit[2])}
    return {one for one in found if len(one) > _SHOWN}


def without_parts(text: str, secrets: Iterable[str]) -> str:
    """Return a text in which the starts of secrets, of `_SHOWN` characters or more, are masked."""
    for secret in secrets:
        at = text.find(secret[:_SHOWN])
        while at >= 0:
            end = at + _SHOWN
            while end < len(text) and end - at < len(secret) and text[end] == secret[end - at]:
                end += 1
            text = text[:at] + "[redacted]" + text[end:]
            at = text.find(secret[:_SHOWN], at + 1)
    return text


def _named(found: Match[str]) -> str:
    # "max_tokens: 4096", "token: 17 of 20": a short number is a count; PWD=/srv is a folder.
    count = found[2].isdecimal() and len(found[2]) < 8
    folder = "pwd" in found[1].lower() and found[2].startswith(("/", "~"))
    return found[0] if count or folder else f"{found[1]}[redacted]"


def _address(found: Match[str]) -> str:
    try:
        address = ipaddress.ip_address(found[0])
    except ValueError:
        return found[0]
    if not address.is_global or address.is_multicast:
        return found[0]
    if address.version == 4 and _VERSION.search(found.string[: found.start()][-24:]):
        return found[0]
    return "[redacted address]"
