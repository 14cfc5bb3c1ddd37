"""Blocks of rows of sacct that are split at once give the same log as rows that are split one by one."""

import pytest

from walltime.errors import LogError
from walltime.logs import csv_rows, input as files
from walltime.logs.formats import read_log
from walltime.logs.slurm import rows

TITLES = [
    "JobIDRaw",
    "User",
    "State",
    "Submit",
    "Start",
    "End",
    "ElapsedRaw",
    "TimelimitRaw",
    "AllocCPUS",
    "AllocTRES",
    "MaxRSS",
    "JobName",
]


def table(delimiter="|", names=(), ending=""):
    """Return 90 jobs with a step each; `names`: the names of some jobs, by number."""
    names, lines = dict(names), [TITLES]
    for k in range(1, 91):
        times = [str(1_767_225_600 + 60 * k + more) for more in (0, 30, 30 + 7 * k)]
        user, state = f"user{k % 5}", "FAILED" if k % 9 == 0 else "COMPLETED"
        lines.append(
            [f"{k}", user, state, *times, f"{7 * k}", "60" if k % 4 else "Unknown", "2", "cpu=2,mem=4G,node=1", "", names.get(k, "None")]
        )
        lines.append([f"{k}.batch", "", state, *times, f"{7 * k}", "", "2", "cpu=2,mem=4G,node=1", f"{k}M", "batch"])
    return "".join(delimiter.join(line) + ending + "\n" for line in lines)


ODD = {
    "plain": table(),
    "unit separator": table("\x1f"),
    "final separators": table(ending="|"),
    "some final separators": table(ending="|").replace("|batch|\n", "|batch\n", 40),
    "comma": table(",").replace("cpu=2,mem=4G,node=1", "cpu=2"),
    "line ends in names": table(names=[(k, "a\nb") for k in range(20, 91, 7)]),
    "long lines in names": table(names=[(k, "a\n" + "b" * 500) for k in range(15, 91, 15)]),
    "separators in names": table(names=[(30, "x|y"), (60, "|")]),
    "quotes, tabs and accents": table(names=[(3, '"a'), (40, '"b"'), (41, "a\tb"), (80, "é")]),
    "colours": table(names=[(30, "\x1b[0m")]),
    "Windows": table().replace("\n", "\r\n"),
    "repeated heading": table() + table(),
    "bad lines": table().replace("\n50|", "\n50|5|").replace("\n70|", "\nseventy|"),
    "blank lines": table().replace("\n33|", "\n\n  \n33|"),
    "Latin-1": table(names=[(50, "\xe9")]).encode("latin-1"),
}  # fmt: skip


def read(path):
    log = read_log(path, skip_bad_lines=True)
    counts = dict(log.dropped), dict(log.changed), dict(log.noticed)
    return {name: values.tolist() for name, values in log.columns.items()}, dict(log.names), log.bad_lines, counts


@pytest.mark.parametrize("odd", ODD)
def test_simple_blocks__give_the_log_of_single_rows(odd, tmp_path, monkeypatch):
    path, content = tmp_path / "jobs.txt", ODD[odd]
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    plain, found = csv_rows.Blocks.plain, []
    monkeypatch.setattr(csv_rows.Blocks, "plain", lambda *_: None)
    expected = read(path)
    assert len(expected[0]["submit"]) >= 88
    monkeypatch.setattr(files, "_CHUNK", 700)
    monkeypatch.setattr(files, "_LATER_CHUNKS", 900)
    monkeypatch.setattr(rows, "ROWS_AT_ONCE", 25)
    monkeypatch.setattr(csv_rows.Blocks, "plain", lambda *given: found.append(plain(*given)) or found[-1])
    assert read(path) == expected
    assert any(found), "some block was simple"


def test_bad_value_in_a_simple_block__is_told_with_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_CHUNK", 700)
    monkeypatch.setattr(files, "_LATER_CHUNKS", 900)
    (tmp_path / "jobs.txt").write_text(table().replace("\n70|user0|COMPLETED", "\n70|user0|DONE"))
    log = read_log(tmp_path / "jobs.txt", skip_bad_lines=True)
    assert [(bad.line, bad.text.split("|")[:3]) for bad in log.bad_lines] == [(140, ["70", "user0", "DONE"])]
    with pytest.raises(LogError) as caught:
        read_log(tmp_path / "jobs.txt")
    assert caught.value.code == "bad_line"
