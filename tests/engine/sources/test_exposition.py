"""Metrics files as people have them: cut, joined, compressed, binary, huge, from Windows."""

from __future__ import annotations

import asyncio
import gzip
import io
import os
import threading
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine.errors import InputError
from engine.samples import Batch, Matcher, Selection
from engine.sources import FileSource, Source
from engine.sources import textblocks as textblocks_module
from engine.sources import textreader as textreader_module

T0 = 1_764_432_000
ALL = [Selection((), (), 900.0)]
TIMED = "".join(
    f'{name}{{gpu="{gpu}",Hostname="node-3"}} {100 * gpu + k} {(T0 + 15 * k) * 1000}\n'
    for name in ("DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_SM_CLOCK")
    for gpu in (0, 1)
    for k in range(10)
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "metrics.txt"


def put(path: Path, content: str | bytes) -> None:
    path.write_bytes(content.encode() if isinstance(content, str) else content)


async def read(*paths: Path, wave: list[Selection] = ALL, at: float | None = None) -> Batch:
    return await FileSource(list(paths)).select(wave, at=at)


async def read_text(path: Path, text: str | bytes, **kwargs: object) -> Batch:
    put(path, text)
    return await read(path, **kwargs)  # type: ignore[arg-type]


async def refused(path: Path, content: bytes | None = None) -> str:
    if content is not None:
        put(path, content)
    with pytest.raises(InputError) as caught:
        await read(path)
    line = caught.value.one_line()
    assert "\n" not in line
    return line.replace(str(path), "FILE")


async def test_the_port_is_kept(path: Path) -> None:
    source: Source = FileSource([path])
    assert isinstance(source, Source)
    assert (source.name, source.queries) == (str(path), 0)
    await source.aclose()


async def test_at_is_the_newest_sample_of_the_whole_file(path: Path) -> None:
    later = f"node_load1 3 {(T0 + 100_000) * 1000}\n"
    batch = await read_text(path, TIMED + later, wave=[Selection(("DCGM_FI_DEV_GPU_TEMP",))])
    assert (batch.at, batch.series, batch.queries) == (T0 + 100_000, [], 0)


async def test_windows_are_closed_and_relative_to_at(path: Path) -> None:
    wave = [Selection(("DCGM_FI_DEV_GPU_TEMP",), (Matcher("gpu", "=", "1"),), 30.0)]
    batch = await read_text(path, TIMED, wave=wave)
    assert [s.ts.tolist() for s in batch.series] == [[T0 + 105, T0 + 120, T0 + 135]]
    batch = await read(path, wave=wave, at=T0 + 60.0)
    assert [s.values.tolist() for s in batch.series] == [[102, 103, 104]]
    assert (await read(path, wave=wave, at=T0 - 1.0)).series == []


async def test_later_waves_keep_the_moment_of_the_first(path: Path) -> None:
    put(path, TIMED)
    source = FileSource([path])
    await source.label_sets((), ("gpu",), at=None, window_s=60)
    with path.open("a") as file:
        file.write(f"a 1 {(T0 + 9000) * 1000}\n")
    assert (await source.select(ALL, at=None)).at == T0 + 135


async def test_without_times_samples_keep_their_order(path: Path) -> None:
    batch = await read_text(path, 'a{x="1"} 3\na{x="1"} 1\nb 7\na{x="1"} NaN\na{x="1"} 2\n')
    a, b = batch.series
    assert (batch.at, a.timed, b.timed) == (None, False, False)
    assert a.ts.tolist() == [0, 0, 0, 0]
    assert [repr(v) for v in a.values.tolist()] == ["3.0", "1.0", "nan", "2.0"]
    assert batch.warnings == []


async def test_a_time_asked_for_needs_times(path: Path) -> None:
    batch = await read_text(path, "a 1\n", at=float(T0))
    assert (batch.at, len(batch.series)) == (None, 1)
    assert len(batch.warnings) == 1
    assert batch.warnings[0].endswith("no sample has a time, so the time asked for is not used")


async def test_seconds_and_milliseconds_may_be_mixed(path: Path) -> None:
    batch = await read_text(path, f"a 1 {T0}.250\na 2 {T0 + 1}500\nb 3 {T0}\n# EOF\n")
    assert [s.ts.tolist() for s in batch.series] == [[T0 + 0.25, T0 + 1.5], [T0]]


async def test_repeated_times_last_wins(path: Path) -> None:
    batch = await read_text(path, f"a 1 {T0}\na 2 {T0}\na 5 {T0 - 1}\na 3 {T0}\n")
    assert [(s.ts.tolist(), s.values.tolist()) for s in batch.series] == [([T0 - 1, T0], [5, 3])]
    assert "2 samples repeat a time of their series (first: a)" in batch.warnings[0]


async def test_the_same_labels_in_another_order_are_the_same_series(path: Path) -> None:
    batch = await read_text(
        path, 'a{x="1",y="2"} 1 1\na{y="2",x="1",z=""} 2 2\n{"a",x="1",y="2",} 3 3\n'
    )
    assert [(s.labels, s.values.tolist()) for s in batch.series] == [
        ({"x": "1", "y": "2"}, [1, 2, 3])
    ]


async def test_files_are_merged(tmp_path: Path) -> None:
    one, two = tmp_path / "1.txt", tmp_path / "2.txt"
    one.write_text(f"a 1 {T0}\na 2 {T0 + 15}")
    two.write_text(f"a 3 {T0 + 30}\na 9 {T0 + 15}\nb 1 {T0}\n")
    seen: list[tuple[int, int]] = []
    source = FileSource([one, two], lambda done, total: seen.append((done, total)))
    batch = await source.select(ALL, at=None)
    assert [s.values.tolist() for s in batch.series] == [[1, 9, 3], [1]]
    total = one.stat().st_size + two.stat().st_size
    assert seen[-1] == (total, total)
    assert source.name == f"{one}, {two}"


# ---- malformed lines


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('dcgm_nvlink{gpu="1"}', "no value after dcgm_nvlink{…}"),
        ('dcgm_nvlink{gpu="1"} ', "no value after dcgm_nvlink{…}"),
        ("dcgm_nvlink", "no value after dcgm_nvlink"),
        ('a{gpu="1",x="2', "labels of a are cut off or malformed"),
        ("a{gpu=1} 5", "labels of a are cut off or malformed"),
        ("a{gpu} 5", "label gpu of a has no value"),
        ('a{gpu="1",gpu="2"} 5', "label gpu of a is given twice"),
        ('a{__name__="b"} 5', "not exactly one metric name"),
        ('{gpu="1"} 5', "not exactly one metric name"),
        ('a{gpu="1"} five', "value five is not a number after a{…}"),
        ('a{gpu="1"} 1_000', "value 1_000 is not a number after a{…}"),
        ('a{gpu="1"} 5 soon', "time soon is not a number after a{…}"),
        ('a{gpu="1"} 5 NaN', "time NaN is neither seconds nor milliseconds after a{…}"),
        ('a{gpu="1"} 5 1764432000000000', "neither seconds nor milliseconds after a{…}"),
        ('a{gpu="1"} 5 6 7', "text after the time: 7 after a{…}"),
        ("9lives 5", "not a metric: 9lives 5"),
        ("\x00\x01 5", "not a metric: 5"),
        ("| GPU  Name |", "not a metric: | GPU Name |"),
    ],
)
async def test_a_malformed_line_is_skipped_and_told(path: Path, line: str, reason: str) -> None:
    good = 'ok{gpu="1"} 1 1\nok{gpu="1"} 2 2\n'
    # The binary check looks at the first 8 KiB only.
    padding = "#" * 9000 + "\n"
    batch = await read_text(
        path, padding + good + line + "\n" + good.replace("ok", "also") + line + "\n"
    )
    assert [(s.name, s.values.tolist()) for s in batch.series] == [("also", [1, 2]), ("ok", [1, 2])]
    [warning] = batch.warnings
    assert warning.startswith(f"{path}:4: ")
    assert reason in warning
    assert warning.endswith("; 2 lines skipped, the rest is used")


