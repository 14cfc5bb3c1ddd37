"""Reading logs: what is kept of a file, and the one line that says what is wrong with a bad one."""

import gzip
import hashlib
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.errors import raises
from tests.traces import trace_names, trace_path
from walltime.errors import LogError
from walltime.logs import Comment, SwfLog, read_log, read_swf
from walltime.workload import SWF_COLUMNS

GOOD = "1 0 3 60 4 -1 -1 4 90 -1 1 7 -1 -1 -1 -1 -1 -1"
SECOND = "2 5 0 30 2 -1 -1 2 40 -1 1 8 -1 -1 -1 -1 -1 -1"
NAMES = [column.name for column in SWF_COLUMNS]


def record(**fields) -> str:
    values = dict(zip(NAMES, GOOD.split(), strict=True)) | {name: str(value) for name, value in fields.items()}
    return " ".join(values[name] for name in NAMES)


@pytest.fixture
def written(tmp_path):
    def write(content, name="log.swf"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def error_of(path, **options) -> str:
    with pytest.raises(LogError) as caught:
        read_swf(path, **options)
    message = str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert "\n" not in message
    assert message.startswith(str(path) + ":")
    assert ";" in message, "the message must say what to do"
    return message.removeprefix(f"{path}:")


# What is kept.


def test_read__keeps_all_18_fields(written):
    line = " ".join(str(n) for n in range(1, 19))
    log = read_swf(written(line + "\n"))
    assert len(log) == log.records == 1
    assert [log.column(name).tolist() for name in NAMES] == [[n] for n in range(1, 19)]
    assert all(log.column(name).dtype == np.int64 for name in NAMES)


def test_read__does_not_store_columns_without_known_values(written):
    log = read_swf(written(GOOD))
    assert "memory" not in log.columns
    assert log.column("memory").tolist() == [-1]
    assert "user" in log.columns


def test_read__field_unknown_in_the_first_block_only_is_stored(written):
    log = read_swf(written("\n".join([GOOD] * 20_000 + [record(group=9)])))
    assert len(log) == 20_001
    assert log.column("group").tolist() == [-1] * 20_000 + [9]


def test_read__whole_floats_are_integers(written):
    log = read_swf(written(f"{record(cpu_time='489.00')}\n{record(cpu_time='1e3')}"))
    assert log.column("cpu_time").dtype == np.int64
    assert log.column("cpu_time").tolist() == [489, 1000]


def test_read__fractions_make_a_float_column(written):
    log = read_swf(written(f"{record(submit='0.5')}\n{record(submit='7')}\n{record(submit='.25')}"))
    assert log.column("submit").dtype == np.float64
    assert log.column("submit").tolist() == [0.5, 7.0, 0.25]


def test_read__columns_are_read_only(written):
    log = read_swf(written(GOOD))
    for name in NAMES:
        with pytest.raises(ValueError, match="read-only"):
            log.column(name)[0] = 3


def test_read__unknown_column_name_is_a_key_error(written):
    with pytest.raises(KeyError, match="walltime"):
        read_swf(written(GOOD)).column("walltime")


def test_read__checksum_is_that_of_the_stored_file(written):
    plain = written(GOOD)
    packed = written(gzip.compress(GOOD.encode()), "log.swf.gz")
    for path in (plain, packed):
        assert read_swf(path).sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("name", "short"),
    [("KTH.swf.gz", "KTH"), ("KTH.swf", "KTH"), ("a.b.SWF.GZ", "a.b"), ("plain", "plain"), (".swf", ".swf"), ("x.txt", "x.txt")],
)
def test_read__name_is_the_file_name_without_endings(written, name, short):
    assert read_swf(written(GOOD, name)).name == short


def test_read__gzip_is_recognised_by_its_content(written):
    assert len(read_swf(written(gzip.compress(GOOD.encode()), "misnamed.swf"))) == 1
    assert len(read_swf(written(GOOD, "misnamed.swf.gz"))) == 1


def test_read__gzip_of_several_members_is_one_log(written):
    path = written(gzip.compress(f"{GOOD}\n".encode()) + gzip.compress(SECOND.encode()), "log.swf.gz")
    assert read_swf(path).column("job_id").tolist() == [1, 2]


