"""Starting light: with an index, decoding needs the standard library only, and little time."""

import json
import os
import subprocess
import sys

HEAVY = ("numpy", "pydantic", "yaml", "rapidfuzz", "aiohttp", "rich", "click", "orjson", "durable")

PROGRAM = """
import json, sys
from engine.catalogue import load_catalogue
from engine.decode import decode
found = decode("72", load_catalogue(rules=False))
print(json.dumps({"kind": found.candidates[0].kind, "modules": sorted(sys.modules)}))
"""


def run(cache):
    environment = os.environ | {"XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_decode_with_an_index_imports_nothing_heavy(cache):
    first = run(cache.parent)
    assert "yaml" in first["modules"]
    second = run(cache.parent)
    assert second["kind"] == "throttle"
    roots = {name.split(".")[0] for name in second["modules"]}
    assert roots.isdisjoint(HEAVY)


def test_compiling_knowledge_needs_no_numpy(cache):
    assert "numpy" not in run(cache.parent)["modules"]
