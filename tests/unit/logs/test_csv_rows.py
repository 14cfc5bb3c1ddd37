"""Tables read in blocks and in pieces: the same log as line by line and at once, whatever stands in them."""

import gzip
import random
import threading

import polars as pl
import pytest

from tests.errors import raises
from tests.layouts import jobs, stamp
from walltime.errors import LogError
from walltime.logs import csv_rows, input as files, mapped, read_log

MAPPING = """
time_zone = "Europe/Prague"
comment = "#"
[columns]
job_id = "id"
user = "user"
submit = "submitted"
start = "started"
runtime = "ran"
requested = "limit"
allocated_procs = "cores"
note = { column = "note", text = true }
energy = "energy"
[status]
column = "state"
completed = ["done"]
other = "failed"
"""
TITLES = "id,user,submitted,started,ran,limit,cores,note,energy,state"
ODD = {
    "plain": [],
    "quotes": ['901,"b, c",2020-09-13 12:30:00,2020-09-13 12:40:00,60,3600,"4","say ""no""",7,done'],
    "several lines": ['902,ann,2020-09-13 12:30:00,2020-09-13 12:40:00,60,3600,4,"one\ntwo\nthree",7,done'],
    "an open quote": ['903,ann,2020-09-13 12:30:00,2020-09-13 12:40:00,60,3600,4,"never closed,7,done'],
    "a quote inside": ['904,an"n,2020-09-13 12:30:00,2020-09-13 12:40:00,60,3600,4,x,7,done'],
    "too short": ["905,ann,2020-09-13 12:30:00", "906,ann,2020-09-13 12:30:00,2020-09-13 12:40:00,60,3600,4,x,7,done,more"],
    "moved": ["907,ann,2020-09-13 12:30:00,2020-09-13 12:40:00,60,3600,4,x,7,done,x", "908,ann,2020-09-13 12:30:00,,60,3600,4,x,done"],
    "blanks": ["", "  ", " 909 , ann ,2020-09-13 12:30:00,2020-09-13 12:40:00, 60,3600,4,x y, 7 ,done"],
    "comments": ["# what follows is odd", "  # 1,2,3,4,5,6,7,8,9,10"],
    "heading again": [TITLES],
    "times": ["910,ann,2020-09-13T12:30:00+02:00,1600000100,90 min,1-00:00:00,4,x,7.5,done"],
    "steps": ["911.batch,,2020-09-13 12:30:00,,x,,,,,", "911,ann,2020-09-13 12:30:00,2020-09-13 12:40:00,60,3600,4,x,7,done"],
    "a step of nothing": ["912.batch,,2020-09-13 12:30:00,,x,,,,,"],
    "no number": ["913,ann,2020-09-13 12:30:00,2020-09-13 12:40:00,long,3600,4,x,7,done"],
    "negative": ["914,ann,2020-09-13 12:30:00,2020-09-13 12:40:00,-7,3600,4,x,-7,done"],
    "no limit": ["915,ann,2020-09-13 12:30:00,2020-09-13 12:40:00,60,UNLIMITED,4,x,7,done", "916,,,,,4294967295,4,,,done"],
    "huge": [f"917,ann,2020-09-13 12:30:00,2020-09-13 12:40:00,60,3600,4,x,{2**70},done"],
    "other letters": ["918,jörg,2020-09-13 12:30:00,2020-09-13 12:40:00,60,3600,4,日本,7,done"],
    "control": ["919,ann\x0b,2020-09-13 12:30:00,2020-09-13 12:40:00,60,3600,4,\x1c,7,done"],
    "the hour that comes twice": ["920,ann,2020-10-25 02:30:00,2020-10-25 02:40:00,60,3600,4,x,7,done"],
    "words for numbers": ["921_3,ann,2020-09-13 12:30:00,2020-09-13 12:40:00,60,3600,4.0,x,1e3,done"],
}


def rows():
    for k, user, submit, wait, run, request, nodes in jobs():
        yield f"{k},{user},{stamp(submit)},{stamp(submit + wait)},{run},{request},{8 * nodes},n{k % 5},{k if k % 9 else ''},done"


def content_of(odd, end="\n"):
    lines = list(rows())
    place = random.Random(len(odd)).randrange(20, 40)
    return end.join(["# made", TITLES, *lines[:place], *odd, *lines[place:]]).encode() + end.encode()


def said_of(path, mapping, **how):
    """All that is read of a file, or the error."""
    try:
        log = read_log(path, mapping=mapping, **how)
    except LogError as error:
        return str(error)
    columns = {name: values.tolist() for name, values in log.columns.items()}
    counts = dict(log.dropped), dict(log.changed), dict(log.noticed)
    return columns, dict(log.names), sorted((bad.line, bad.reason, bad.text) for bad in log.bad_lines), counts


