"""Letters to users: who gets one, what it says, and which files there are."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

import walltime as wt
from tests.cli import call, one_line
from tests.errors import raises
from walltime.accuracy import advice_gains
from walltime.accuracy.advice import advise_users
from walltime.accuracy.advice_gains import may_be_clear, simulate_advice
from walltime.accuracy.letters import PLACEHOLDERS, letter, letters_answer, letters_table, read_template, write_letters
from walltime.errors import OutputError, PolicyError
from walltime.machine import read_machine

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
    assert (one.advice.user, one.after) == ("1", 0)
    assert one.before == pytest.approx(4 * HOUR - 120, abs=60)  # over the log and its shaken copies
    assert one.helps


def test_gains__waits_and_their_difference_are_of_the_same_copies():
    found = gains(blocked(20), copies=5)
    [one] = found.users
    assert one.before + one.difference == pytest.approx(one.after)
    before, difference, _ = found.all_jobs
    unshaken = wt.simulate(found.workload, "easy").wait.mean()
    assert before != unshaken
    assert before + difference == pytest.approx((2 * HOUR - 60) / 3, abs=60)  # the wide job waits, the other two start at once


def test_letter__says_what_to_ask_for_and_what_it_saves(golden):
    found = gains()
    mail = letter(found, found.users[0])
    assert max(map(len, mail.splitlines())) <= 78
    text = " ".join(mail.split())
    golden("estimates", text)
    assert "$" not in text
    golden("estimates", letters_answer(found, 1))
    used = {"memory": (10_240.0, 0.3), "gpus": (40.0, 0.25)}
    first = found.users[0]
    golden("estimates", letter(found, replace(first, advice=replace(first.advice, used=used)), "$use"))
    busy = replace(first, advice=replace(first.advice, used=used | {"gpus": (40.0, 1.0)}))
    assert "GPU" not in letter(found, busy, "$use")


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


def test_gains__copies_that_cannot_make_a_gain_clear_are_left_out(monkeypatch):
    jobs = blocked()
    alone = jobs.take(np.flatnonzero(jobs.columns["user"] == 1), "user 1")  # no job waits
    assert [one.copies for one in gains(alone, copies=4).users] == [1]
    assert [one.copies for one in gains(jobs, copies=4).users] == [4]
    found = gains(jobs)
    monkeypatch.setattr(advice_gains, "may_be_clear", lambda known, count, before: len(known) < count or may_be_clear(known, count, before))
    assert [one.copies for one in gains(alone, copies=4).users] == [4]
    assert gains(jobs).users == found.users


@given(st.lists(st.floats(-300, 300), min_size=1, max_size=3), st.integers(1, 3), st.floats(0, 9000), st.lists(st.floats(-300, 2000)))
def test_may_be_clear__if_and_only_if_other_gains_exist_that_make_it_clear(known, more, before, tried):
    def clear(others):
        return may_be_clear([*known, *others], len(known) + more, before)

    equal = [x for x in np.linspace(-300, 5000, 1061) if clear([x] * more)]
    assert may_be_clear(known, len(known) + more, before) or not equal
    if not may_be_clear(known, len(known) + more, before) and len(tried) >= more:
        assert not clear(tried[:more])


def test_may_be_clear__no_loss_in_the_log_itself_is_made_good_by_five_copies():
    assert not may_be_clear([0.0], 6, 0.0)
    assert may_be_clear([0.0], 2, 0.0) is False
    assert may_be_clear([60.0], 6, 0.0)
    assert may_be_clear([20.0], 6, 0.0)
    assert not may_be_clear([20.0], 6, 20_000.0)


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
    assert call(capsys, "estimates", log, "--letters-to", "accounts")[0] == 2
    assert call(capsys, "estimates", log, "--use", log)[0] == 2
    assert "accounts" in one_line(*call(capsys, "estimates", log, "--letters", tmp_path / "more", "--letters-to", "accounts"))
    assert call(capsys, "estimates", log, "--letters", tmp_path / "more", "--adjusted")[0] == 2


def test_gains__killed_runs_count_against_them(golden):
    # of 40 jobs one needs 2 h: at 5 % risk it would be killed after the advised 10 min, 600 / 40 = 15 s per job
    jobs = blocked(40)
    runtime = jobs.runtime.copy()
    mine = np.flatnonzero(jobs.columns["user"] == 1)
    runtime[mine[-1]] = 2 * HOUR
    found = gains(replace(jobs, runtime=runtime))
    [one] = found.users
    assert one.lost == 15
    assert one.helps
    golden("estimates", " ".join(letter(found, one).split()))
    assert not replace(one, lost=-one.difference).helps


def test_advice__follows_the_five_kinds_that_a_letter_lists():
    [user] = [one for one in advise_users(blocked()) if one.user == "1"]
    six = replace(user, kinds=[*user.kinds] * 6)
    assert len(six.advised) == 5
    assert six.less_hours == pytest.approx(5 * user.less_hours)


NODE = """
policy = "easy"
[[pool]]
name = "n"
nodes = 1
procs = 4
memory = 8192
[[partition]]
name = "main"
pools = ["n"]
"""


def short_of_memory(rounds=25):
    """A node with 8 GB; every 10 h, jobs of user 1 (2 processors, of which one is busy; 4 GB, of which about 600 MB are used) wait for one
    of user 2 (6 GB for 2 h) and not for processors."""
    rows = [
        (of, k * 10 * HOUR + at, *rest)
        for k in range(rounds)
        for of, at, *rest in ((2, 0, 2 * HOUR, 2 * HOUR, 1, 6144, 6000, 1.0), (1, 60, 600, 5 * HOUR, 2, 4096, 600 + k, 0.5))
    ]
    user, submit, runtime, requested, procs, asked, used, busy = (np.array(one) for one in zip(*rows, strict=True))
    cpu_time = runtime * busy
    columns = {"user": user, "group": np.where(user == 1, 7, 8), "nodes": np.ones(len(rows)), "cpu_time": cpu_time}
    columns |= {"requested_mem_mb": asked * 1.0, "mem_mb": asked * 1.0, "mem_mb_per_node": asked * 1.0, "used_mem_mb": used * 1.0}
    made = wt.Workload.from_arrays(submit=submit, runtime=runtime, requested=requested, procs=procs, machine_procs=4, columns=columns)
    return replace(made, origin=replace(made.origin, name="site"))


def memory_gains(tmp_path, jobs=None, **options):
    (tmp_path / "node.toml").write_text(NODE)
    jobs = short_of_memory() if jobs is None else jobs
    advice = advise_users(jobs, others=("memory", "cores"), **options)
    return advice, simulate_advice(jobs, advice, machine=read_machine(tmp_path / "node.toml"), copies=2)


def test_letter__of_memory_alone_where_nothing_else_helps(golden, tmp_path):
    advice, found = memory_gains(tmp_path)
    assert next(one for one in advice if one.user == "1").resources == ["memory", "cores", "time"]
    [one] = found.helped
    # without the advice, each job waits until the other one ends
    assert (one.advice.user, one.advice.resources, one.after) == ("1", ["memory"], 0)
    assert one.before == pytest.approx(2 * HOUR - 60, abs=60)
    assert one.advice.kinds[0].requests[0].amount == 768
    assert one.advice.used == {"memory": (pytest.approx(25 * 4096 / 6), pytest.approx(612 / 4096)), "cores": (pytest.approx(25 / 3), 0.5)}
    assert abs(one.others) <= one.others_scatter + 1
    golden("estimates", " ".join(letter(found, one).split()))


def test_gains__on_single_nodes_only_the_last_weeks_are_simulated(tmp_path, monkeypatch):
    jobs = short_of_memory(60)
    monkeypatch.setattr(advice_gains, "MOST_ON_NODES", 80)
    _, found = memory_gains(tmp_path, jobs)
    first = jobs.submit[-1] + 1 - 14 * 24 * HOUR
    assert (len(found.workload), found.log_jobs, found.few) == ((jobs.submit >= first).sum(), 120, 0)
    [one] = found.helped
    assert (one.advice.jobs, one.before) == (60, pytest.approx(2 * HOUR - 60, abs=60))
    assert "2 weeks" in letters_table(found).note
    monkeypatch.setattr(advice_gains, "MOST_ON_NODES", 40)
    _, found = memory_gains(tmp_path, jobs)
    assert (found.users, found.few) == ([], 1)  # user 1 has fewer than 20 jobs in a week
    monkeypatch.setattr(advice_gains, "MOST_ON_NODES", 120)
    assert memory_gains(tmp_path, jobs)[1].workload is jobs


def test_letter__to_an_account(golden, tmp_path):
    _, found = memory_gains(tmp_path, by="group")
    [one] = found.helped
    assert (one.advice.user, one.advice.by) == ("7", "group")
    golden("estimates", " ".join(letter(found, one).split()))
    write_letters(tmp_path / "out", found)
    [row] = csv.DictReader((tmp_path / "out" / "letters.csv").read_text().splitlines())
    assert (row["account"], row["saved_s"]) == ("7", "7141")
    [kind] = csv.DictReader((tmp_path / "out" / "kinds.csv").read_text().splitlines())
    assert (kind["memory_mb"], kind["median_memory_mb"], kind["ask_for"], kind["needed_more_percent"]) == ("768", "4096", "", "0.0")


def test_advice__all_requests_of_a_kind_together_keep_the_risk(tmp_path):
    # 60 jobs: two need longer and two others more memory than the rest; each alone would be within 5 %
    jobs = short_of_memory(60)
    mine = np.flatnonzero(jobs.columns["user"] == 1)
    runtime, used = jobs.runtime.copy(), jobs.columns["used_mem_mb"].copy()
    runtime[mine[[30, 32]]] = 4 * HOUR
    used[mine[[31, 33]]] = 3000
    jobs = replace(jobs, runtime=runtime, columns={**jobs.columns, "used_mem_mb": used})
    [kind] = next(one for one in advise_users(jobs, others=("memory",)) if one.user == "1").kinds
    assert kind.walltime == 600
    assert kind.requests[0].amount == 3072
    assert kind.failing == 2
    [kind] = next(one for one in advise_users(jobs, others=("memory",), risk=10) if one.user == "1").kinds
    assert kind.requests[0].amount == 768
    assert kind.failing == 4


def test_gains__jobs_that_fail_without_memory_count_against_them(tmp_path):
    jobs = short_of_memory(40)
    used = jobs.columns["used_mem_mb"].copy()
    used[np.flatnonzero(jobs.columns["user"] == 1)[-1]] = 3000
    _, found = memory_gains(tmp_path, replace(jobs, columns={**jobs.columns, "used_mem_mb": used}))
    [one] = found.helped
    assert one.lost == 600 / 40
    # the job that needs more keeps its request, and waits
    assert one.after == pytest.approx((2 * HOUR - 60) / 40, abs=1)


def test_advice__jobs_out_of_memory_never_get_less(tmp_path):
    jobs = short_of_memory()
    states = np.where(np.arange(50) % 4 == 1, 2, 1)
    jobs = replace(
        jobs, columns={**jobs.columns, "state": states}, origin=replace(jobs.origin, names={"state": ("COMPLETED", "OUT_OF_MEMORY")})
    )
    [one] = [one for one in advise_users(jobs, others=("memory",)) if one.user == "1"]
    assert "memory" not in one.resources


@pytest.mark.slow
def test_cli__letters_on_memory_with_a_table_of_use(capsys, tmp_path):
    jobs = short_of_memory()
    (tmp_path / "node.toml").write_text(NODE)
    head = "JobIDRaw|User|Account|Partition|Submit|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS|NNodes|State|ReqTRES|AllocTRES"
    rows, use = [head], ["jobid,max_memory_bytes"]
    for k in range(len(jobs)):
        submit, user, ran = 1_772_323_200 + int(jobs.submit[k]), jobs.columns["user"][k], jobs.runtime[k]
        tres = f"cpu={jobs.procs[k]},mem={jobs.columns['mem_mb'][k]:.0f}M,node=1"
        limit = jobs.requested[k] // 60
        rows.append(
            f"{k + 1}|u{user}|lab{user}|main|{submit}|{submit}|{submit + ran}|{ran}|{limit}|{jobs.procs[k]}|1|COMPLETED|{tres}|{tres}"
        )
        use.append(f"{k + 1},{jobs.columns['used_mem_mb'][k] * 2**20:.0f}")
    (tmp_path / "log").write_text("\n".join(rows) + "\n")
    (tmp_path / "use.csv").write_text("\n".join(use) + "\n")
    words = ("--machine", tmp_path / "node.toml", "--use", tmp_path / "use.csv", "--replications", 2, "--json")
    record = json.loads(call(capsys, "estimates", tmp_path / "log", *words, "--letters", tmp_path / "users")[1])
    [helped] = [one for one in record["users"] if one["helps"]]
    assert (helped["user"], helped["by"], helped["requests"][0]["amount"]) == ("u1", "user", 768)
    assert "768 MB of memory" in (tmp_path / "users" / "u1.txt").read_text()
    assert call(capsys, "estimates", tmp_path / "log", *words, "--letters", tmp_path / "pis", "--letters-to", "accounts")[0] == 0
    assert "user u1, " in (tmp_path / "pis" / "lab1.txt").read_text()
