"""Letters to users: who gets one, what it says, and which files there are."""

import csv
from dataclasses import replace

import numpy as np
import pytest

import walltime as wt
from tests.cli import call
from tests.errors import raises
from walltime.accuracy.advice import advise_users
from walltime.accuracy.advice_gains import simulate_advice
from walltime.accuracy.letters import PLACEHOLDERS, letter, letters_answer, read_template, write_letters
from walltime.errors import OutputError, PolicyError

HOUR = 3600


def blocked(rounds=25):
    """Two processors; every 10 h a job of user 1 (runs 10 min, asks for 5 h) fits beside those of user 2 only with a short request."""
    submit, runtime, requested, procs, user = [], [], [], [], []
    for k in range(rounds):
        begin = k * 10 * HOUR
        for of, at, ran, asked, width in ((2, 0, 2 * HOUR, 2 * HOUR, 1), (2, 60, 2 * HOUR, 2 * HOUR, 2), (1, 120, 600, 5 * HOUR, 1)):
            submit.append(begin + at)
            runtime.append(ran)
            requested.append(asked)
            procs.append(width)
            user.append(of)
    made = wt.Workload.from_arrays(
        submit=submit, runtime=runtime, requested=requested, procs=procs, machine_procs=2, columns={"user": np.array(user)}
    )
    return replace(made, origin=replace(made.origin, name="site"))


def gains(jobs=None, names=None, copies=2):
    jobs = blocked() if jobs is None else jobs
    if names is not None:
        jobs = replace(jobs, origin=replace(jobs.origin, names={"user": names}))
    return simulate_advice(jobs, advise_users(jobs), copies=copies)


def test_gains__a_short_request_backfills():
    # with 5 h the job would delay the second one; it waits for both, 4 h less two minutes; with 10 min it starts at once
    [one] = gains().users
    assert (one.advice.user, one.before, one.after) == ("1", 4 * HOUR - 120, 0)
    assert one.helps


def test_letter__says_what_to_ask_for_and_what_it_saves(golden):
    found = gains()
    mail = letter(found, found.users[0])
    assert max(map(len, mail.splitlines())) <= 78
    text = " ".join(mail.split())
    golden("estimates", text)
    assert "$" not in text
    golden("estimates", letters_answer(found, 1))


def test_letters__files_and_their_tables(tmp_path):
    found = gains(names=("../=x", "two"))
    [path] = write_letters(tmp_path / "out", found, template="$user: $saved\n")
    assert path.name == "_x.txt"
    assert path.read_text() == "../=x: 3 h 58 min\n"
    [row] = csv.DictReader((tmp_path / "out" / "letters.csv").read_text().splitlines())
    assert (row["user"], row["file"], row["subject"]) == ("../=x", "_x.txt", "../=x: 3 h 58 min")
    [kind] = csv.DictReader((tmp_path / "out" / "kinds.csv").read_text().splitlines())
    assert (kind["ask_for_s"], kind["outran_percent"]) == ("600", "0.0")
    with raises(OutputError, "unwritable_file"):
        write_letters(tmp_path / "out", found)


def test_letters__nothing_is_advised_that_does_not_help(golden, tmp_path):
    jobs = blocked()
    alone = jobs.take(np.flatnonzero(jobs.columns["user"] == 1), "user 1")  # nobody waits
    found = gains(alone)
    assert [one.helps for one in found.users] == [False]
    assert write_letters(tmp_path / "out", found) == []
    golden("estimates", letters_answer(found, 0))


def test_template__names_that_are_not_there(tmp_path):
    file = tmp_path / "letter.txt"
    file.write_text("Dear $name,")
    with raises(PolicyError, "unknown_field", "'$name'", "user", "log"):
        read_template(file)
    file.write_text("5 $ off")
    with raises(PolicyError, "wrong_template"):
        read_template(file)
    with raises(PolicyError, "unreadable_file"):
        read_template(tmp_path / "none")
    file.write_text("".join(f"${{{name}}}" for name in PLACEHOLDERS))
    found = gains()
    assert "$" not in letter(found, found.users[0], read_template(file))


def test_cli__letters(capsys, tmp_path):
    lines = ["; MaxProcs: 2"]
    jobs = blocked()
    for k in range(len(jobs)):
        columns = (k + 1, jobs.submit[k], 0, jobs.runtime[k], jobs.procs[k], -1, -1, jobs.procs[k], jobs.requested[k])
        lines.append(" ".join(map(str, (*columns, -1, 1, jobs.columns["user"][k], *[-1] * 6))))
    log = tmp_path / "site.swf"
    log.write_text("\n".join(lines) + "\n")
    status, out, _ = call(capsys, "estimates", log, "--letters", tmp_path / "letters", "--replications=2")
    assert status == 0
    assert "1 letter was written" in out
    assert sorted(path.name for path in (tmp_path / "letters").iterdir()) == ["1.txt", "kinds.csv", "letters.csv"]
    assert call(capsys, "estimates", log, "--letters", tmp_path / "letters")[0] == 2
    assert call(capsys, "estimates", log, "--template", tmp_path / "x")[0] == 2
    assert call(capsys, "estimates", log, "--letters", tmp_path / "more", "--adjusted")[0] == 2


def test_gains__killed_runs_count_against_them():
    # of 40 jobs one needs 2 h: at 5 % risk it would be killed after the advised 10 min, 600 / 40 = 15 s per job
    jobs = blocked(40)
    runtime = jobs.runtime.copy()
    mine = np.flatnonzero(jobs.columns["user"] == 1)
    runtime[mine[-1]] = 2 * HOUR
    [one] = gains(replace(jobs, runtime=runtime)).users
    assert one.lost == 15
    assert one.helps
    assert not replace(one, lost=-one.difference).helps


def test_advice__follows_the_five_kinds_that_a_letter_lists():
    [user] = [one for one in advise_users(blocked()) if one.user == "1"]
    six = replace(user, kinds=[*user.kinds] * 6)
    assert len(six.advised) == 5
    assert six.less_hours == pytest.approx(5 * user.less_hours)