@pytest.mark.parametrize(
    "text",
    [
        f"; a\r\n{GOOD}\r\n{SECOND}\r\n",
        "; a\n" + GOOD.replace(" ", "\t") + "\n" + SECOND.replace(" ", " \t  ") + "\n",
        f"; a\n  {GOOD}  \n\t{SECOND}\t",
        f"\n\n; a\n\n{GOOD}\n   \n{SECOND}\n\n\n",
        f"; a\n{GOOD}\n{SECOND}",
        f"\ufeff; a\n{GOOD}\n{SECOND}\n",
        f"; a\n{GOOD.replace(' ', chr(12))}\n{SECOND}\n",
    ],
    ids=["crlf", "tabs", "blanks", "blank-lines", "no-final-newline", "byte-order-mark", "form-feeds"],
)
def test_read__line_ends_and_blanks_do_not_matter(written, text):
    assert read_swf(written(text)) == read_swf(written(f"; a\n{GOOD}\n{SECOND}\n", "plain.swf"))


def test_read__comments_keep_their_place_and_their_blanks(written):
    log = read_swf(written(f";  A: 1  \n  ; B\n{GOOD}\n; between\n;\n{SECOND}\n; after"))
    assert log.comments == (
        Comment(0, ";  A: 1  "),
        Comment(0, "  ; B"),
        Comment(1, "; between"),
        Comment(1, ";"),
        Comment(2, "; after"),
    )
    assert log.header_lines == (";  A: 1  ", "  ; B")


@pytest.mark.slow
def test_read__comments_keep_their_place_over_blocks_and_skipped_lines(written):
    lines = [line for n in range(30_000) for line in (f"; before {n}", "bad", GOOD)]
    log = read_swf(written("\n".join(lines)), skip_bad_lines=True)
    assert log.comments == tuple(Comment(n, f"; before {n}") for n in range(30_000))
    assert [bad.line for bad in log.bad_lines] == [3 * n + 2 for n in range(30_000)]


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_read__comments_may_have_accents(written, encoding):
    log = read_swf(written(f"; Installation: Université du Luxembourg\n{GOOD}".encode(encoding)))
    assert log.header["Installation"] == ("Université du Luxembourg",)


def test_read__comparison_with_something_else_is_false(written):
    assert read_swf(written(GOOD)) != GOOD