async def test_a_warning_is_given_once(path: Path) -> None:
    put(path, "a 1\nb\n")
    source = FileSource([path])
    await source.label_sets((), ("gpu",), at=None, window_s=60)
    assert (await source.select(ALL, at=None)).warnings == [
        f"{path}:2: no value after b; 1 line skipped, the rest is used"
    ]
    assert (await source.select(ALL, at=None)).warnings == []


async def test_samples_without_time_among_timed_ones(path: Path) -> None:
    batch = await read_text(path, "a 1 1\na 5\na 2 2\n")
    assert [s.values.tolist() for s in batch.series] == [[1, 2]]
    assert "1 samples without a time stand among others with one (first: a)" in batch.warnings[0]


async def test_cut_anywhere_nothing_is_invented(path: Path) -> None:
    whole = await read_text(path, TIMED)
    known = {
        (s.name, s.labels["gpu"], t, v)
        for s in whole.series
        for t, v in zip(s.ts.tolist(), s.values.tolist(), strict=True)
    }
    raw = TIMED.encode()
    for cut in range(200, len(raw)):
        batch = await read_text(path, raw[:cut])
        got = {
            (s.name, s.labels["gpu"], t, v)
            for s in batch.series
            for t, v in zip(s.ts.tolist(), s.values.tolist(), strict=True)
        }
        assert got <= known, raw[:cut][-80:]
        assert len(got) >= raw[:cut].count(b"\n")


