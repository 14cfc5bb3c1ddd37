"""Damaged logs of every format: no traceback, no record that is not counted, and no number of an undamaged line that changes."""

import random
from collections import Counter

import pytest

import walltime as wt
from tests.batch_text import COBALT, LSF_ROWS, MAPPING, PBS, TABLE
from tests.cli import HEADER, record
from tests.slurm_text import HEADING, ROWS
from walltime.logs import read_log

PIECES = (
    b"|",
    b",",
    b'"',
    b"'",
    b";",
    b" ",
    b"=",
    b"-",
    b"\xff",
    b"\x1f",
    b"\x1b[2J",
    b"9" * 20,
    b"1e99",
    b"nan",
    b"None",
    b"\t",
    b"[",
    b".",
    b"\xe2\x80\xae",
)
SLURM = [row for k, row in enumerate(ROWS) if k != 14]  # each number of a job once
PBS_ROWS = [line for line in PBS.splitlines() if "[" not in line]
TABLE_ROWS = TABLE.splitlines()
COBALT_ROWS = COBALT.splitlines()
FORMATS = {
    "slurm": ([HEADING], SLURM),
    "slurm, texts inside": (
        ["|".join([*HEADING.split("|")[-2:], *HEADING.split("|")[:-2]])],
        ["|".join([*row.split("|")[-2:], *row.split("|")[:-2]]) for row in SLURM],
    ),
    "pbs": ([], PBS_ROWS),
    "lsf": ([], [row for row in LSF_ROWS if " 3 5000 " not in row]),
    "table": ([TABLE_ROWS[0]], TABLE_ROWS[1:]),
    "quoted": (COBALT_ROWS[:1], [COBALT_ROWS[1].replace("101", str(number)) for number in range(101, 106)]),
    "swf": (HEADER.splitlines(), [record(k, 10 * k, 5, 2, 9).strip() for k in range(1, 8)]),
}


def damaged(line: bytes, rng: random.Random) -> bytes:
    """The line with one to three mutations; it stays one line."""
    for _ in range(rng.randint(1, 3)):
        a, b = sorted((rng.randint(0, len(line)), rng.randint(0, len(line))))
        b = min(b, a + rng.choice((1, 2, 10, 100)))
        match rng.randrange(7):
            case 0:
                line = line[:a] + line[b:]
            case 1:
                line = line[:a] + rng.choice(PIECES) + line[a:]
            case 2:
                line = line[:a] + rng.choice(PIECES) + line[b:]
            case 3:
                line = line[:a] + line[a:b] * 2 + line[b:]
            case 4:
                line = line[:a]
            case 5:
                line = line[:a] + bytes([rng.randrange(1, 256)]) + line[a + 1 :]
            case 6:
                other = sorted((rng.randint(0, len(line)), rng.randint(0, len(line))))
                line = line[:a] + line[other[0] : other[0] + 8] + line[a:]
    return line.replace(b"\n", b" ").replace(b"\0", b" ")


def facts(log):
    """Of each record its number, times, size and user."""
    begin = log.header.unix_start_time or 0
    columns = [log.column(name).tolist() for name in ("job_id", "submit", "wait", "runtime", "requested", "allocated_procs", "user")]
    users = log.names.get("user")
    return [
        (job, submit + begin if submit >= 0 else -1, *rest, users[user - 1] if users and user > 0 else user)
        for job, submit, *rest, user in zip(*columns, strict=True)
    ]


def check(tmp_path, name, seed, files, options):
    heading, rows = FORMATS[name]
    options = options | {"skip_bad_lines": True}
    path = tmp_path / "log.txt"
    path.write_text("\n".join([*heading, *rows]) + "\n")
    whole = Counter(facts(read_log(path, **options)))
    of_line = []
    for row in rows:  # what each line alone becomes
        path.write_text("\n".join([*heading, row]) + "\n")
        try:
            found = Counter(facts(read_log(path, **options)))
        except wt.LogError:
            found = Counter()
        of_line.append(found & whole)
    rng = random.Random(f"{name} {seed}")
    mutations = 0
    for _ in range(files):
        chosen = set(rng.sample(range(len(rows)), rng.randint(1, 3)))
        lines = [damaged(row.encode(), rng) if k in chosen else row.encode() for k, row in enumerate(rows)]
        mutations += len(chosen)
        path.write_bytes(b"\n".join([*map(str.encode, heading), *lines]) + b"\n")
        try:
            log = read_log(path, **options)
            log.to_workload(procs=4096)
        except (wt.LogError, wt.WorkloadError):
            continue  # nothing is left of it
        present = sum(bool(line.strip()) and not (name == "swf" and line.lstrip().startswith(b";")) for line in lines)
        counted = log.records + sum(log.dropped.values()) + len(log.bad_lines)
        joined = dict(log.noticed).get("newline_in_text", 0)
        assert counted == present or (joined and present - len(chosen) <= counted <= present), (name, lines)
        got = Counter(facts(log))
        for k, wanted in enumerate(of_line):
            steps = "105" in rows[k] and name.startswith("slurm")  # a lost start, told by another line
            if k not in chosen and not steps and wanted and not joined:
                assert all(one in got for one in wanted), (name, rows[k], lines)
    return mutations


@pytest.fixture
def options(tmp_path):
    (tmp_path / "map.toml").write_text(MAPPING)
    return lambda name: {"mapping": tmp_path / "map.toml"} if name == "table" else {}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_damaged_lines(tmp_path, name, options):
    assert check(tmp_path, name, 1, 10, options(name)) > 12


@pytest.mark.nightly
@pytest.mark.parametrize("name", FORMATS)
def test_many_damaged_lines(tmp_path, name, options):
    """Over 10,000 of them, all formats together; for logs of Slurm, each file takes a tenth of a second."""
    assert check(tmp_path, name, 2, 600 if name.startswith("slurm") else 2000, options(name)) > 1000