@pytest.fixture
def mapping(tmp_path):
    (tmp_path / "m.toml").write_text(MAPPING)
    return tmp_path / "m.toml"


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("odd", "end"), [*((odd, "\n") for odd in ODD), ("plain", "\r\n"), ("quotes", "\r\n"), ("several lines", "\r\n"), ("blanks", "\r\n")]
)
def test_blocks__give_the_log_of_single_lines(odd, end, mapping, tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_bytes(content_of(ODD[odd], end))
    monkeypatch.setattr(csv_rows.Blocks, "plain", lambda *_: None)
    whole = said_of(path, mapping), said_of(path, mapping, skip_bad_lines=True)
    assert not isinstance(whole[1], str)
    monkeypatch.undo()
    blocks = []
    plain = csv_rows.Blocks.plain
    monkeypatch.setattr(csv_rows.Blocks, "plain", lambda *given: blocks.append(plain(*given)) or blocks[-1])
    monkeypatch.setattr(files, "_CHUNK", 700)
    monkeypatch.setattr(files, "_LATER_CHUNKS", 900)
    monkeypatch.setattr(csv_rows, "ROWS_AT_ONCE", 25)
    assert said_of(path, mapping, skip_bad_lines=True) == whole[1]
    found = said_of(path, mapping)
    assert found == whole[0] or (isinstance(found, str) and isinstance(whole[0], str))
    assert any(blocks), "some block was plain"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_pieces__of_other_files_give_the_log_of_the_whole(kind, mapping, tmp_path, monkeypatch):
    path = tmp_path / f"t.{kind}"
    table = pl.read_csv(content_of([]), comment_prefix="#", try_parse_dates=kind == "parquet")
    getattr(table, {"parquet": "write_parquet", "jsonl": "write_ndjson"}[kind])(path)
    whole = said_of(path, mapping)
    assert len(whole[0]["submit"]) == 60
    monkeypatch.setattr(mapped, "ROWS_AT_ONCE", 7)
    assert said_of(path, mapping) == whole
    csv = tmp_path / "t.csv"
    csv.write_bytes(content_of([]))
    assert said_of(csv, mapping)[0] == whole[0]


def test_blanks_between_columns__are_read_in_blocks(tmp_path, monkeypatch):
    lines = [
        f" {k}   {submit}  {wait} {run}  {4 * nodes}   1024 {k % 7}  q {request} -1" for k, _, submit, wait, run, request, nodes in jobs()
    ]
    path = tmp_path / "soft.txt"
    path.write_text("; ten columns\n" + "\n".join(lines) + "\n")
    whole = said_of(path, "cerit-soft-walltimes")
    assert len(whole[0]["submit"]) == 60
    monkeypatch.setattr(files, "_CHUNK", 700)
    monkeypatch.setattr(files, "_LATER_CHUNKS", 900)
    assert said_of(path, "cerit-soft-walltimes") == whole


# ------------------------------------------------------------------- reading ahead


def test_damage_far_inside_a_packed_file__is_one_line(mapping, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_CHUNK", 1000)
    monkeypatch.setattr(files, "_LATER_CHUNKS", 1000)
    packed = gzip.compress(content_of([]))
    (tmp_path / "t.csv.gz").write_bytes(packed[: len(packed) * 3 // 4])
    with raises(LogError, "damaged_archive", "truncated"):
        read_log(tmp_path / "t.csv.gz", mapping=mapping)


def test_progress__counts_the_stored_bytes_up_to_all(mapping, tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_CHUNK", 700)
    monkeypatch.setattr(files, "_LATER_CHUNKS", 900)
    for name, content in (("t.csv", content_of([])), ("t.csv.gz", gzip.compress(content_of([])))):
        path, said = tmp_path / name, []
        path.write_bytes(content)
        read_log(path, mapping=mapping, progress=lambda *told, said=said: said.append(told))
        assert {(total, counted) for _, total, counted in said} == {(len(content), "bytes")}
        done = [one for one, _, _ in said]
        assert done == sorted(done)
        assert done[-1] == len(content)


def test_reader_that_stops_early__leaves_no_thread(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_CHUNK", 100)
    monkeypatch.setattr(files, "_LATER_CHUNKS", 100)
    (tmp_path / "t.csv").write_bytes(content_of([]))
    before = threading.active_count()
    chunks = files.LogFile(tmp_path / "t.csv").chunks()
    assert [len(next(chunks)) for _ in range(3)] == [100] * 3
    assert threading.active_count() == before + 1
    chunks.close()
    del chunks
    assert threading.active_count() == before
