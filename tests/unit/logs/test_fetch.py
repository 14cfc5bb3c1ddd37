"""Downloads against a local server: whole, resumed, checked, and one line for whatever goes wrong."""

import gzip
import hashlib
import http.server
import json
import socket
import threading

import pytest

from tests.errors import raises
from walltime.cli.main import run
from walltime.errors import LogError, PolicyError
from walltime.logs.catalogue import CATALOGUE, catalogue_entry, find_log
from walltime.logs.fetch import RECORD, fetch

ENTRY = catalogue_entry("KTH-SP2")
JOBS = "".join(f"{i} {i * 10} -1 {5 + i % 50} 1 -1 -1 1 100 -1 1 {i % 7} 1 -1 -1 -1 -1 -1\n" for i in range(1, 9001))
LOG = gzip.compress(f"; MaxProcs: 100\n; Acknowledge: the site\n{JOBS}".encode(), mtime=0)


class Server(http.server.ThreadingHTTPServer):
    """A mirror with one log; `cut_after` bytes it hangs up, as often as `cuts` says."""

    body = LOG
    cut_after = None
    cuts = 0
    status = None
    tags = ("ETag",)
    weak = ""
    heeds_if_range = True
    encoding = None
    ranges: list

    @property
    def versions(self):
        """What the server says of the version of its file: headers and values."""
        known = {
            "ETag": f'{self.weak}"{hashlib.sha256(self.body).hexdigest()[:9]}"',
            "Last-Modified": f"Mon, 01 Jan 2024 00:00:{len(self.body) % 60:02d} GMT",
        }
        return {name: known[name] for name in self.tags}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.ranges.append(self.headers.get("Range"))
        if server.status is not None or self.path != f"/{ENTRY.folder}/{ENTRY.file}":
            self.send_error(server.status or 404)
            return
        same = self.headers.get("If-Range") in (None, *server.versions.values()) or not server.heeds_if_range
        begin = int(self.headers["Range"].removeprefix("bytes=").rstrip("-")) if self.headers["Range"] and same else 0
        if begin >= len(server.body):
            self.send_error(416)
            return
        self.send_response(206 if begin else 200)
        for header, value in server.versions.items():
            self.send_header(header, value)
        if server.encoding:
            self.send_header("Content-Encoding", server.encoding)
        self.send_header("Content-Length", str(len(server.body) - begin))
        self.end_headers()
        rest = server.body[begin:]
        if server.cuts and server.cut_after is not None:
            server.cuts -= 1
            self.wfile.write(rest[: server.cut_after])
            self.wfile.flush()
            self.close_connection = True
            return
        self.wfile.write(rest)

    def log_message(self, *args):
        pass