@pytest.mark.slow
def test_read__takes_little_more_memory_than_the_columns(written):
    path = written("\n".join(f"{n} {n} 3 60 4 5 6 4 90 -1 1 7 8 9 1 2 -1 -1" for n in range(60_000)))
    read_swf(path)
    tracemalloc.start()
    log = read_swf(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Besides, the 2.7 MB of the file as text, and as much again that is read ahead, as the threads happen to take turns.
    assert peak < sum(values.nbytes for values in log.columns.values()) + 12_000_000


# The header.


def test_header__keys_may_repeat_and_their_case_does_not_matter(written):
    log = read_swf(written(f"; maxprocs: 8\n; Note: one\n;Note:two\n; QUEUE : 1 batch\n{GOOD}"))
    assert dict(log.header) == {"MaxProcs": ("8",), "Note": ("one", "two"), "Queue": ("1 batch",)}
    assert log.header["MAXPROCS"] == ("8",)
    assert "note" in log.header
    assert log.header.get("Version") is None


def test_header__line_without_key_continues_the_value(written):
    header = "; Information: http://www.pdc.kth.se/\n;              http://www.cs.huji.ac.il/labs/\n; Conversion: somebody\n"
    log = read_swf(written(header + GOOD))
    assert dict(log.header) == {
        "Information": ("http://www.pdc.kth.se/\nhttp://www.cs.huji.ac.il/labs/",),
        "Conversion": ("somebody",),
    }


def test_header__notes_of_cleaned_logs_have_several_lines(written):
    header = [
        ";",
        "; Note: THIS IS CLEANED",
        ";       The filters: see below",
        ";       warning: a colon",
        ";         job<=14",
        ";",
        "; loose",
    ]
    log = read_swf(written("\n".join([*header, GOOD])))
    assert log.header["Note"] == ("THIS IS CLEANED\nThe filters: see below\nwarning: a colon\njob<=14",)


def test_header__key_of_somebodys_own_ends_the_value(written):
    log = read_swf(written(f"; MaxProcs: 8\n; Derived: something\n; Note: x\n{GOOD}"))
    assert dict(log.header) == {"MaxProcs": ("8",), "Note": ("x",)}


def test_header__indented_keys_are_keys(written):
    header = [";   --- converted ---", ";       Version: 2.2", ";      Computer: Bull", ";    Conversion: J", ";", ";  Installation: UNILU"]
    log = read_swf(written("\n".join([*header, "; MaxProcs: 20", GOOD])))
    assert dict(log.header) == {
        "Version": ("2.2",),
        "Computer": ("Bull",),
        "Conversion": ("J",),
        "Installation": ("UNILU",),
        "MaxProcs": ("20",),
    }


@pytest.mark.parametrize(
    ("header", "size"),
    [
        ("; MaxProcs: 8\n; MaxNodes: 4", 8),
        ("; MaxNodes: 4", 4),
        ("; MaxProcs: -1\n; MaxNodes: 4", 4),
        ("; MaxProcs: 0\n; MaxNodes: unknown", None),
        ("; MaxProcs: 8.5", None),
        ("; MaxProcs: 512 (338 for batch)", 512),
        ("; MaxProcs:\n; MaxProcs: 16", 16),
        ("; MaxProcs: 1,024", 1024),
        ("; MaxProcs: 1 024", 1024),
        ("; MaxProcs: 12'288 cores", 12_288),
        ("; MaxProcs: 128 (64 nodes of 2)", 128),
        ("", None),
    ],
)
def test_header__size_of_the_machine(written, header, size):
    assert read_swf(written(f"{header}\n{GOOD}")).header.machine_procs == size


@pytest.mark.parametrize(
    ("header", "zone"),
    [
        ("; TimeZone: 3600\n; TimeZoneString: Europe/Stockholm", "Europe/Stockholm"),
        ("; TimeZone: -25200", "-25200"),
        ("; TimeZoneString:\n; TimeZone: 3600", "3600"),
        ("; TimeZoneString: 3600", "3600"),
        ("; TimeZone: 99999999", "UTC"),
        ("; TimeZone: summer", "UTC"),
        ("", "UTC"),
    ],
)
def test_header__time_zone(written, header, zone):
    assert read_swf(written(f"{header}\n{GOOD}")).header.time_zone == zone


@pytest.mark.parametrize(("value", "start"), [("843480031", 843480031), ("0", 0), ("-1", None), ("unknown", None)])
def test_header__unix_start_time(written, value, start):
    assert read_swf(written(f"; UnixStartTime: {value}\n{GOOD}")).header.unix_start_time == start


# Bad lines.


def test_bad_line__too_few_fields(golden, written):
    message = error_of(written(f"; x\n{GOOD}\n1 2 3\n"))
    golden("info", message)


def test_bad_line__far_too_many_fields(written):
    assert error_of(written(f"{GOOD}{' 0' * 83}\n")).startswith("1: 101 fields instead of 18;")


@pytest.mark.parametrize("token", ["nan", "1e300"])
def test_bad_line__field_beyond_the_18_that_is_no_number(golden, written, token):
    golden("info", error_of(written(f"{GOOD}\n{GOOD} 0 {token}\n")))


def test_bad_line__many_lines_of_another_width(written):
    assert error_of(written("1 0 3 60\n2 0 3 60\n")).startswith("1: 4 fields instead of 18;")


def test_bad_line__one_word(written):
    assert error_of(written(f"{GOOD}\n<html>\n")).startswith("2: 1 field instead of 18;")


def test_bad_line__letters_in_a_number(golden, written):
    golden("info", error_of(written(f"{GOOD}\n{record(runtime='12h')}")))


@pytest.mark.parametrize("token", ["1.2.3", "1-2", "--1", "-", "+", "e5", "1e", ".", "0x10", "1,5", '"1"', "1e5.5", "٣"])
def test_bad_line__malformed_number(golden, written, token):
    golden("info", error_of(written(record(user=token))))


def test_bad_line__underscore(golden, written):
    golden("info", error_of(written(record(submit="1_000"))))


@pytest.mark.parametrize("token", ["nan", "NaN", "-nan", "inf", "-Infinity"])
def test_bad_line__not_finite(golden, written, token):
    golden("info", error_of(written(record(cpu_time=token))))


@pytest.mark.parametrize("token", ["9007199254740992", "1e400", "-99999999999999999999"])
def test_bad_line__number_too_large(golden, written, token):
    golden("info", error_of(written(record(memory=token))))


@pytest.mark.parametrize("name", ["submit", "runtime", "requested"])
@pytest.mark.parametrize("token", ["-2", "-0.5"])
def test_bad_line__negative_time(golden, written, name, token):
    golden("info", error_of(written(record(**{name: token}))))


@pytest.mark.parametrize("name", ["job_id", "allocated_procs", "requested_procs", "status", "user", "queue", "preceding_job"])
def test_bad_line__fraction_of_something_counted(golden, written, name):
    golden("info", error_of(written(record(**{name: "1.5"}))))


def test_bad_line__of_two_faults_the_first_is_named(written):
    assert error_of(written(f"{record(submit=-5, runtime=-6)}\nbad\n")).startswith("1: field 2 (submit) must be")
    assert error_of(written(f"bad\n{record(submit=-5)}\n")).startswith("1: 1 field")


@pytest.mark.slow
def test_bad_line__its_number_counts_comments_and_blank_lines_over_blocks(written):
    assert error_of(written(f"; x\n\n{GOOD}\n" * 20_000 + "bad")).startswith("60001: 1 field")


def test_bad_line__long_token_is_shortened(written):
    assert len(error_of(written(record(user="x" * 5000)))) < 200


def test_bad_line__bytes_that_are_no_text(golden, written):
    message = error_of(written(GOOD.encode() + b"\n" + GOOD.replace("60", "\xff").encode("latin-1")))
    golden("info", message)


def test_bad_line__separators_of_other_alphabets_are_no_blanks(written):
    assert "17 fields instead of 18" in error_of(written(GOOD.replace("0 3", "0\x1c3")))


def test_skip_bad_lines__are_left_out_and_listed(golden, written):
    bad = record(runtime="x")
    log = read_swf(written(f"; h\n{GOOD}\nshort line\n; c\n{bad}\n{SECOND}\n{record(submit=-3)}"), skip_bad_lines=True)
    assert log.column("job_id").tolist() == [1, 2]
    assert log.comments == (Comment(0, "; h"), Comment(1, "; c"))
    golden("info", log.bad_lines)


def test_skip_bad_lines__changes_nothing_in_a_good_log(written):
    path = written(f"; h\n{GOOD}\n{SECOND}")
    log = read_swf(path, skip_bad_lines=True)
    assert log == read_swf(path)
    assert log.bad_lines == ()


def test_skip_bad_lines__reads_the_rest_of_a_block_as_it_would_be_read_without(written):
    lines = [record(cpu_time=token, submit="0.1") for token in ("0.1", "1e-3", "123456789.123456789", "4503599627370497.5", "+7", "8.")]
    clean = read_swf(written("\n".join(lines), "clean.swf"))
    assert read_swf(written("\n".join([*lines, "bad"])), skip_bad_lines=True) == clean


def test_skip_bad_lines__nothing_but_bad_lines_is_an_error(golden, written):
    message = error_of(written("a\nb\n"), skip_bad_lines=True)
    golden("info", message)


# Files that are no log.


def test_bad_file__missing(golden, tmp_path):
    golden("info", error_of(tmp_path / "nowhere.swf"))


def test_bad_file__directory(golden, tmp_path):
    golden("info", error_of(tmp_path))


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(5, "Input/output error")])
def test_bad_file__system_error(golden, written, monkeypatch, error):
    path = written(GOOD)

    def refuse(*_, **__):
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", refuse)
        said = error_of(path)
    golden("info", said)


