"""The compiled index: used when good, passed over when not, never in the way."""

import json
import stat

import pytest

from engine.catalogue import build, index
from engine.catalogue.files import read_tree
from engine.catalogue.loader import load_from, write_packaged_index
from tests.support.house import KNOWLEDGE


@pytest.fixture
def no_compiling(monkeypatch):
    """Make compiling fail, to show that an index was used."""

    def refuse(*args, **kwargs):
        raise AssertionError("compiled")

    monkeypatch.setattr(build, "compile_knowledge", refuse)
    monkeypatch.setattr(build, "compile_rules", refuse)


def test_second_load_reads_the_index(root, cache, request):
    first = load_from(root)
    assert {path.name.split("-")[0] for path in cache.iterdir()} == {"knowledge", "rules"}
    request.getfixturevalue("no_compiling")
    second = load_from(root)
    assert second == first


def test_index_and_yaml_give_the_same(root):
    load_from(root)
    indexed, compiled = load_from(root), load_from(root, use_index=False)
    assert indexed == compiled
    assert list(indexed.taxonomy) == list(compiled.taxonomy)


def test_overlays_are_parsed_but_the_base_is_not(root, overlay, request):
    load_from(root)
    mine = overlay({"rules/causes/x/power_brake.yaml": "id: power_brake\ndisabled: true\n"})
    compiled = []
    original = build.compile_rules

    def spy(files, *args, **options):
        compiled.append([file.shown for file in files])
        return original(files, *args, **options)

    request.getfixturevalue("monkeypatch").setattr(build, "compile_rules", spy)
    load_from(root, [mine])
    assert compiled == [[f"{mine}/rules/causes/x/power_brake.yaml"]]


def test_changed_yaml_is_compiled_again(root, put):
    load_from(root)
    put(
        {"knowledge/taxonomy.yaml": KNOWLEDGE["knowledge/taxonomy.yaml"].replace("slowest", "last")}
    )
    assert load_from(root).taxonomy["straggler"].is_ == "last of its job"


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[: len(raw) // 2],
        lambda raw: raw.replace(b"power brake", b"power break", 1),
        lambda raw: b"",
        lambda raw: b"\xff\x00",
        lambda raw: b"{}",
    ],
    ids=["cut", "changed", "empty", "binary", "other"],
)
def test_damaged_index_is_passed_over(root, cache, damage):
    first = load_from(root)
    for path in cache.iterdir():
        path.write_bytes(damage(path.read_bytes()))
    assert load_from(root) == first


def test_index_of_another_version_is_not_used(root, cache, monkeypatch):
    load_from(root)
    before = {path.name for path in cache.iterdir()}
    monkeypatch.setattr(index, "FORMAT", index.FORMAT + 1)
    load_from(root)
    assert len({path.name for path in cache.iterdir()} - before) == 2


def test_cache_that_cannot_be_made_is_no_problem(root, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert load_from(root).causes


def test_relative_cache_home_is_ignored(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "somewhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert index.cache_folder() == tmp_path / ".cache" / "gpuwhy"


def test_old_indexes_are_dropped(root, cache, put):
    for number in range(index.KEPT + 3):
        put({"knowledge/taxonomy.yaml": KNOWLEDGE["knowledge/taxonomy.yaml"] + f"# {number}\n"})
        load_from(root, rules=False)
    assert len(list(cache.glob("knowledge-*.json"))) == index.KEPT
    assert not list(cache.glob(".knowledge-*"))


def test_packaged_index_is_found_without_a_cache(root, tmp_path, monkeypatch, request):
    first = load_from(root, use_index=False)
    folder = tmp_path / "package"
    written = write_packaged_index(root, folder)
    assert {path.name.split("-")[0] for path in written} == {"knowledge", "rules"}
    assert write_packaged_index(root, folder) == written
    assert sorted(folder.iterdir()) == sorted(written)
    monkeypatch.setattr(index, "PACKAGED", folder)
    monkeypatch.setattr(index, "cache_folder", lambda: None)
    request.getfixturevalue("no_compiling")
    assert load_from(root) == first


def test_index_is_readable_by_all_users(root, tmp_path):
    for path in write_packaged_index(root, tmp_path / "package"):
        assert path.stat().st_mode & stat.S_IROTH
        body = path.read_bytes().partition(b"\n")[2]
        assert isinstance(json.loads(body), dict)


def test_index_of_wrong_rules_is_never_written(root, cache, put):
    put({"rules/causes/power/x.yaml": "id: x\n"})
    with pytest.raises(Exception, match="missing"):
        load_from(root)
    assert not list(cache.glob("rules-*"))


def test_key_depends_on_names_and_bytes(root):
    files = read_tree(root, "knowledge")
    assert index.key_for(files) == index.key_for(read_tree(root, "knowledge"))
    assert index.key_for(files) != index.key_for(files[1:])
