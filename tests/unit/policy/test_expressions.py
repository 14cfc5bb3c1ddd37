"""Orders written as expressions, and the limit on waiting that follows the longest wait: by hand, and the kernel beside the reference."""

import math

import numpy as np
import pytest

import walltime as wt
from tests.profiles import seeds
from tests.unit.policy.test_history import made
from walltime.policy import parse_order

ORDERS = (
    "expr:log(wait+60)-1.5*log(area),max-wait-share=0.6",
    "expr:(wait>10)*max(wait,planned)-exp(procs/9),starvation=20",
    "expr:user_used/(1+user_started)+log(longest),half-life=9",
    "expr:log(wait-5)/(wait-9)-sqrt(procs-3)",
    "sjf:max-wait-share=0.5",
    "wfp:max-wait-share=0.9",
    "lxf:max-wait-share=0.5,starvation=20",
    "power:wait=1,planned=-1,max-wait-share=0.7",
    "wfp:threshold=0.5,max-wait-share=0.5",
    "linear:wait=1,log-wait=1,planned=-1",
    "expr:log(wait+60)-log(waiting+1)*log(planned+60)*(queued>9*machine)",
    "expr:(procs>free)*procs-planned*tanh(queued/machine/90),max-wait-share=0.8",
    "expr:log(longest+1)*wait-procs*(machine-free)",
)


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("log(wait+60)", math.log(160)),
        ("wait/planned*procs", 8.0),
        ("wait/(planned*procs)", 0.5),
        ("-2*area", -400.0),
        ("(wait>99)-(wait<100)", 1.0),
        ("max(wait,procs)-min(wait,procs)", 96.0),
        ("log(wait-100)", math.log(1e-9)),
        ("sqrt(-procs)", 0.0),
        ("wait-(procs-1)", 97.0),
        ("wait/(procs-4)", math.inf),
        ("tanh(wait/planned)-tanh(-procs)", math.tanh(2) + math.tanh(4)),
    ],
)
def test_expression__by_hand(text, score):
    assert parse_order(f"expr:{text}").score(wait=100, planned=50, procs=4, submit=0) == pytest.approx(score, rel=1e-12)


@pytest.mark.parametrize("text", ["-elapsed-3*log(procs)", "log(elapsed-50)/(planned-9)", "exp(planned*planned)-requested"])
def test_scores__of_many_jobs_are_those_of_each(text):
    order = parse_order(f"expr:{text}")
    columns = {name: np.array(values) for name, values in (("elapsed", [0, 50, 99]), ("planned", [9, 10, 40]), ("procs", [1, 4, 64]))}
    columns["requested"] = columns["planned"]
    jobs = [{name: int(values[k]) for name, values in columns.items()} for k in range(3)]
    assert order.scores(columns).tolist() == [order.score(wait=0, submit=0, **job) for job in jobs]


def test_expression__is_compiled_once_for_all_numbers():
    one, other = parse_order("expr:log(wait + 60.0)-2*log(area)"), parse_order("expr:log(wait+5)-0.5*log(area)")
    assert one.scoring is other.scoring
    assert one.but((5.0, 0.5)) == other
    assert one.but((-5.0, 1e-7)).parameters == (-5.0, 1e-7)
    assert parse_order("expr:-3*wait+-2*procs").scoring is parse_order("expr:3*wait+2*procs").scoring, "a sign belongs to its number"


@pytest.mark.parametrize("text", [*ORDERS, "expr:wait--2-3e-05*procs"])
def test_label__parses_back(text):
    order = parse_order(text)
    assert parse_order(order.label) == order
    policy = wt.Easy(order=order, backfill_order=wt.SJF)
    assert wt.policy.parse_policy(policy.label) == policy


@pytest.mark.parametrize(
    "text", ["expr:3", "expr:wiat", "expr:wait**2", "expr:open(wait)", "expr:max(wait)", "expr:wait+", "expr:user_used"]
)
def test_expression__says_what_is_wrong(golden, text):
    with pytest.raises(wt.PolicyError) as caught:
        parse_order(text)
    golden("simulate", str(caught.value))


