"""The JSON answers keep the shape that is documented."""

import json
from pathlib import Path

import jsonschema
import pytest

from engine.decode import decode
from engine.diagnosis import Engine
from engine.errors import UsageError
from engine.model import to_json
from engine.readers import read
from engine.schema import ANSWERS, schema
from engine.sources.exposition import FileSource
from tests.support import packaged
from tests.support.contracts import conforms

ROOT = Path(__file__).parents[2]
METRICS = ROOT / "tests" / "data" / "metrics" / "h100_locked_clock.prom"


@pytest.fixture(scope="module")
def catalogue():
    return packaged.catalogue()


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_the_documented_schema_is_the_generated_one(name):
    written = json.loads((ROOT / "docs" / "schemas" / f"{name}.json").read_text())
    assert written == schema(name), f"run: gpuwhy schema {name} > docs/schemas/{name}.json"
    jsonschema.Draft202012Validator.check_schema(written)


async def test_why_and_sweep_answer_in_their_schema(catalogue):
    engine = Engine(catalogue)
    for target in ("h100-5:5", "h100-5:4", "h100-5", "fleet"):
        answer = to_json(await engine.why(target, FileSource([METRICS])))
        conforms(answer, "why")
        assert next(iter(answer)) == "schema"
    conforms(to_json(await engine.sweep(FileSource([METRICS]))), "sweep")


@pytest.mark.parametrize(
    "text", ["72", "0x48", "xid 79", "field 1003", "sm_active", "nothing-like-it"]
)
def test_decode_answers_in_its_schema(catalogue, text):
    conforms(to_json(decode(text, catalogue)), "decode")


@pytest.mark.parametrize(
    "text", [b"NVRM: Xid (PCI:0000:05:00): 79, GPU has fallen off the bus.\n", b"hello\n"]
)
def test_read_answers_in_its_schema(catalogue, text):
    conforms(to_json(read(text, catalogue)), "read")


def test_an_unknown_schema_is_refused_in_one_line():
    with pytest.raises(UsageError, match="no schema 'whom'"):
        schema("whom")