def test_bad_file__not_a_folder_on_the_way(golden, written):
    golden("info", error_of(written(GOOD) / "log.swf"))


@pytest.mark.parametrize("content", [b"", gzip.compress(b"")], ids=["plain", "gzip"])
def test_bad_file__empty(written, content):
    assert error_of(written(content)).startswith(" the file is empty;")


@pytest.mark.parametrize("content", ["; Version: 2.2\n; MaxProcs: 8\n", "\n \n", "; x"])
def test_bad_file__no_records(golden, written, content):
    golden("info", error_of(written(content)))


@pytest.mark.parametrize("skip", [False, True])
def test_bad_file__binary(golden, written, skip):
    golden("info", error_of(written(b"\x7fELF\x02\x01\x01\x00\x00"), skip_bad_lines=skip))


def test_nul_bytes__damage_only_their_lines(written):
    path = written(f"{GOOD}\n{GOOD}\n".encode() + b"1 \x00 3")
    with raises(LogError, "bad_line", 3):
        read_log(path)
    log = read_log(path, skip_bad_lines=True)
    assert (log.records, [bad.line for bad in log.bad_lines]) == (2, [3])


def test_bad_file__binary_inside_gzip(written):
    assert "not a text log" in error_of(written(gzip.compress(b"\x00\x01" * 500)))