@pytest.fixture
def mirror(monkeypatch, tmp_path):
    server = Server(("127.0.0.1", 0), Handler)
    server.ranges = []
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)  # it looks so often whether it is to end
    thread.start()
    monkeypatch.setenv("WALLTIME_ARCHIVE", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("WALLTIME_LOGS", str(tmp_path / "logs"))
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_fetch__stores_the_log_and_records_its_checksum(mirror, tmp_path):
    first = fetch("KTH-SP2")
    assert first.path.read_bytes() == LOG
    assert first.verified == "first download"
    assert json.loads((tmp_path / "logs" / RECORD).read_text()) == {ENTRY.file: hashlib.sha256(LOG).hexdigest()}
    assert fetch("KTH-SP2").verified == "earlier download"
    assert len(mirror.ranges) == 1, "a log that is there and right is not downloaded again"


def test_fetch__checks_against_the_catalogue_where_it_can(mirror, monkeypatch):
    right = hashlib.sha256(LOG).hexdigest()
    for known, good in ((right, True), ("0" * 64, False)):
        entries = [type(ENTRY)(**{**vars(entry), "sha256": known if entry is ENTRY else entry.sha256}) for entry in CATALOGUE]
        monkeypatch.setattr("walltime.logs.catalogue.CATALOGUE", tuple(entries))
        if good:
            assert fetch("KTH-SP2").verified == "catalogue"
        else:
            with raises(LogError, "wrong_checksum"):
                fetch("KTH-SP2")


def test_fetch__refuses_what_is_not_what_it_was(mirror):
    path = fetch("KTH-SP2").path
    path.unlink()
    mirror.body = LOG + b"more"
    with raises(LogError, "wrong_checksum"):
        fetch("KTH-SP2")
    assert not path.exists()
    assert sorted(p.name for p in path.parent.iterdir()) == [RECORD]


def test_fetch__goes_on_where_a_cut_connection_stopped(mirror, tmp_path):
    mirror.cut_after, mirror.cuts = len(LOG) - 1000, 1
    with raises(LogError, "broken_connection"):
        fetch("KTH-SP2")
    part = tmp_path / "logs" / f"{ENTRY.file}.part"
    have = part.stat().st_size
    assert 0 < have < len(LOG)
    assert fetch("KTH-SP2").path.read_bytes() == LOG
    assert mirror.ranges == [None, f"bytes={have}-"]
    assert sorted(p.name for p in part.parent.iterdir()) == sorted([ENTRY.file, RECORD])


NEW = gzip.compress(f"; MaxProcs: 100\n; Note: corrected\n{JOBS}".encode(), compresslevel=5, mtime=1)


@pytest.mark.parametrize("heeds", [True, False], ids=["heeds If-Range", "ignores it"])
@pytest.mark.parametrize("tags", [("ETag",), ("Last-Modified",), ("ETag", "Last-Modified"), ()], ids=["etag", "date", "both", "none"])
@pytest.mark.parametrize("new", [NEW, LOG[:40_000]], ids=["longer", "shorter"])
def test_fetch__a_file_that_changed_meanwhile_is_fetched_whole(mirror, heeds, tags, new):
    mirror.tags, mirror.heeds_if_range = tags, heeds
    mirror.cut_after, mirror.cuts = len(LOG) - 1000, 1
    with raises(LogError, "broken_connection"):
        fetch("KTH-SP2")
    mirror.body = new
    path = fetch("KTH-SP2").path
    assert path.read_bytes() == new
    assert sorted(p.name for p in path.parent.iterdir()) == sorted([path.name, RECORD])


@pytest.mark.parametrize(("tags", "weak"), [(("Last-Modified",), ""), (("ETag", "Last-Modified"), "W/")], ids=["none", "weak"])
def test_fetch__goes_on_by_the_date_where_there_is_no_strong_etag(mirror, tmp_path, tags, weak):
    mirror.tags, mirror.weak = tags, weak
    mirror.cut_after, mirror.cuts = len(LOG) - 1000, 1
    with raises(LogError, "broken_connection"):
        fetch("KTH-SP2")
    assert (tmp_path / "logs" / f"{ENTRY.file}.part.tag").read_text() == mirror.versions["Last-Modified"]
    assert fetch("KTH-SP2").path.read_bytes() == LOG
    assert len(mirror.ranges) == 2
    assert mirror.ranges[1] is not None


def test_fetch__keeps_a_compressed_file_as_it_is_stored(mirror):
    mirror.encoding = "x-gzip"
    assert fetch("KTH-SP2").path.read_bytes() == LOG


@pytest.mark.parametrize(("status", "message"), [(404, "missing_download"), (503, "server_refusal")])
def test_fetch__says_what_the_server_said(mirror, status, message):
    mirror.status = status
    with raises(LogError, message):
        fetch("KTH-SP2")


def test_fetch__without_a_network_says_so(monkeypatch, tmp_path):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    monkeypatch.setenv("WALLTIME_ARCHIVE", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("WALLTIME_LOGS", str(tmp_path))
    with raises(LogError, "unreachable_server"):
        fetch("KTH-SP2")


def test_fetch__of_an_unknown_name_lists_the_known_ones():
    with raises(PolicyError, "unknown_log", "KTH-SP2"):
        fetch("KHT")
    assert run(["fetch", "KHT"]) == 2


def test_fetched_name__is_good_as_a_trace(golden, mirror, capsys, monkeypatch):
    monkeypatch.delenv("WALLTIME_TRACES", raising=False)
    with raises(LogError, "missing_download", "KTH-SP2"):
        find_log("KTH-SP2")
    assert run(["fetch", "KTH-SP2"]) == 0
    out = capsys.readouterr().out
    golden("fetch", out)
    assert "header: the site" in out
    assert run(["info", "kth-sp2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["jobs"] == 9000


def test_catalogue__lists_names_files_and_what_is_here(golden, mirror, capsys):
    assert run(["fetch"]) == 0
    golden("fetch", capsys.readouterr().out)
    assert run(["fetch", "--json"]) == 0
    logs = json.loads(capsys.readouterr().out)["logs"]
    assert len({log["name"] for log in logs}) == len(logs) == len(CATALOGUE)
    assert all(log["address"].startswith("http://127.0.0.1") for log in logs)
