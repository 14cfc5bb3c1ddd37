"""What users could gain from the side-car, or take from others, and what keeps them from it."""

import pytest

from tests.adjust.fake import BEGIN, FakeSlurm, Job, row
from tests.adjust.test_rules import FACTS, crowd, queued, sidecar
from tests.adjust.test_unlucky import go, short_soon, until
from tests.errors import raises
from walltime.errors import LogError, WorkloadError
from walltime.logs import read_log
from walltime.predictors import parse_predictor
from walltime.slurm.client import Client, CommandResult
from walltime.slurm.commands.adjust import PREDICTOR
from walltime.slurm.sidecar.advice import Advice, LogAdvice, check_texts
from walltime.slurm.sidecar.bounds import LATE_HEAD, Overruns, QueueHead, QueueHeads
from walltime.slurm.sidecar.ledger import Adjustments, Entry, Ledger, State
from walltime.slurm.sidecar.selection import in_turn
from walltime.slurm.sidecar.settings import SidecarSettings
from walltime.slurm.squeue_fields import read_queue

HEADING = "JobIDRaw|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|ElapsedRaw|TimelimitRaw|AllocCPUS|NNodes"


def log_of(path, jobs, heading=HEADING):
    """A log of sacct with these jobs: seconds that they ran, limits, processors."""
    lines = [heading]
    for number, (seconds, limit, procs) in enumerate(jobs, 1):
        begin = BEGIN - 900_000 + number * 2000
        state = "COMPLETED" if seconds < limit * 60 else "TIMEOUT"
        of = (number, "ann", "bio", "main", "normal", state, begin, begin, begin + 5, begin + 5 + seconds, seconds, limit, procs, procs)
        lines.append("|".join(map(str, of)))
    path.write_text("\n".join(lines) + "\n")
    return read_log(path, time_zone="UTC").to_workload(procs=10**6)