def test_bad_file__endless_line(golden, written):
    golden("info", error_of(written(f"{GOOD}\n".encode() + b"1 " * 1_000_000)))


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.9, 0.999])
def test_bad_file__gzip_cut_off(golden, written, share, skip):
    packed = gzip.compress("\n".join(record(job_id=n, user=n * n % 977) for n in range(2000)).encode())
    path = written(packed[: max(3, int(share * len(packed)))], "log.swf.gz")
    golden("info", error_of(path, skip_bad_lines=skip))


@pytest.mark.parametrize("place", [12, -6, -2])
def test_bad_file__gzip_damaged(written, place):
    packed = bytearray(gzip.compress("\n".join(record(job_id=n) for n in range(2000)).encode()))
    packed[place] ^= 0xFF
    with raises(LogError, "damaged_archive", "log.swf.gz"):
        read_swf(written(bytes(packed), "log.swf.gz"))


def test_bad_file__something_after_the_gzip(written):
    with raises(LogError, "damaged_archive", "log.swf.gz"):
        read_swf(written(gzip.compress(GOOD.encode()) + b"rest", "log.swf.gz"))


def test_bad_file__name_with_a_line_break_stays_on_one_line(golden, tmp_path):
    with pytest.raises(LogError) as caught:
        read_swf(tmp_path / "a\nb.swf")
    golden("info", str(caught.value))
    assert "\n" not in str(caught.value)


@given(
    st.lists(
        st.lists(
            st.sampled_from(["1", "-1", "0.5", "-2", "1e3", "nan", "x", "1_0", ";", "\t", "\x1c", "é", "\r"]), min_size=17, max_size=19
        ).map(" ".join)
        | st.sampled_from([GOOD, SECOND, "", "; note", record(cpu_time="2.5")]),
        max_size=8,
    )
)
def test_any_text__is_a_log_or_an_error_of_one_line(tmp_path_factory, lines):
    path = tmp_path_factory.getbasetemp() / "any-text.swf"
    path.write_bytes("\n".join(lines).encode())
    try:
        log = read_swf(path, skip_bad_lines=True)
    except LogError:
        error_of(path, skip_bad_lines=True)
        error_of(path)
        return
    if log.bad_lines:
        assert error_of(path).startswith(f"{log.bad_lines[0].line}: {log.bad_lines[0].reason};")
    else:
        assert read_swf(path) == log
    blank = sum(not line.strip() for line in lines)
    assert len(log) + len(log.comments) + len(log.bad_lines) + blank == len(lines)


# Logs made by hand.


def test_log__columns_must_have_one_length():
    with raises(LogError, "wrong_length", "submit"):
        SwfLog(records=2, columns={"submit": [0]})


def test_log__column_must_be_one_of_the_format():
    with raises(LogError, "unknown_column", "start"):
        SwfLog(records=1, columns={"start": [0]})


@pytest.mark.parametrize(
    ("name", "value"), [("submit", -2), ("user", 1.5), ("cpu_time", float("nan")), ("memory", 2**60), ("memory", -(2**63)), ("user", "x")]
)
def test_log__values_that_no_log_can_hold_are_refused(name, value):
    with raises(LogError, "wrong_type" if value == "x" else "wrong_field", name):
        SwfLog(records=1, columns={name: [value]})


@pytest.mark.parametrize("text", ["no semicolon", "; two\nlines", "; nul\0", "; return\r"])
def test_log__comment_must_be_one(text):
    with raises(LogError, "wrong_comment"):
        SwfLog(records=0, columns={}, comments=(Comment(0, text),))


def test_log__comment_must_stand_inside():
    with raises(LogError, "wrong_comment", "2"):
        SwfLog(records=1, columns={}, comments=(Comment(2, ";"),))


