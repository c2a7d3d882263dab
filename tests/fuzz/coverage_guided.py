"""Fuzz the readers guided by coverage, with atheris: ``make fuzz-guided``.

Arguments are libFuzzer's, such as ``-max_total_time=600``. The samples are the first corpus.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["engine.readers", "engine.traces", "engine.redact"]):
    from tests.fuzz.check import catalogue, check

from tests.fuzz.seeds import seeds


def main() -> None:
    """Run libFuzzer."""
    catalogue()
    corpus = Path(tempfile.mkdtemp(prefix="gpuwhy-corpus-"))
    for number, raw in enumerate(seeds()):
        (corpus / f"{number:05}").write_bytes(raw)
    atheris.Setup([*sys.argv, str(corpus)], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