@pytest.mark.parametrize("cut", ["17644320000", ""])
async def test_a_cut_last_time_does_not_become_the_newest(path: Path, cut: str) -> None:
    batch = await read_text(path, TIMED + f'new{{gpu="0"}} 5 {cut}'.rstrip())
    assert batch.at == T0 + 135
    assert all(s.name != "new" for s in batch.series)


# ---- line ends and encodings


@pytest.mark.parametrize(
    "change", ["crlf", "bom", "tabs", "blank", "no_end", "gzip", "gzip_joined"]
)
async def test_the_same_readings_in_other_clothes(path: Path, change: str) -> None:
    plain = await read_text(path, TIMED)
    raw = TIMED.encode()
    half = raw.index(b"\n", len(raw) // 2) + 1
    changed = {
        "crlf": raw.replace(b"\n", b"\r\n"),
        "bom": b"\xef\xbb\xbf" + raw,
        "tabs": raw.replace(b"} ", b"}\t"),
        "blank": raw.replace(b"\n", b"\n\n  \n"),
        "no_end": raw[:-1],
        "gzip": gzip.compress(raw),
        "gzip_joined": gzip.compress(raw[:half]) + gzip.compress(raw[half:]) + b"\0" * 512,
    }[change]
    batch = await read_text(path, changed)
    assert batch.warnings == []
    assert [(s.name, s.labels, s.ts.tolist(), s.values.tolist()) for s in batch.series] == [
        (s.name, s.labels, s.ts.tolist(), s.values.tolist()) for s in plain.series
    ]


async def test_label_values_that_are_not_utf8(path: Path) -> None:
    batch = await read_text(path, b'a{x="\xff\xfe"} 1\n')
    assert [s.labels for s in batch.series] == [{"x": "\ufffd\ufffd"}]


async def test_gzip_that_was_cut(path: Path) -> None:
    raw = "".join(f"a {k * 7919 % 1000} {T0 + k}\n" for k in range(5000)).encode()
    batch = await read_text(path, gzip.compress(raw)[:-2000])
    assert len(batch.series[0].ts) > 100
    assert any("the compressed data is cut off" in w for w in batch.warnings)
    damaged = bytearray(gzip.compress(raw))
    damaged[-4000:-3990] = b"\xff" * 10
    assert "FILE is a damaged gzip file" in await refused(path, bytes(damaged))


# ---- what is no metrics file


async def test_no_metrics_files(path: Path, tmp_path: Path) -> None:
    assert "no such file; check the path" in await refused(path)
    assert "is a directory; name the metrics files in it" in await refused(tmp_path)
    assert "FILE is empty" in await refused(path, b"")
    assert "FILE is empty" in await refused(path, b"\n\n  \n")
    assert "FILE is a binary file" in await refused(path, b"\x7fELF\x02\x01\x01\x00" + bytes(500))
    assert "FILE is UTF-16 text; convert it: iconv" in await refused(path, "a 1\n".encode("utf-16"))
    assert "compressed with zstd" in await refused(path, b"\x28\xb5\x2f\xfd1234")
    assert "FILE is a binary file" in await refused(path, gzip.compress(bytes(10_000)))
    assert "FILE is a damaged gzip file" in await refused(
        path, b"\x1f\x8b\x08\x00garbage garbage garbage"
    )
    assert "FILE holds a web page" in await refused(path, b"<!DOCTYPE html>\n<html>")
    assert "no line of it could be read" in await refused(path, b'{"status":"success"}\n')
    assert "a line longer than 1 MiB" in await refused(path, b"a" * (3 << 20))
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    assert "cannot be read" in await refused(loop)
    with pytest.raises(InputError):
        await read(Path("a\0b"))
    for paths in ([], ["-", "-"]):
        with pytest.raises(InputError):
            FileSource(paths)


async def test_only_comments_is_empty_but_no_error(path: Path) -> None:
    batch = await read_text(path, "# EOF\n")
    assert (batch.series, batch.at, batch.warnings) == ([], None, [])


async def test_compressed_files_expand_to_a_limit(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(textblocks_module, "MAX_BYTES", 4 << 20)
    assert "expands to more than" in await refused(path, gzip.compress(b"a 1 1\n" * 2_000_000, 1))


@given(
    st.lists(
        st.one_of(st.binary(max_size=30), st.sampled_from([b"\n", b'a{x="', b'"} ', b" 1 ", b"#"]))
    )
)
@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_bytes_give_an_answer_or_one_line(path: Path, pieces: list[bytes]) -> None:
    path.write_bytes(b"".join(pieces))
    told: list[str] = []
    try:
        told = asyncio.run(read(path)).warnings
    except InputError as e:
        told = [e.one_line()]
    assert all(line.isprintable() for line in told)


# ---- standard input and pipes


async def test_standard_input_is_read_once_for_several_waves() -> None:
    source = FileSource(["-"], stdin=io.BytesIO(TIMED.encode()))
    assert source.name == "stdin"
    assert len(await source.label_sets((), ("gpu",), at=None, window_s=60)) == 2
    assert len((await source.select(ALL, at=None)).series) == 4
    assert len((await source.select(ALL, at=None)).series) == 4
    await source.aclose()
    await source.aclose()


async def test_standard_input_for_waves_at_the_same_time() -> None:
    source = FileSource(["-"], stdin=io.BytesIO(TIMED.encode()))
    batches = await asyncio.gather(*(source.select(ALL, at=None) for _ in range(4)))
    await source.aclose()
    assert [len(b.series) for b in batches] == [4] * 4


async def test_standard_input_that_is_binary() -> None:
    with pytest.raises(InputError, match="stdin is a binary file"):
        await FileSource(["-"], stdin=io.BytesIO(bytes(9000))).select(ALL, at=None)


async def test_named_pipes(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text(TIMED))
    writer.start()
    source = FileSource([pipe])
    first = await source.select(ALL, at=None)
    second = await source.select(ALL, at=None)
    writer.join()
    await source.aclose()
    assert len(first.series) == len(second.series) == 4


async def test_waiting_for_input_can_be_cancelled() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stdin, os.fdopen(writing, "wb"):
        source = FileSource(["-"], stdin=stdin)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await source.select(ALL, at=None)
        began = time.monotonic()
        await asyncio.get_running_loop().shutdown_default_executor()
        assert time.monotonic() - began < 2


# ---- size


def big_file(path: Path, series: int, samples: int) -> int:
    with path.open("w") as file:
        for s in range(series):
            head = f'DCGM_FI_DEV_METRIC_{s % 40}{{gpu="{s % 8}",UUID="GPU-{s:08}",Hostname="node-{s // 320}"}}'
            file.writelines(f"{head} {k} {T0 + k * 15}\n" for k in range(samples))
    return path.stat().st_size


async def test_memory_follows_the_question_and_not_the_file(path: Path) -> None:
    size = big_file(path, 1600, 240)
    assert size > 30e6
    wave = [Selection(("DCGM_FI_DEV_METRIC_3",), (Matcher("Hostname", "=", "node-2"),))]
    source = FileSource([path])
    tracemalloc.start()
    try:
        batch = await source.select(wave, at=None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert [len(s.ts) for s in batch.series] == [61] * 8
    # A block of 1 MiB as lines, ids and numbers, and nothing that grows with the file.
    assert peak < 8e6


async def test_memory_of_series_nobody_asked_for_is_bounded(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(textreader_module, "UNWANTED_HEADS", 100)
    lines = [f'a{{id="{k % 3000}"}} {k} {T0 + k // 3000}\n' for k in range(9000)]
    put(path, "".join(lines) + f'b{{id="1"}} 5 {T0}\n' + "".join(lines))
    wave = [Selection(("a",), (Matcher("id", "=", "2999"),)), Selection(("b",))]
    batch = await FileSource([path]).select(wave, at=None)
    assert [s.values.tolist() for s in batch.series] == [[2999, 5999, 8999], [5]]


async def test_a_name_that_is_empty() -> None:
    with pytest.raises(InputError, match=r"^a metrics file has an empty name"):
        await FileSource([""]).select(ALL, at=None)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that fails to read")
async def test_a_file_that_fails_in_the_middle() -> None:
    assert await refused(Path("/proc/self/mem")) == "FILE cannot be read: Input/output error"


async def test_no_room_for_the_copy_of_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(io.BytesIO):
        def write(self, _: object) -> int:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", Full)
    with pytest.raises(InputError, match=r"^stdin must be copied .* No space left .* TMPDIR"):
        await FileSource(["-"], stdin=io.BytesIO(TIMED.encode())).select(ALL, at=None)


async def test_a_named_pipe_is_waited_for_and_can_be_given_up(path: Path) -> None:
    os.mkfifo(path)
    source = FileSource([path])
    waiting = asyncio.create_task(source.select(ALL, at=None))
    await asyncio.sleep(0.2)
    assert not waiting.done()
    threading.Thread(target=put, args=(path, TIMED)).start()
    assert len((await waiting).series) == 4
    await source.aclose()
    waiting = asyncio.create_task(read(path))
    await asyncio.sleep(0.2)
    waiting.cancel()
    started = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await asyncio.get_running_loop().shutdown_default_executor()
    assert time.monotonic() - started < 5


async def test_what_little_unpacks_to_can_be_stopped(path: Path) -> None:
    put(path, gzip.compress(b"# nothing\n" * 1_000_000))
    heard = []
    source = FileSource([path], lambda done, _: heard.append(done))
    await source.select(ALL, at=None)
    assert len(heard) > 30  # 10 MB in blocks of 256 KiB
