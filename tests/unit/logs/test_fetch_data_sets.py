"""Files of data sets from a local server, in the place of Zenodo and of others: listed, downloaded, resumed, checked."""

import hashlib
import http.server
import json
import threading

import pytest

from tests.cli import call
from tests.errors import raises
from walltime.errors import LogError
from walltime.logs.catalogue import shipped
from walltime.logs.fetch import RECORD, DataFile, fetch_file

PARQUET = b"PAR1" + bytes(range(256)) * 400 + b"PAR1"


class Zenodo(http.server.ThreadingHTTPServer):
    """A server of one record with one file; it hangs up after `cut` bytes, once."""

    record: bytes | None = None
    body = PARQUET
    cut = 0
    ranges: list


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        if self.path.startswith("/api/records/") and not self.path.endswith("/content"):
            content, tag = server.record, '"record"'
        elif "24_04" in self.path or self.path == "/some/table.csv":
            content, tag = server.body, '"file"'
        else:
            content = None
        if content is None:
            self.send_error(404)
            return
        server.ranges.append(self.headers.get("Range"))
        begin = int(self.headers["Range"].removeprefix("bytes=").rstrip("-")) if self.headers["Range"] else 0
        self.send_response(206 if begin else 200)
        self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(content) - begin))
        self.end_headers()
        if tag == '"file"' and server.cut:
            content, server.cut = content[: server.cut], 0
            self.close_connection = True
        self.wfile.write(content[begin:])

    def log_message(self, *args):
        pass


@pytest.fixture
def zenodo(monkeypatch, tmp_path):
    server = Zenodo(("127.0.0.1", 0), Handler)
    server.ranges = []
    here = f"http://127.0.0.1:{server.server_port}"
    server.here = here
    server.record = record_of(here, PARQUET)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("WALLTIME_ZENODO", here)
    monkeypatch.setenv("WALLTIME_LOGS", str(tmp_path / "logs"))
    yield server
    server.shutdown()
    server.server_close()


def record_of(here, body):
    """A record of Zenodo with a file, as its interface describes it."""
    number = shipped()["f-data"].about.zenodo
    file = {
        "key": "24_04.parquet",
        "size": len(body),
        "checksum": f"md5:{hashlib.md5(body, usedforsecurity=False).hexdigest()}",
        "links": {"self": f"{here}/api/records/{number}/files/24_04.parquet/content"},
    }
    return json.dumps({"id": number, "metadata": {"license": {"id": "cc-by-4.0"}}, "files": [file]}).encode()


def test_fetch__lists_the_files_of_a_record_with_its_licence(zenodo, capsys):
    status, out, err = call(capsys, "fetch", "f-data", "--json")
    assert status == 0, err
    said = json.loads(out)
    assert said["licence"] == "cc-by-4.0"
    assert [(one["name"], one["size"], one["here"]) for one in said["files"]] == [("24_04.parquet", len(PARQUET), False)]
    assert "24_04.parquet" in call(capsys, "fetch", "f-data")[1]


def test_fetch__downloads_a_file_and_goes_on_after_a_cut(zenodo, tmp_path, capsys):
    zenodo.cut = 20_000
    status, _, err = call(capsys, "fetch", "f-data", "24_*")
    assert (status, err.count("\n")) == (1, 1), err
    assert "cut after" in err
    status, out, err = call(capsys, "fetch", "f-data", "24_*", "--json")
    assert status == 0, err
    assert zenodo.ranges[-1] == "bytes=16384-"
    [got] = json.loads(out)["files"]
    assert (tmp_path / "logs" / "f-data" / "24_04.parquet").read_bytes() == PARQUET
    assert got["verified"] == "data set's page"


def test_fetch__keeps_nothing_whose_checksum_is_another(zenodo, tmp_path, capsys):
    zenodo.body = PARQUET[:-1] + b"2"
    status, _, err = call(capsys, "fetch", "f-data", "24_04.parquet")
    assert (status, err.count("\n")) == (1, 1), err
    assert "checksum" in err
    assert not list((tmp_path / "logs" / "f-data").glob("24_04*"))


@pytest.mark.parametrize("record", [b"", b"[]", b'{"files": [{"key": "x"}]}', b'{"files": 3}', None])
def test_fetch__says_in_one_line_that_a_record_is_none(zenodo, record, capsys):
    zenodo.record = record
    status, _, err = call(capsys, "fetch", "f-data")
    assert (status, err.count("\n")) == (1, 1), err


@pytest.mark.parametrize("words", [("f-data", "no_such"), ("eagle",), ("KTH-SP2", "x.csv")])
def test_fetch__says_in_one_line_what_it_cannot_download(zenodo, words, capsys):
    status, _, err = call(capsys, "fetch", *words)
    assert status in (1, 2)
    assert err.count("\n") == 1, err


def test_file__without_a_known_checksum_is_recorded_and_held_against_that(zenodo, tmp_path):
    file = DataFile("table.csv", f"{zenodo.here}/some/table.csv")
    path, verified = fetch_file("lassen", file)
    assert (path.read_bytes(), verified) == (PARQUET, "first download")
    recorded = json.loads((tmp_path / "logs" / "lassen" / RECORD).read_text())
    assert recorded == {"table.csv": hashlib.sha256(PARQUET).hexdigest()}
    path.unlink()
    zenodo.body = b"other"
    with raises(LogError, "wrong_checksum"):
        fetch_file("lassen", file)


def test_file__that_would_lie_elsewhere_is_refused(zenodo):
    with raises(LogError, "wrong_file_name"):
        fetch_file("lassen", DataFile("../x", f"{zenodo.here}/some/table.csv"))


def test_list__says_where_size_or_licence_are_not_stated_and_what_it_can_download(capsys):
    sets = {one["name"]: one for one in json.loads(call(capsys, "fetch", "--json")[1])["data_sets"]}
    assert {name for name, one in sets.items() if one["fetched"]} == {"f-data", "pm100", "adastra", "lassen", "philly"}
    assert "not stated" in call(capsys, "fetch", "--verbose")[1]
