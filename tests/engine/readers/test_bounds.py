"""Texts with more GPUs, mounts and ports than any machine has: bounded memory, bounded answers."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import pytest

from engine.catalogue import Catalogue
from engine.readers import read
from engine.readers.base import Context
from engine.readers.dcgmi.dmon import MAX_ENTITIES, DmonReader
from engine.readers.listing import Kept, Listing
from engine.readers.smi.monitor import SmiMonitorReader
from engine.readers.smi.query_csv import SmiCsvReader
from engine.readers.storage.mountstats import MountstatsReader


def _kept(reader: Listing[Any], text: str) -> Kept[Any]:
    for number, line in enumerate(text.splitlines(), 1):
        reader.feed(number, line)
    return reader.kept


def test_ports_are_compared_in_little_time_and_the_worst_are_told(catalogue: Catalogue) -> None:
    one = (
        "{0}: eth{0}: <BROADCAST,MULTICAST,UP> mtu 1500 qdisc mq state UP mode DEFAULT\n"
        "    RX:  bytes packets errors dropped  missed   mcast\n    {0} {0} {0} {0} {0} {0}\n"
    )
    text = "".join(one.format(i) for i in range(1, 4_001)).encode()
    before = perf_counter()
    answer = read(text, catalogue)
    assert perf_counter() - before < 10
    assert 1 < len(answer.findings) <= 200


@pytest.mark.parametrize(
    ("reader", "head", "row"),
    [
        (SmiMonitorReader, "# gpu pwr gtemp sm\n# Idx W C %\n", "    {} 90 40 99\n"),
        (SmiCsvReader, "index, name, temperature.gpu\n", "{}, NVIDIA H100, 40\n"),
    ],
)
def test_of_many_gpus_only_the_newest_rows_are_kept(
    reader: type[Listing[Any]], head: str, row: str, catalogue: Catalogue
) -> None:
    text = head + "".join(row.format(i % 900) for i in range(45_000))
    courses = _kept(reader(Context(catalogue)), text).items
    assert len(courses) == 512
    assert sum(len(c.moments) for c in courses) <= 32 * 300 + 512 * 16


def test_mounts_and_entities_are_counted_beyond_their_bound(catalogue: Catalogue) -> None:
    mounts = "".join(
        f"device srv:/e{i} mounted on /m{i} with fstype nfs4 statvers=1.1\n" for i in range(1_000)
    )
    kept = _kept(MountstatsReader(Context(catalogue)), mounts)
    assert (len(kept.items), kept.overflow) == (MountstatsReader.MAX_MOUNTS, 744)
    rows = "#Entity   GPUTL  TMPTR  POWER\nID\n" + "".join(
        f"GPU {i}     1      40     300\n" for i in range(1_000)
    )
    kept = _kept(DmonReader(Context(catalogue)), rows)
    assert (len(kept.items), kept.overflow) == (MAX_ENTITIES, 488)


@pytest.mark.parametrize("row", ["GPU0 " + "a" * 1_000 + "!", " " + "GPU1" * 200 + "!"])
def test_a_row_of_a_matrix_without_spaces_is_looked_at_once(row: str, catalogue: Catalogue) -> None:
    text = f"LINK TYPE TABLE:\n  0000:05:00.0 0000:26:00.0\n{row}\n"
    assert not read(text.encode(), catalogue).causes
