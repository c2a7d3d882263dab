"""Tell lines that talk about a message from lines that are one.

Documentation, source code and notes on GPUs are full of error messages that nobody met: in inline
code and quotation marks within a sentence, in headings and tables, in string literals. A log prints
its messages bare. A short text is somebody's question, and what it quotes is what they met.
"""

from __future__ import annotations

import re
from typing import Final

LONG: Final = 40
"""A text of more lines is no question: what its sentences quote, they only mention."""

_STATEMENT = (
    r"return\b.{0,200};|(?:\}\s{0,4})?(?:else )?(?:if|while|for|switch|catch) ?\("
    r"|case .{1,200}:\s*$"
    r"|#\s?(?:define|include|if|ifdef|ifndef|elif|pragma)\b"
    r"|(?:static|const|constexpr|extern|typedef|enum|struct|auto|void|int|char|bool|let|var|func|fn"
    r"|public|private)\b.{0,300}[;{=(,]\s*\\?$"
    r"|(?:async )?(?:def|class) \w.{0,300}[:(,]\s*$|(?:from [\w.]{1,80} )?import [\w{(*]"
    r"|(?:raise|throw(?: new)?|assert|elif|except|with|if) .{0,300}[({:\[\"'|]\s*$"
    r"|(?:raise|throw new|assert|elif) .{0,300}[)\]}\"'];?\s*$"
    r"|(?:self\.)?(?:assert|require|expect|fmt|slog|klog|log|logger|logging|console|pytest|std)"
    r"(?:\.|::)\w{1,40}\("
    r"|(?:f|s|sn|std::)?print(?:f|ln)?\("
    r"|(?:WARN|INFO|ERROR|CHECK|TRACE|LOG|fputs|puts)\((?:[\w|]{1,40}, ?)?[\"']"
)
_CODE = re.compile(
    # Comments; a star at the start of a line is a point of a list.
    r"\s*(?://|/\*|\*/)|\s+\*(?:\s|$)"
    rf"|\s*(?:{_STATEMENT})"
    # Literals with a prefix, calls, assignments, and constants of an enumeration.
    r"|\s*(?:[rbf]{1,2}[\"']|[rbf]{0,2}(?:\"\"\"|'''))|\s*\w+(?:\.\w+)+\(.{0,400}\),?\s*$"
    r"|\s*[A-Za-z_]\w{0,60}(?:: ?\w[\w\[\]., |]{0,60})? = (?:[rbf]{0,2}[\"']|\w[\w.]{0,60}\()"
    r"|\s*[A-Za-z_][\w.\[\]>-]{0,80}(?::\s?[\w\[\].| ]{1,60})? ?(?::=|\+=|=|==|!=) ?.{0,300}"
    r"(?:[({\[;]|\b\w{1,40}\([^()]{0,200}\))\s*\\?$"
    r"|\s*[A-Za-z_]\w{3,60} {1,16}= {1,4}(?:0x)?[0-9A-Fa-f]{1,8},\s*(?:/[/*].*)?$"
    r"|\s*[\"'][\w ./:%-]{1,120}[\"']\s?: ?\(+\s*$"
    # What ends as statements do.
    r"|.*[)\]}\"'];\s*(?://.*|/\*.*|\\)?$"
)
_CELLS = re.compile(r"\s{0,8}\|.*(?:`|\]\(|<a ).*\|\s*$")
# Lines that hold nothing but a literal, or a list of names, as code and YAML have them. A document
# in JSON may have such lines too, but its reader has them to itself.
_LITERAL = re.compile(
    r"\s+(?:[-*] |\()?[rbf]{0,2}(?:\"[^\"]{3,400}\"|'[^']{3,400}')(?:,.{0,200})?[\])}]{0,3},?\s*$"
    r"|\s+-?\d{1,6}: ?[\"'(]|\s*[a-z_]{2,24}: \[(?=\S)[^\]]{1,400}[\],]\s*$"
)
_ROW = re.compile(r"\| [A-Za-z][^|\s]*(?: [^|\s]+)* \|(?: [^|\s]+(?: [^|\s]+)* \|| {1,2}\|)+\s*$")
_HEADING = re.compile(r"#{2,6} (?!Summary: )\S")
_QUOTES = re.compile(rb"[`'\"]|\]\(|\xe2\x80\x9c")
_SPAN = re.compile(rb"``?[^`\n]{1,400}``?")
_LINK = re.compile(rb"\[[^\]\n]{1,300}\]\([^)\n]{1,300}\)")
_SAID = re.compile(
    rb"(?<![^ (\[>])(?:'[^'\n]{3,300}'|\"[^\"\n]{3,300}\"|\xe2\x80\x9c.{3,300}?\xe2\x80\x9d)"
)
_WORD = re.compile(rb"(?<!\S)[A-Za-z][a-z]{1,20}[,.:;?!)]?(?!\S)")
# A point of a list, a cell or a key may stand before it; a time, a tag or a colon may not.
_SENTENCE = re.compile(
    rb"\s{0,8}(?:[-*+>|] {1,3}|\d{1,2}[.)] {1,3}|[a-z_]{2,16}: )?(?:\*\*[A-Z][\w ]{1,20}[:.]\*\* )?"
    rb"(?:[A-Z][A-Za-z']{0,20},? [a-z]+ |[`'\"]|\xe2\x80\x9c)"
)
_LABEL = re.compile(rb"\*\*[A-Z][\w ]{1,20}:?\*\*:? ")
# The kernel's own line is one wherever somebody quotes it.
_KERNEL = re.compile(r"Xid \(PCI:[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}[:)]")
# Sentences and statements are shorter than this.
_LONGEST = 2_048
_FEW, _SOME = 3, 8


def mentions(text: str, *, long: bool) -> bool:
    """Return whether nothing that a line holds is a message, whatever it may look like.

    Args:
        text: the line, cleaned.
        long: whether the text has more than `LONG` lines.
    """
    if len(text) > _LONGEST or _KERNEL.search(text):
        return False
    if _CODE.match(text) or _CELLS.match(text):
        return True
    return long and any(one.match(text) for one in (_HEADING, _ROW, _LITERAL))


def without_quotes(raw: bytes) -> bytes | None:
    """Return a sentence without what it quotes; None if a line is none, or quotes nothing."""
    if len(raw) > _LONGEST or not _QUOTES.search(raw) or _KERNEL.search(raw.decode("latin-1")):
        return None
    bare = raw
    if b"`" in raw:
        bare = _SPAN.sub(b" ", raw)
        if len(_WORD.findall(bare)) < _FEW and not _LABEL.match(raw):
            bare = raw
    if b"](" in bare:
        bare = _LINK.sub(b" ", bare)
    row = raw.startswith(b"|") and b'"' in raw
    if row or (_SENTENCE.match(raw) and len(_WORD.findall(raw)) >= _SOME):
        bare = _SAID.sub(b" ", bare)
    return None if bare == raw else bare
