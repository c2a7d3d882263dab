"""Questions from the field: which tool, which command, what it means; held on the text people read."""

from __future__ import annotations

import pytest

from bot.commands import ask
from bot.render import plain
from tests.support.cases import family, text_faults
from tests.support.shelf import catalogue


@pytest.mark.parametrize("one", family("questions"), ids=str)
def test_the_answer_holds_what_the_expert_said(one) -> None:
    answer = ask.run(one.input, catalogue=catalogue())
    assert answer.data["sure"], "the entry was found, but was not trusted"
    tools = answer.data["answers"][0]["tools"]
    assert set(one.decode.get("tools", ())) <= set(tools)
    some = one.decode.get("tools_any")
    assert not some or set(some) & set(tools), tools
    assert list(text_faults(one, plain.render(answer))) == []