# Real logs.


def test_kth__facts_of_the_log():
    log = read_swf(trace_path("KTH-SP2-1996-2"))
    runtime, requested = log.column("runtime"), log.column("requested")
    allocated, asked = log.column("allocated_procs"), log.column("requested_procs")
    assert len(log) == 28_489
    assert np.count_nonzero(log.column("status") == 0) == 7_948
    assert np.count_nonzero(runtime == 0) == 8
    assert np.count_nonzero(runtime < 90) == 9_360
    assert np.count_nonzero(requested <= 7200) == 16_127
    assert np.count_nonzero(runtime > requested) == 475
    assert np.count_nonzero((100 * runtime) // requested == 0) == 2_332
    assert np.count_nonzero(allocated != asked) == 219
    values, counts = np.unique(requested, return_counts=True)
    assert (len(values), values[np.argmax(counts)]) == (271, 14_400)
    assert log.header.unix_start_time == 843_480_031
    assert log.header.time_zone == "Europe/Stockholm"
    assert log.header.machine_procs == 100
    assert log.header["information"] == ("http://www.pdc.kth.se/\nhttp://www.cs.huji.ac.il/labs/parallel/workload/",)
    assert "memory" not in log.columns


@pytest.mark.slow
def test_cm5__header_and_fractions():
    log = read_swf(trace_path("LANL-CM5-1994-4.1-cln"))
    assert len(log.header["Queue"]) == 18
    assert log.header["Note"][-1].count("\n") == 4
    assert log.column("cpu_time")[:3].tolist() == [3436, 489, 516]


def test_gaia__indented_header():
    header = read_swf(trace_path("UniLu-Gaia-2014-1")).header
    assert (header.machine_procs, header.time_zone, header.unix_start_time) == (2004, "Europe/Luxembourg", 1_400_749_079)
    assert header["Version"] == ("2.2",)
    assert header["Note"] == ("Scheduler is OAR (http://oar.imag.fr/)",)
    assert len(header["Queue"]) == 3


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.nightly) if name.startswith(("SDSC-BLUE", "LANL")) else name for name in trace_names()]
    or ["any log"],
)
def test_every_trace__reads_and_round_trips(name, tmp_path):
    path = trace_path(name)
    log = read_swf(path)
    assert log.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    copy = tmp_path / name
    log.write(copy)
    assert read_swf(copy) == log
    jobs = log.to_workload()
    assert len(jobs) + sum(jobs.origin.dropped.values()) == jobs.origin.records == len(log)


@pytest.mark.parametrize("damage", [None, "two blanks", "a field less", "a field more", "a text", "no number", "beyond"])
def test_many_records__are_read_as_few_are(tmp_path, monkeypatch, damage):
    rng = np.random.default_rng(5)
    rows = [[k, 3 * k, -1, f"{rng.random() * 100:.2f}", 1, -1, -1, 1, 90, -1, 1, k % 7, 1, -1, -1, -1, -1, -1] for k in range(1, 301)]
    lines = [" ".join(map(str, row)) for row in rows]
    damaged = {
        "two blanks": lines[77].replace(" ", "  "),
        "a field less": lines[77].rsplit(" ", 1)[0],
        "a field more": f"{lines[77]} 5",
        "a text": f"{lines[77]} q_1d",
        "no number": lines[77].replace(" 90 ", " 9-0 "),
        "beyond": lines[77].replace(" 90 ", " 1e300 "),
    }
    lines[77] = damaged.get(damage, lines[77])
    path = tmp_path / "log.swf"
    path.write_text("; MaxProcs: 8\n" + "\n".join(lines) + "\n")
    few = read_swf(path, skip_bad_lines=True)
    monkeypatch.setattr("walltime.logs.swf_text.MANY", 10)
    many = read_swf(path, skip_bad_lines=True)
    assert many.records == few.records == (299 if damage in ("a field less", "no number", "beyond") else 300)
    assert few.columns.keys() == many.columns.keys()
    assert all(np.array_equal(few.columns[name], values) for name, values in many.columns.items())
    assert few.dropped == many.dropped


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_text_as_spreadsheets_write_it__is_read(written, encoding):
    assert read_swf(written(f"{GOOD}\n{GOOD}\n".encode(encoding))).records == 2
