"""From a log to a workload: each rule on a log of a few lines, and the counts that travel with the jobs."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.traces import trace_path
from walltime.errors import WorkloadError
from walltime.logs import RULES, BadLine, Comment, SwfLog, read
from walltime.logs.joblog import JobLog, estimated_size

HEADER = ("; MaxProcs: 8", "; UnixStartTime: 843480031", "; TimeZoneString: Europe/Stockholm")
NORMAL = {
    "job_id": 1,
    "submit": 0,
    "wait": 3,
    "runtime": 60,
    "allocated_procs": 4,
    "requested_procs": 4,
    "requested": 90,
    "status": 1,
    "user": 7,
}


def log_of(*records: dict, header: tuple[str, ...] = HEADER, **fields) -> SwfLog:
    """A log of a few records, each NORMAL but for the fields given; job numbers count up."""
    rows = [NORMAL | {"job_id": number, **record} for number, record in enumerate(records, 1)]
    names = {name for row in rows for name in row}
    columns = {name: [row.get(name, -1) for row in rows] for name in names}
    return SwfLog(len(rows), columns, tuple(Comment(0, line) for line in header), path="folder/tiny.swf.gz", **fields)


def counts(jobs) -> dict[str, int]:
    origin = jobs.origin
    assert len(jobs) + sum(origin.dropped.values()) == origin.records
    return {**origin.dropped, **origin.changed, **origin.noticed}


def message_of(log: SwfLog, **options) -> str:
    with pytest.raises(WorkloadError) as caught:
        log.to_workload(**options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_workload__ordinary_jobs_are_taken_as_they_are():
    log = log_of({}, {"submit": 5, "runtime": 9, "allocated_procs": 2, "requested_procs": 2}, sha256="abc")
    jobs = log.to_workload()
    assert counts(jobs) == {}
    assert jobs.job_id.tolist() == [1, 2]
    assert jobs.submit.tolist() == [0, 5]
    assert jobs.runtime.tolist() == [60, 9]
    assert jobs.requested.tolist() == [90, 90]
    assert jobs.planned is jobs.requested
    assert jobs.procs.tolist() == [4, 2]
    assert jobs.machine_procs == 8
    assert (jobs.origin.name, jobs.origin.sha256, jobs.origin.records) == ("tiny", "abc", 2)
    assert jobs.origin.header == HEADER
    assert jobs.origin.unix_start_time == 843_480_031
    assert jobs.origin.time_zone == "Europe/Stockholm"


def test_workload__shares_arrays_where_nothing_was_dropped_or_moved():
    log = log_of({}, {"submit": 5})
    jobs = log.to_workload()
    for name, array in {"job_id": jobs.job_id, "submit": jobs.submit, "runtime": jobs.runtime, "requested": jobs.requested}.items():
        assert np.shares_memory(array, log.column(name))
    assert np.shares_memory(jobs.procs, log.column("allocated_procs"))
    assert np.shares_memory(jobs.columns["user"], log.column("user"))


def test_workload__other_columns_follow_the_jobs():
    log = log_of(
        {"submit": 9, "user": 1}, {"submit": 3, "user": 2}, {"submit": 1, "user": 3, "runtime": -1, "memory": 5}, {"submit": 2, "user": 4}
    )
    jobs = log.to_workload()
    assert jobs.job_id.tolist() == [4, 2, 1]
    assert jobs.columns["user"].tolist() == [4, 2, 1]
    assert set(jobs.columns) == {"wait", "allocated_procs", "requested_procs", "status", "user"}, "memory is known of the dropped job only"


def test_workload__other_columns_have_the_declared_type():
    jobs = log_of({"memory": 5, "cpu_time": 1, "wait": 2.5, "think_time": 3}).to_workload()
    assert jobs.columns["memory"].dtype == np.float64
    assert jobs.columns["cpu_time"].dtype == np.float64
    assert jobs.columns["wait"].dtype == jobs.columns["think_time"].dtype == np.int64
    assert jobs.columns["wait"].tolist() == [3]


# The machine.


def test_machine__number_given_goes_before_the_header():
    assert log_of({}).to_workload(procs=16).machine_procs == 16
    assert log_of({}).to_workload(procs=np.int32(16)).machine_procs == 16


def test_machine__nodes_where_processors_are_not_known():
    assert log_of({}, header=("; MaxNodes: 6", "; MaxProcs: -1")).to_workload().machine_procs == 6


def test_machine__unknown_size_is_an_error_that_names_the_option(golden):
    message = message_of(log_of({}, header=()))
    golden("info", message)
    assert "procs=N" in message


@pytest.mark.parametrize("procs", [0, -4])
def test_machine__must_have_processors(procs):
    assert f"at least 1 processor, not {procs}" in message_of(log_of({}), procs=procs)


def test_machine__must_be_a_whole_number(golden):
    golden("info", message_of(log_of({}), procs=2.5))


@pytest.mark.parametrize("option", ["partial", "too_wide"])
def test_options__unknown_word_is_an_error(option):
    assert message_of(log_of({}), **{option: "maybe"}).endswith(", not 'maybe'")


# Rules that drop.


@pytest.mark.parametrize("status", [2, 3, 4])
def test_partial_execution__part_with_a_summary_is_dropped(status):
    jobs = log_of({"job_id": 5}, {"job_id": 5, "status": status, "runtime": 20}, {"job_id": 6}).to_workload()
    assert counts(jobs) == {"partial_execution": 1}
    assert jobs.job_id.tolist() == [5, 6]
    assert jobs.runtime.tolist() == [60, 60]


def test_partial_execution_without_summary__is_dropped():
    jobs = log_of({}, {"status": 2}, {"status": 3, "job_id": 2}).to_workload()
    assert counts(jobs) == {"partial_execution_without_summary": 2}
    assert jobs.job_id.tolist() == [1]


def test_partial_execution_summary__is_dropped_where_parts_are_wanted():
    parts = [{"job_id": 5, "status": 2, "runtime": 20}, {"job_id": 5, "status": 3, "runtime": 40, "submit": 50}]
    jobs = log_of({"job_id": 5}, *parts, {"job_id": 9, "status": 2, "submit": 60}).to_workload(partial="parts")
    assert counts(jobs) == {"partial_execution_summary": 1, "duplicate_id": 1}
    assert jobs.job_id.tolist() == [5, 10, 9]
    assert jobs.runtime.tolist() == [20, 40, 60]


@pytest.mark.parametrize(
    "fields", [{"runtime": 0}, {"runtime": -1}, {"allocated_procs": -1, "requested_procs": 0}, {"runtime": -1, "submit": -1}]
)
def test_cancelled_before_start__is_dropped(fields):
    assert counts(log_of({}, {"status": 5, **fields}).to_workload()) == {"cancelled_before_start": 1}


def test_cancelled_before_start__job_that_ran_is_kept():
    assert counts(log_of({}, {"status": 5, "allocated_procs": -1}).to_workload()) == {}


def test_unknown_submit__is_dropped():
    assert counts(log_of({}, {"submit": -1}).to_workload()) == {"unknown_submit": 1}


def test_unknown_runtime__is_dropped():
    assert counts(log_of({}, {"runtime": -1}).to_workload()) == {"unknown_runtime": 1}


@pytest.mark.parametrize(("allocated", "requested"), [(-1, -1), (0, -1), (-1, 0)])
def test_no_processors__is_dropped(allocated, requested):
    jobs = log_of({}, {"allocated_procs": allocated, "requested_procs": requested}).to_workload()
    assert counts(jobs) == {"no_processors": 1}


def test_too_wide__is_dropped():
    assert counts(log_of({}, {"allocated_procs": 9, "requested_procs": 9}).to_workload()) == {"too_wide": 1}
    assert counts(log_of({}, {"allocated_procs": 8, "requested_procs": 8}).to_workload()) == {}


def test_too_wide__may_be_an_error_that_names_the_first_such_job(golden):
    log = log_of({}, {"allocated_procs": 99, "runtime": -1}, {"allocated_procs": 12}, {"allocated_procs": 13})
    golden("info", message_of(log, too_wide="error"))
    assert len(log_of({}, {}).to_workload(too_wide="error")) == 2


def test_bad_line__is_counted_among_the_dropped_records():
    jobs = log_of({}, bad_lines=(BadLine(4, "1 field instead of 18", "x"),)).to_workload()
    assert counts(jobs) == {"bad_line": 1}
    assert jobs.origin.records == 2


def test_drops__record_counts_under_the_first_rule_that_drops_it():
    everything = {"status": 5, "submit": -1, "runtime": -1, "allocated_procs": -1, "requested_procs": -1}
    assert counts(log_of({}, everything).to_workload()) == {"cancelled_before_start": 1}
    assert counts(log_of({}, everything | {"status": 1}).to_workload()) == {"unknown_submit": 1}
    assert counts(log_of({}, {"runtime": -1, "allocated_procs": 99}).to_workload()) == {"unknown_runtime": 1}


def test_drops__no_job_left_is_an_error_that_says_why(golden):
    message = message_of(log_of({"runtime": -1}, {"allocated_procs": 9}, {"submit": -1}))
    golden("info", message)


def test_drops__dropped_record_is_neither_changed_nor_noticed():
    jobs = log_of({"submit": 9}, {"submit": 3.5, "runtime": -1, "requested": -1, "requested_procs": 2}).to_workload()
    assert counts(jobs) == {"unknown_runtime": 1}


# Rules that change.


def test_clipped_to_machine__gets_all_processors():
    jobs = log_of({}, {"allocated_procs": 9, "requested_procs": 9}).to_workload(too_wide="clip")
    assert counts(jobs) == {"clipped_to_machine": 1}
    assert jobs.procs.tolist() == [4, 8]


@pytest.mark.parametrize("requested", [-1, 0])
def test_runtime_as_estimate__at_least_one_second(requested):
    jobs = log_of({}, {"requested": requested}, {"requested": requested, "runtime": 0}).to_workload()
    assert counts(jobs) == {"runtime_as_estimate": 2, "zero_runtime": 1}
    assert jobs.requested.tolist() == [90, 60, 1]
    assert jobs.runtime.tolist() == [60, 60, 0]


def test_runtime_as_estimate__log_without_any_estimate():
    jobs = log_of({"requested": -1}, {"requested": -1, "runtime": 7}).to_workload()
    assert counts(jobs) == {"runtime_as_estimate": 2}
    assert jobs.requested.tolist() == [60, 7]


def test_rounded_time__halves_go_up():
    log = log_of({"submit": 0.49}, {"submit": 0.5, "runtime": 2.5}, {"submit": 7, "runtime": 3.5, "requested": 9.4}, {"submit": 8})
    jobs = log.to_workload()
    assert counts(jobs) == {"rounded_time": 3}
    assert jobs.submit.tolist() == [0, 1, 7, 8]
    assert jobs.runtime.tolist() == [60, 3, 4, 60]
    assert jobs.requested.tolist() == [90, 90, 9, 90]
    assert jobs.submit.dtype == np.int64


def test_rounded_time__number_just_below_a_half_goes_down():
    assert log_of({"submit": 0.49999999999999994}).to_workload().submit.tolist() == [0]


def test_rounded_time__unknown_stays_unknown():
    assert counts(log_of({"submit": 0.5}, {"submit": -1, "runtime": 0.5}).to_workload()) == {"unknown_submit": 1, "rounded_time": 1}


def test_rounded_time__small_estimate_is_one_second():
    jobs = log_of({"runtime": 0.2, "requested": 0.3}).to_workload()
    assert counts(jobs) == {"rounded_time": 1, "zero_runtime": 1}
    assert jobs.requested.tolist() == [1]


def test_reordered__jobs_come_out_in_order_of_arrival():
    jobs = log_of({"submit": 10}, {"submit": 5}, {"submit": 7}, {"submit": 12}).to_workload()
    assert counts(jobs) == {"reordered": 2}
    assert jobs.job_id.tolist() == [2, 3, 1, 4]
    assert jobs.submit.tolist() == [5, 7, 10, 12]


def test_reordered__jobs_of_one_second_go_by_their_number():
    jobs = log_of({"job_id": 9}, {"job_id": 4}).to_workload()
    assert counts(jobs) == {}
    assert jobs.job_id.tolist() == [4, 9]


def test_reordered__dropped_record_puts_nobody_behind():
    assert counts(log_of({"submit": 10, "runtime": -1}, {"submit": 5}).to_workload()) == {"unknown_runtime": 1}


def test_duplicate_id__later_records_get_new_numbers():
    jobs = log_of({"job_id": 3}, {"job_id": 3, "submit": 1}, {"job_id": 3, "submit": 2}, {"job_id": 8, "submit": 3}).to_workload()
    assert counts(jobs) == {"duplicate_id": 2}
    assert jobs.job_id.tolist() == [3, 9, 10, 8]


def test_duplicate_id__number_of_a_dropped_record_is_free():
    jobs = log_of({"job_id": 3, "runtime": -1}, {"job_id": 3}, {"job_id": 4}).to_workload()
    assert counts(jobs) == {"unknown_runtime": 1}
    assert jobs.job_id.tolist() == [3, 4]


def test_unknown_id__gets_a_number():
    jobs = log_of({"job_id": -1}, {"job_id": 6, "submit": 1}, {"job_id": -1, "submit": 2}).to_workload()
    assert counts(jobs) == {"unknown_id": 2}
    assert jobs.job_id.tolist() == [7, 6, 8]


def test_unknown_id__log_without_any_number():
    jobs = log_of({"job_id": -1}, {"job_id": -1}).to_workload()
    assert counts(jobs) == {"unknown_id": 2}
    assert jobs.job_id.tolist() == [1, 2]


# What is noticed.


def test_zero_runtime__is_legal():
    jobs = log_of({"runtime": 0}, {"runtime": 0, "status": 0}).to_workload()
    assert counts(jobs) == {"zero_runtime": 2}
    assert jobs.runtime.tolist() == [0, 0]


def test_runtime_over_estimate__is_left_as_it_is():
    jobs = log_of({"runtime": 91}, {"runtime": 90}).to_workload()
    assert counts(jobs) == {"runtime_over_estimate": 1}
    assert (jobs.runtime.tolist(), jobs.requested.tolist()) == ([91, 90], [90, 90])


def test_procs_differ__allocated_processors_are_taken():
    log = log_of({"allocated_procs": 2, "requested_procs": 3}, {"requested_procs": -1}, {"allocated_procs": 0})
    jobs = log.to_workload()
    assert counts(jobs) == {"procs_differ": 1}
    assert jobs.procs.tolist() == [2, 4, 4]


def test_procs_differ__requested_processors_may_be_taken():
    log = log_of({"allocated_procs": 2, "requested_procs": 3}, {"requested_procs": -1}, {"allocated_procs": 0})
    assert log.to_workload(requested_first=True).procs.tolist() == [3, 4, 4]


# The table of rules, and any log at all.


def test_rules__have_one_name_each_and_say_what_they_mean():
    names = [rule.name for rule in RULES]
    assert len(set(names)) == len(names)
    assert all(rule.meaning.endswith(".") for rule in RULES)


odd_log = st.lists(
    st.fixed_dictionaries(
        {
            "job_id": st.integers(-1, 6),
            "submit": st.sampled_from([-1, 0, 1, 2.5, 7, 7.5]),
            "runtime": st.sampled_from([-1, 0, 0.4, 3, 9]),
            "requested": st.sampled_from([-1, 0, 0.3, 2, 9]),
            "allocated_procs": st.integers(-1, 10),
            "requested_procs": st.integers(-1, 10),
            "status": st.integers(-1, 5),
        }
    ),
    min_size=1,
    max_size=12,
)


@given(odd_log, st.sampled_from(["summary", "parts"]), st.sampled_from(["drop", "clip"]), st.booleans())
def test_workload__of_any_log_has_a_count_for_every_record(records, partial, too_wide, requested_first):
    log = log_of({"job_id": 100}, *records)
    jobs = log.to_workload(partial=partial, too_wide=too_wide, requested_first=requested_first)
    counts(jobs)
    origin = jobs.origin
    for effect, found in (("drop", origin.dropped), ("change", origin.changed), ("notice", origin.noticed)):
        assert set(found) <= {rule.name for rule in RULES if rule.effect == effect}
        assert all(count > 0 for count in found.values())
    assert (jobs.requested >= 1).all()
    assert all(len(values) == len(jobs) for values in jobs.columns.values())


# Real logs.


def test_kth__what_is_odd_in_it():
    jobs = read(trace_path("KTH-SP2-1996-2"))
    assert counts(jobs) == {"zero_runtime": 8, "runtime_over_estimate": 475, "procs_differ": 219}
    assert (len(jobs), jobs.machine_procs) == (28_489, 100)
    assert jobs.origin.unix_start_time == 843_480_031
    assert str(jobs.origin.tzinfo()) == "Europe/Stockholm"
    assert jobs.origin.name == "KTH-SP2-1996-2"


def test_ctc__another_machine():
    assert read(trace_path("CTC-SP2-1996-3.1-cln.recon"), procs=512).machine_procs == 512


def test_ctc__smaller_machine_drops_wide_jobs():
    jobs = read(trace_path("CTC-SP2-1996-3.1-cln.recon"), procs=100)
    assert counts(jobs).keys() == {"too_wide"}
    assert jobs.procs.max() <= 100


@pytest.mark.slow
def test_cm5__jobs_without_estimate_or_processors():
    found = counts(read(trace_path("LANL-CM5-1994-4.1-cln")))
    assert (found["no_processors"], found["runtime_as_estimate"], found["runtime_over_estimate"]) == (3, 11_287, 40_180)


def test_repeated_records__of_two_exports_count_once():
    columns = {"job_id": [1, 2, 1, 1], "submit": [0, 5, 0, 0], "runtime": [9, 9, 9, 8], "allocated_procs": [4, 2, 4, 4], "wait": [1] * 4}

    jobs = JobLog(4, columns, format="swf").to_workload(procs=8)
    assert jobs.origin.dropped == {"repeated_record": 1}
    assert (jobs.origin.drops[0].work, jobs.origin.changed["duplicate_id"], len(jobs)) == (0, 1, 3)
    tasks = JobLog(4, columns).to_workload(procs=8)
    assert (tasks.origin.dropped, len(tasks)) == ({}, 4), "tasks of an array may have one number in a table"


def test_estimated_size__has_no_nodes_where_jobs_may_share_them():
    columns = {"submit": [0, 0], "wait": [0, 0], "runtime": [9, 9], "allocated_procs": [4, 2]}
    assert estimated_size(JobLog(2, columns | {"nodes": [2, 1]})).nodes == 3
    shared = estimated_size(JobLog(2, columns | {"nodes": [1, 1]}))
    assert (shared.procs, shared.nodes) == (6, None)
    equal = columns | {"allocated_procs": [4, 4], "nodes": [1, 1]}
    assert [estimated_size(JobLog(2, equal | {"node_list": lists})).nodes for lists in ([1, 2], [1, 1], [-1, -1])] == [2, None, 2]
    known = [estimated_size(JobLog(2, equal | lists)).unshared for lists in ({}, {"node_list": [1, 2]}, {"node_list": [1, 1]})]
    assert known == [False, True, False], "without lists of nodes, jobs of equal size may share them"
    after = equal | {"wait": [0, 9], "node_list": [1, 1]}
    assert estimated_size(JobLog(2, after)).nodes == 1
