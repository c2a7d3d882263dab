"""Answers from the knowledge base as people see them, and the commands around it."""

from __future__ import annotations

import pytest

from bot.answer import Answer, Level
from bot.commands import ask, calc, kb
from bot.render import plain
from bot.render.slack import render as slack
from engine.errors import UsageError
from tests.support import golden
from tests.support.shelf import catalogue
from tests.support.shop import shop

ANSWERS: dict[str, Answer] = {
    "ask-sure": ask.run("what does --duration do", catalogue=shop()),
    "ask-unsure": ask.run("who won the match and how", catalogue=shop()),
    "ask-target": ask.run("nsys attach to the job of gpu 5 on node-3", catalogue=shop()),
    "kb-list": kb.list_entries(shop()),
    "kb-list-one": kb.list_entries(shop(), "nsys"),
    "kb-show": kb.show("nsys/attach", shop()),
    "kb-search": kb.search("recording length", shop()),
    "calc-busbw": calc.run(["busbw", "algbw=188.5", "ranks=8"], catalogue=shop()),
    "calc-list": calc.run([], catalogue=shop()),
    "calc-describe": calc.run(["kv-cache"], catalogue=shop()),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_plain_text(name) -> None:
    golden.check(f"plain/{name}.txt", plain.render(ANSWERS[name]))


@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_fits_into_slack(name) -> None:
    assert slack(ANSWERS[name])


def test_a_target_fills_the_commands_and_is_no_part_of_the_question() -> None:
    data = ANSWERS["ask-target"].data
    assert data["question"] == "nsys attach to the job of"
    assert "ssh node-3 nsys sessions list | grep 5" in data["answers"][0]["commands"]


@pytest.mark.parametrize("adapter", ["mlx5_0:1", "eth0:1"])
def test_a_port_of_an_adapter_is_no_target(adapter) -> None:
    question, target = ask.without_target(f"what is NCCL_IB_HCA={adapter}")
    assert target is None
    assert adapter in question


def test_where_nothing_is_sure_no_command_that_disturbs_is_offered() -> None:
    text = plain.render(ANSWERS["ask-target"])
    assert not ANSWERS["ask-target"].data["sure"]
    assert "ssh node-3 nsys sessions list" in text
    assert "nsys start" not in text


def test_not_being_sure_is_a_level_of_its_own() -> None:
    assert ANSWERS["ask-sure"].level is Level.CLEAR
    assert ANSWERS["ask-unsure"].level is Level.UNKNOWN


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("nsys/atach", "did you mean nsys/attach"),
        ("nothing", "gpuwhy kb search finds by words"),
        ("", "no entry ''"),
    ],
)
def test_an_unknown_entry_offers_the_nearest(key, said) -> None:
    with pytest.raises(UsageError) as refused:
        kb.show(key, shop())
    assert said in refused.value.one_line()


def test_an_id_alone_will_do_where_it_is_unique() -> None:
    assert kb.show("attach", shop()).data["entry"]["id"] == "attach"
    with pytest.raises(UsageError, match="several entries are called"):
        kb.show("overview", catalogue())


def test_a_long_thread_is_cut_and_a_long_question_refused() -> None:
    thread = "\n".join(["which tool shows gaps"] * 20_000)
    assert "answers" in ask.run("and on AMD?", catalogue=shop(), after=thread).data
    with pytest.raises(UsageError, match="gpuwhy read"):
        ask.run("x " * 2_000, catalogue=shop())
    with pytest.raises(UsageError, match="more than 500 characters"):
        kb.search("x " * 2_000, shop())


def test_a_follow_up_keeps_the_target() -> None:
    before = "nsys attach to the job of gpu 5 on node-3"
    data = ask.run("and nsys attach again?", catalogue=shop(), after=before).data
    assert "ssh node-3 nsys sessions list | grep 5" in data["answers"][0]["commands"]


def test_an_unknown_concern_offers_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'nsys'"):
        kb.list_entries(shop(), "nsis")


def test_every_entry_of_the_real_one_can_be_shown() -> None:
    for concern, entries in catalogue().entries.items():
        for key in list(entries)[:40]:
            shown = kb.show(f"{concern}/{key}", catalogue())
            assert plain.render(shown).strip()
            assert shown.data["entry"]


class TestReference:
    def test_pages_are_written_and_stale_ones_go(self, tmp_path) -> None:
        kb.reference(tmp_path, shop())
        (tmp_path / "own.md").write_text("# mine\n")
        gone = tmp_path / "gone.md"
        gone.write_text((tmp_path / "nsys.md").read_text())
        answer = kb.reference(tmp_path, shop())
        assert sorted(path.name for path in tmp_path.iterdir()) == [
            "README.md",
            "nsys.md",
            "own.md",
        ]
        assert answer.data["pages"] == ["README.md", "nsys.md"]

    def test_a_page_holds_everything_of_an_entry(self, tmp_path) -> None:
        kb.reference(tmp_path, shop())
        page = (tmp_path / "nsys.md").read_text()
        for part in (
            '<a id="attach"></a>',
            "nsys start --session=SESSION --output=OUTPUT",
            "| `SM_ACTIVE` | ratio | above 0.8 | below 0.5 |",
            "> **Often told otherwise.** Common advice attaches with -p. In fact: ",
            "[limit the length of an nsys recording](nsys.md#duration)",
            "avg by (Hostname) (x)",
            "_Source (single): a user guide_",
        ):
            assert part in page

    def test_a_page_of_somebody_else_is_left_alone(self, tmp_path) -> None:
        (tmp_path / "README.md").write_text("# mine\n")
        with pytest.raises(UsageError, match="was not made by this command"):
            kb.reference(tmp_path, shop())
        assert (tmp_path / "README.md").read_text() == "# mine\n"

    def test_a_folder_that_cannot_be_written_is_said(self, tmp_path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(UsageError, match="cannot write"):
            kb.reference(tmp_path / "file", shop())
