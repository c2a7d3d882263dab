"""The one table of kinds of JSON documents, in the order in which a document is offered to them."""

from __future__ import annotations

from engine.readers.documents import DocumentKind

DOCUMENTS: tuple[DocumentKind, ...] = ()
