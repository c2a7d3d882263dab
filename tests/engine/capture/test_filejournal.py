"""Journals in files: what a dead process leaves is found, what a living one holds is not."""

from __future__ import annotations

from contextlib import contextmanager, suppress

import pytest

from engine import capture
from engine.capture import CaptureError, Entry, Phase
from engine.capture.filejournal import abandoned, begin
from tests.engine.capture.conftest import gpu, request_for


class DiedError(Exception):
    """Stands for the end of the process."""


@contextmanager
def dying(plan):
    with suppress(DiedError), begin(plan) as journal:
        yield journal
        raise DiedError


@pytest.fixture
async def plan(pretending):
    return await capture.plan(request_for(gpu()), pretending)


def found(settings):
    with abandoned(settings.folder) as journals:
        return [(plan, entries) for plan, entries, _ in journals]


async def test_what_a_dead_process_wrote_is_read_back(plan, pretending):
    entries = (Entry("start", Phase.BEGIN, {"argv": ["ä", "b"]}), Entry("start", Phase.DONE))
    with dying(plan) as journal:
        for entry in entries:
            await journal.append(entry)
        assert found(pretending) == []  # it is alive, and holds the lock
    assert found(pretending) == [(plan, entries)]

    with abandoned(pretending.folder) as journals:
        await journals[0][2].append(Entry("start", Phase.UNDONE))
    assert found(pretending) == [(plan, (*entries, Entry("start", Phase.UNDONE)))]
    with abandoned(pretending.folder) as journals:
        journals[0][2].finish()
    assert found(pretending) == []


async def test_a_finished_journal_is_not_found(plan, pretending):
    with begin(plan) as journal:
        await journal.append(Entry("start", Phase.BEGIN))
    assert found(pretending) == []
    with begin(plan), pytest.raises(CaptureError, match="was run before"), begin(plan):
        pass


async def test_a_line_that_was_cut_off(plan, pretending):
    with dying(plan) as journal:
        await journal.append(Entry("start", Phase.BEGIN))
    path = next(pretending.folder.glob("*/journal.jsonl"))
    with path.open("a") as file:
        file.write('{"step": "stop", "pha')
    with abandoned(pretending.folder) as journals:
        assert journals[0][1] == (Entry("start", Phase.BEGIN),)
        await journals[0][2].append(Entry("start", Phase.UNDONE))
    assert found(pretending)[0][1] == (Entry("start", Phase.BEGIN), Entry("start", Phase.UNDONE))


@pytest.mark.parametrize("text", ["", "{", '{"schema": "gpuwhy/capture-plan/1"}\n', "\0\n"])
def test_a_journal_without_a_plan_is_left_alone(text, pretending):
    folder = pretending.folder / "x"
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").write_text(text)
    assert found(pretending) == []


def test_no_folder_no_journals(pretending):
    assert found(pretending) == []


async def test_a_folder_that_cannot_be_written(plan, pretending):
    pretending.folder.parent.mkdir(exist_ok=True)
    pretending.folder.write_text("a file")
    with pytest.raises(CaptureError, match=r"cannot write .*journal\.jsonl: "), begin(plan):
        pass