@pytest.mark.parametrize("engine", ["kernel", "reference"])
def test_limit__follows_the_longest_wait(engine):
    """Jobs of 4 processors of 4. The first runs to 100; job 2 waits 99 s and is the shortest. At 110 job 3 has waited 108 s, job 4 2 s."""
    jobs = wt.Workload.from_arrays(submit=[0, 1, 2, 108], runtime=[100, 10, 50, 20], procs=[4] * 4, machine_procs=4)

    def starts(order):
        return wt.simulate(jobs, wt.NoBackfilling(order=parse_order(order)), engine=engine).start.tolist()

    assert starts("sjf") == starts("sjf:max-wait-share=1.1") == [0, 100, 130, 110], "108 s are less than 1.1 x 99 s"
    assert starts("sjf:max-wait-share=1.09") == [0, 100, 110, 160]
    assert starts("sjf:max-wait-share=0.5,starvation=108") == starts("sjf")
    assert starts("sjf:max-wait-share=0.5,starvation=107") == starts("sjf:max-wait-share=0") == starts("fcfs") == [0, 100, 110, 160]


@pytest.mark.sampled(3)
@pytest.mark.slow
@pytest.mark.parametrize(
    "text", [ORDERS[2], *ORDERS[-2:], *(pytest.param(text, marks=pytest.mark.nightly) for text in (*ORDERS[:2], *ORDERS[3:-2]))]
)
def test_orders__kernel_equals_reference_and_the_auditor_agrees(text):
    order, moved = parse_order(text), 0
    for seed in seeds(3):
        jobs = made(seed)
        policies = [wt.Easy(order=order), wt.Easy(backfill_order=order), wt.NoBackfilling(order=order)]
        policies += [] if getattr(order, "threshold", 0) else [wt.Conservative(order=order)]  # a threshold allows one reservation at most
        for policy in policies:
            kernel, reference = (wt.simulate(jobs, policy, engine=engine) for engine in ("kernel", "reference"))
            assert np.array_equal(kernel.start, reference.start)
            assert not kernel.audit().violations
            moved += int((kernel.start != wt.simulate(jobs, type(policy)()).start).sum())
    assert moved, "the order matters"


@pytest.mark.sampled(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "sjf:max-wait-share=0.4",
        "lxf:max-wait-share=0.3",
        "expr:0.7*log(wait+60)-log(planned+60),max-wait-share=0.4",
        "unicef:max-wait-share=0.5",
    ],
)
def test_limit__in_a_deep_queue_equals_the_reference(text):
    """In a queue of many blocks the kernel scores few jobs; that shows in no schedule."""
    for seed in seeds(2):
        random = np.random.default_rng(seed)
        submit, runtime = np.sort(random.integers(0, 900, 180)), random.integers(1, 300, 180)
        jobs = wt.Workload.from_arrays(submit=submit, runtime=runtime, procs=random.integers(1, 9, 180), machine_procs=8)
        kernel, reference = (wt.simulate(jobs, wt.Easy(order=parse_order(text)), engine=engine) for engine in ("kernel", "reference"))
        assert np.array_equal(kernel.start, reference.start)


def test_limit__is_audited():
    jobs = made(3)
    limited = wt.simulate(jobs, wt.Easy(order=parse_order("saf:max-wait-share=0.3")))
    unlimited = wt.simulate(jobs, wt.Easy(order=parse_order("saf")))
    assert not np.array_equal(limited.start, unlimited.start)
    columns = unlimited.columns()
    assert wt.audit(jobs, columns, wt.Easy(order=parse_order("saf:max-wait-share=0.3"))).violations


@pytest.mark.slow
def test_own_orders__take_limits(tmp_path):
    file = tmp_path / "own.py"
    file.write_text("def shortest(planned):\n    return -planned\n")
    order = parse_order(f"{file}:shortest:max-wait-share=0.5,starvation=20")
    assert order.bounds == (20, 0.5)
    jobs = made(1)
    same = wt.simulate(jobs, wt.Easy(order=parse_order("sjf:max-wait-share=0.5,starvation=20")))
    assert np.array_equal(wt.simulate(jobs, wt.Easy(order=order)).start, same.start)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["saf:max-wait-share=0.4", "sjf:max-wait-share=0.4", "expr:log(wait+60)-log(longest+60),max-wait-share=0.4"]
)
def test_limit__is_kept_by_a_copy_of_a_simulation(text):
    jobs, policy = made(4), wt.Easy(order=parse_order(text))
    whole, simulation = wt.simulate(jobs, policy), wt.Simulation(jobs, policy)
    simulation.run_until(400)
    copy = simulation.copy()
    assert np.array_equal(simulation.finish().start, whole.start)
    assert np.array_equal(copy.finish().start, whole.start)