@pytest.mark.parametrize(
    ("jobs", "minutes"),
    [
        ([(1, 1440, 1)] * 10, None),  # ten jobs of a second say nothing of 640 processors for a day
        ([(40_000, 1440, 640)] * 10 + [(1, 1440, 1)] * 200, 667),  # two hundred of them change nothing
        ([(1, 1440, 640)] * 200, None),
        ([(40_000, 1440, 640)] * 11 + [(1000, 1440, 640)] * 30, 667),  # and cheap ones do not outweigh what was used
        ([(2000, 1440, 640)] * 12, 34),
    ],
)
def test_junk_jobs_do_not_make_a_short_prediction(tmp_path, jobs, minutes):
    advice = Advice(parse_predictor(PREDICTOR), log_of(tmp_path / "log.txt", jobs))
    big = queued(TimeLimit="1-00:00:00", NumCPUs=640)
    found = advice.predict(big, float(BEGIN))
    assert (found is None) if minutes is None else -(-found // 60) == minutes


def test_a_log_with_texts_of_users_is_not_learned_from(tmp_path):
    """The name of the last job has a line that looks like a job of somebody else."""
    path = tmp_path / "log.txt"
    log_of(path, [(80_000, 1440, 1)] * 12)
    clean = path.read_text()
    for name in ("JobName", "SubmitLine"):
        path.write_text("\n".join(f"{line}|{name if k == 0 else 'x'}" for k, line in enumerate(clean.splitlines())) + "\n")
        with raises(LogError, "forgeable_texts", name.lower()):
            LogAdvice(parse_predictor(PREDICTOR), path).read()
    path.write_text(clean)
    assert LogAdvice(parse_predictor(PREDICTOR), path).read().jobs == 12
    check_texts(tmp_path / "missing.swf")
    with raises(WorkloadError, "unsupported_predictor"):
        Advice(parse_predictor("tang13:key=program"), _with_programs(tmp_path))


def _with_programs(folder):
    lines = "".join(f"{k} {k * 100} 5 60 1 -1 -1 1 600 -1 1 1 1 7 -1 -1 -1 -1\n" for k in range(1, 30))
    (folder / "log.swf").write_text(
        "; Version: 2.2\n; MaxProcs: 4\n; UnixStartTime: 843480031\n; TimeZoneString: Europe/Stockholm\n" + lines
    )
    return read_log(folder / "log.swf").to_workload()


def test_a_history_that_comes_later_is_learned_from_beside_the_rounds(tmp_path):
    path = tmp_path / "log.txt"
    history = LogAdvice(parse_predictor(PREDICTOR), path)
    history.refresh()
    history._reading.join()
    assert "no job log" in history.missing
    assert history.refresh()
    log_of(path, [(2000, 1440, 640)] * 12)
    history.refresh()
    history._reading.join()
    assert history.missing == ""
    assert history.predict(queued(TimeLimit="1-00:00:00", NumCPUs=640), float(BEGIN)) is not None


def ran(tmp_path, cluster, missed, kept, user="ann"):
    """What is remembered of a user of whom so many jobs of a node outlived their TimeMin by an hour, and so many did not."""
    overdue = Overruns(Adjustments(Ledger(tmp_path), cluster.clock, print), cluster.clock)
    for k in range(missed + kept):
        entry = Entry(str(k + 1), user, 10, 100, 100, 0, False, State.STARTED, 0.0)
        beyond = 3600 if k < missed else -60
        [job] = read_queue(
            row(Job(k + 1, user, 1, 60, 100, BEGIN, limit=100, state="RUNNING", start=int(cluster.clock.now) - 600 - beyond)), 1
        )
        overdue.watch(entry, job, cluster.clock.now)
        overdue.end(entry, job)
    return overdue


@pytest.mark.parametrize(("missed", "kept", "factor"), [(0, 50, 1), (3, 0, 1), (4, 0, 2), (8, 12, 6), (6, 54, 1), (5, 10, 3)])
def test_jobs_that_outlive_their_time_min_count_against_the_next_ones(tmp_path, missed, kept, factor):
    cluster = crowd()
    overdue = ran(tmp_path, cluster, missed, kept)
    assert overdue.factor("ann", SidecarSettings()) == factor
    assert overdue.factor("bob", SidecarSettings()) == 1
    overdue._entries.ledger.close()
    again = Overruns(Adjustments(Ledger(tmp_path), cluster.clock, print), cluster.clock)
    assert again.factor("ann", SidecarSettings()) == factor  # also for the next process
    cluster.clock.now += 8 * 86_400
    assert again.factor("ann", SidecarSettings()) == 1
    again._entries.ledger.close()


def test_what_a_user_holds_beyond_time_min_is_limited(tmp_path):
    overdue = ran(tmp_path, crowd(), 7, 0)  # 7 node-hours; 1 % of four nodes over a week are 6.7
    assert "beyond their TimeMin" in overdue.exclusion_reason(queued(), FACTS, SidecarSettings())
    assert overdue.exclusion_reason(queued(), FACTS, SidecarSettings(overdue=0.02)) is None
    assert overdue.exclusion_reason(queued(UserName="bob"), FACTS, SidecarSettings()) is None
    assert overdue.exclusion_reason(queued(Partition="free"), FACTS, SidecarSettings()) is None
    overdue._entries.ledger.close()


def heads_of(*starts):
    return [queued(JobArrayID=7, StartTime=start, PriorityLong=200, EligibleTime="2027-01-15T02:00:00") for start in starts]


def test_a_head_whose_reserved_start_slips_stops_adjusting_in_its_partition():
    heads, now, bounds = QueueHeads(), float(BEGIN), SidecarSettings(slip=0.5)  # 08:00
    first, later = heads_of("2027-01-15T10:00:00", "2027-01-16T10:00:00")
    assert heads.look([first, queued(JobArrayID=8, EligibleTime="2027-01-15T03:00:00")], now)
    assert list(heads.jobs) == ["7"]
    heads.look([later], now)
    assert heads.late(now + 6 * 3600, bounds) == {}  # it waited for 8 hours, so it may start 4 hours later
    assert heads.late(now + 6 * 3600 + 1, bounds) == {"main": "7"}
    again = QueueHeads(heads.note())
    assert again.late(now + 6 * 3600 + 1, bounds) == {"main": "7"}
    again.look([], now)
    assert again.late(now + 6 * 3600 + 1, bounds) == {}
    assert QueueHeads("nonsense").jobs == {}


def gaming(slip):
    """A head that could start after six hours, behind a gamer whose jobs of a day have a TimeMin of 10 minutes; when it started."""
    jobs = [Job(1, "ann", 3, 6 * 3600, 360, BEGIN), Job(2, "ann", 4, 60, 60, BEGIN)]
    jobs += [Job(k, "zoe", 1, 86_000, 1440, BEGIN + 2400 + (k - 3) * 3600) for k in range(3, 60)]
    cluster = FakeSlurm(4, jobs)
    cluster.advance(60)
    return cluster, SidecarSettings(share=1.0, slip=slip, overdue=10, misses=1000)


@pytest.mark.nightly
def test_a_head_does_not_starve_behind_a_gamer(tmp_path):
    waits = {}
    for slip in (0.5, 1000):
        cluster, bounds = gaming(slip)
        (tmp_path / str(slip)).mkdir()
        one, _ = sidecar(cluster, tmp_path / str(slip))
        one.settings = bounds
        while cluster.jobs["2"].state == "PENDING" and cluster.clock.now < BEGIN + 40 * 3600:
            one.round()
            if any(job.time_min for job in cluster.waiting()):
                assert LATE_HEAD not in one.round().reasons
            cluster.advance(120)
        waits[slip] = cluster.clock.now - BEGIN
        assert cluster.violations == []
        one.ledger.close()
    assert waits[1000] > 39 * 3600
    assert waits[0.5] < (6 + 3 + 24 + 1) * 3600  # its wait, half of it, and the limit of what had started by then


def test_a_job_that_has_just_ended_is_no_alarm(tmp_path):
    cluster = short_soon()
    one, said = sidecar(cluster, tmp_path)

    def runner(words, timeout):
        if words[1] == "update" and words[-1].startswith("TimeLimit") and cluster.jobs[words[2].partition("=")[2]].user != "sidecar":
            cluster._end(cluster.jobs[words[2].partition("=")[2]], "CANCELLED")
        return cluster(words, timeout)

    until(cluster, one, lambda: "self-test: passed" in said)
    one.slurm._runner = runner
    until(cluster, one, lambda: "3" in cluster.backfilled)
    go(cluster, one, 60)
    assert any("Invalid job id" in text for text in said)
    assert not any("ALARM" in text for text in said)
    one.ledger.close()


def lowering(cluster):
    """The user of job 3 lowers its limit whenever it was raised."""

    def runner(words, timeout):
        if cluster.jobs["3"].start:
            cluster.jobs["3"].limit = 30
        return cluster(words, timeout)

    return runner


@pytest.mark.parametrize("at_once", [False, True])
def test_a_user_who_lowers_a_limit_again_and_again_stops_nobody_else(tmp_path, at_once):
    jobs = [Job(1, "ann", 3, 7 * 3600, 420, BEGIN), Job(2, "ann", 4, 60, 60, BEGIN), Job(3, "mal", 1, 80_000, 600, BEGIN)]
    cluster = FakeSlurm(4, [*jobs, *(Job(k, f"u{k % 3}", 4, 600, 500, BEGIN) for k in range(4, 10))], soft=True)
    cluster.advance(60)
    one, said = sidecar(cluster, tmp_path)
    if at_once:
        one.slurm._runner = lowering(cluster)
    reports = []
    for _ in range(100):
        if cluster.jobs["3"].state == "RUNNING":
            cluster.jobs["3"].limit = 30
        reports.append(one.round())
        cluster.advance(20)
    assert sum(bool(report.why) for report in reports) <= 3
    assert not any("ALARM" in text for text in said)
    assert one.restorer.quarantine == ({"mal"} if at_once else set())
    one.ledger.close()


def test_slurm_that_lies_about_raising_is_an_alarm(golden, tmp_path):
    jobs = [Job(1, "ann", 2, 7 * 3600, 420, BEGIN), Job(2, "ann", 4, 60, 60, BEGIN)]
    cluster = FakeSlurm(4, [*jobs, *(Job(k, f"u{k}", 1, 6000, 600, BEGIN + 1200) for k in (3, 4))])
    cluster.advance(60)
    one, said = sidecar(cluster, tmp_path)

    def runner(words, timeout):
        if words[1] == "update" and words[-1].startswith("TimeLimit") and cluster.jobs[words[2].partition("=")[2]].user != "sidecar":
            return CommandResult(0, "", "")
        return cluster(words, timeout)

    one.slurm._runner = runner
    until(cluster, one, lambda: {"3", "4"} <= set(cluster.backfilled))
    go(cluster, one, 200)
    golden("slurm-adjust", [text for text in said if "ALARM" in text])
    one.ledger.close()


def test_users_take_turns():
    choices = [(queued(JobArrayID=k, UserName=user), 10, None) for k, user in enumerate("aaaaabbc", 1)]
    assert [choice[0].key for choice in in_turn(choices)] == ["1", "6", "8", "2", "7", "3", "4", "5"]


def test_one_users_jobs_do_not_fill_what_may_be_adjusted(tmp_path):
    jobs = [Job(1, "ann", 4, 5000, 120, BEGIN), *(Job(k, "zoe", 4, 60, 60, BEGIN) for k in range(2, 22))]
    cluster = FakeSlurm(4, [*jobs, *(Job(k, "bob", 4, 60, 60, BEGIN) for k in range(22, 26))], soft=True)
    cluster.advance(60)
    one, _ = sidecar(cluster, tmp_path)
    one.settings = SidecarSettings(share=0.5)
    one.round()
    adjusted = [job.user for job in cluster.waiting() if job.time_min]
    assert (adjusted.count("zoe"), adjusted.count("bob")) == (6, 4)
    one.ledger.close()


def test_users_take_turns_for_the_changes_of_a_minute(tmp_path):
    jobs = [Job(1, "ann", 4, 5000, 120, BEGIN), *(Job(k, "zoe", 4, 60, 60, BEGIN) for k in range(2, 22))]
    cluster = FakeSlurm(4, [*jobs, *(Job(k, "bob", 4, 60, 60, BEGIN) for k in range(22, 26))], soft=True)
    cluster.advance(60)
    one, _ = sidecar(cluster, tmp_path)
    one.settings = SidecarSettings(share=1.0, changes=4)
    one.round()
    assert [job.user for job in cluster.waiting() if job.time_min] == ["zoe", "zoe", "bob", "bob"]
    one.ledger.close()


def test_nothing_is_adjusted_behind_a_late_head(tmp_path):
    cluster = crowd(soft=True)
    one, _ = sidecar(cluster, tmp_path)
    one.round()
    assert all(job.time_min for job in cluster.waiting())
    one.heads.jobs["2"] = QueueHead(BEGIN - 9000, BEGIN - 3000, ("main",))
    assert set(one.round().reasons) == {LATE_HEAD}
    assert not any(job.time_min for job in cluster.waiting())
    one.ledger.close()


def test_a_limit_in_doubt_is_raised_in_steps_and_not_beyond_what_its_user_can_have_chosen(tmp_path):
    cluster = short_soon()
    cluster.partition = cluster.partition.replace("2-00:00:00", "05:00:00")
    one, _ = sidecar(cluster, tmp_path)
    until(cluster, one, lambda: "3" in cluster.jobs and cluster.jobs["3"].start)
    job = cluster.jobs["3"]
    job.limit, job.runtime = 10, 30 * 3600
    entry = one.entries["3"]
    one.entries["3"] = entry.but(state=State.INTENT, limit=50, longest=300)
    one.round()
    assert job.limit == 170
    seen = set()
    while job.state == "RUNNING":
        seen.add(job.limit)
        go(cluster, one, 60)
    assert sorted(seen) == [170, 290, 300]
    one.ledger.close()


def test_a_known_limit_beside_the_longest_is_what_the_prolog_reads(tmp_path):
    from walltime.slurm.sidecar.prolog import Spool

    (tmp_path / "spool").mkdir(mode=0o755)
    (tmp_path / "ledger").mkdir()
    cluster = short_soon(2)
    one, _ = sidecar(cluster, tmp_path / "ledger", spool=Spool(tmp_path / "spool"))
    files = []
    put = one.spool.put
    one.spool.put = lambda key, known, longest: (files.append((key, known, longest)), put(key, known, longest))
    until(cluster, one, lambda: any(job.time_min for job in cluster.waiting()))
    assert ("4", 500, 2880) in files
    go(cluster, one, 60)
    assert (tmp_path / "spool" / "4").read_text() == "500 500\n"
    one.ledger.close()


def test_once_adjusts_nothing_as_nobody_would_watch(tmp_path):
    cluster = crowd(soft=True)
    one, _ = sidecar(cluster, tmp_path, stays=False)
    assert "--once" in one.round().why
    assert cluster.updates == []
    one.ledger.close()


def test_commands_are_asked_for_fields_without_texts():
    asked = []
    slurm = Client(lambda words, timeout: (asked.append(words), CommandResult(0, "", ""))[1])
    slurm.queue(1), slurm.jobs(["7"], 1), slurm.jobs_named(("a", "b"), "me")
    assert not any("json" in word.lower() for words in asked for word in words)
