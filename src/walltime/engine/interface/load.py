"""Table of the compiled functions that Python calls; each is compiled on first use, or loaded from disk."""

import functools
import importlib
import pkgutil
import threading
import types
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba import float64, int64, typeof
from numba.core import event

from walltime.compiled.compilation import Compilation, notify
from walltime.compiled.jit import StoredFunction, entry as compiled_entry
from walltime.compiled.prediction_memory import NOTHING_PREDICTED, CompiledPredictor
from walltime.engine.kernel import callbacks, decisions, dynamics, memory as common, number, replay as prediction_replay
from walltime.engine.kernel.memory import BY_LENGTH, HEAD, KEEP, Loop, Memory, Pass, record, records
from walltime.engine.kernel.nodes import easy, loop as slurm, oar, planned, planned_memory
from walltime.engine.kernel.nodes.memory import new_slurm_memory
from walltime.engine.kernel.nodes.records import SLURM_JOB, SLURM_RULES
from walltime.engine.kernel.number import loop
from walltime.engine.kernel.pools import loop as cluster, memory as of_pools
from walltime.engine.machines import Nodes, Shares
from walltime.policy.base import PassSpec

Arguments = tuple[Any, ...]


@dataclass(frozen=True)
class Entry:
    """A function of the engine that Python calls."""

    name: str
    what: str
    """its purpose, which follows "the engine for" in messages"""
    function: Any
    example: Callable[[], Arguments]
    """returns arguments of the types for which the function is compiled"""
    functions: int
    """number of functions compiled with it if no code is stored yet; a test counts them"""
    seconds: float
    """approximate duration of that compilation on an ordinary machine, s"""


_NOTHING = np.zeros(0, np.int64)


_MODULES = (importlib.import_module(f"{number.__name__}.{one.name}") for one in pkgutil.iter_modules(number.__path__))
PASSES: tuple[Pass, ...] = tuple(module.PASS for module in _MODULES if hasattr(module, "PASS"))
PASS_OF = {kind: own for own in PASSES for kind in own.kinds}


def _example_run(own: Pass, example: Loop) -> Arguments:
    values = {"mode": own.mode, "procs": 1, "backfill": 1, "order": BY_LENGTH, "backfill_order": BY_LENGTH}
    rules = record(common.RULES, **(values | dict(example.rules)))
    reservations = own.new(rules, PassSpec(own.kinds[0]), 0)
    return *common.new_memory(records(common.JOB, 0), rules, _NOTHING, _NOTHING, reservations), 0


def _example_cluster(mode: int) -> Arguments:
    nothing, none = of_pools.as_lists([]), np.zeros((0, 2), np.int64)
    rules, jobs = record(of_pools.CLUSTER_RULES, mode=mode), records(of_pools.CLUSTER_JOB, 0)
    waiting = of_pools.Restraints(nothing, nothing, _NOTHING)
    return *of_pools.new_cluster_memory(rules, jobs, none, nothing, records(of_pools.OUTAGE, 0), records(of_pools.LIMIT, 0), waiting), 0


def _example_slurm() -> Arguments:
    nothing, machine = of_pools.as_lists([]), Nodes(_NOTHING, _NOTHING, _NOTHING, _NOTHING, _NOTHING, [], [], [], [], [])
    rules, jobs = record(SLURM_RULES), records(SLURM_JOB, 0)
    shares = Shares(*[np.zeros(1, np.int64)] * 3)
    return *new_slurm_memory(rules, jobs, machine, records(of_pools.LIMIT, 0), nothing, nothing, shares, 0), 0


def _example_easy() -> Arguments:
    nothing, machine = of_pools.as_lists([]), Nodes(_NOTHING, _NOTHING, _NOTHING, _NOTHING, _NOTHING, [], [], [], [], [])
    rules, jobs = record(easy.EASY_RULES), records(easy.EASY_JOB, 0)
    return *easy.new_easy_memory(rules, jobs, machine, records(of_pools.LIMIT, 0), nothing, nothing), 0


def _example_planned() -> Arguments:
    *memory, budget = _example_easy()
    return *planned_memory.new_planned_memory(easy.EasyMemory(*memory), of_pools.as_lists([])), budget


def _example_oar() -> Arguments:
    return *oar.new_oar_memory(record(oar.OAR_RULES), records(oar.OAR_JOB, 0), np.zeros((2, 1), np.int64), of_pools.as_lists([])), 0


def _example_dynamics() -> Arguments:
    kinds = common.JOB, common.NOTE, common.ITEM, common.RUN, dynamics.EFFECT
    jobs, *others = (records(kind, 0) for kind in kinds)
    return _NOTHING, jobs, 0, *others


def _example_decisions() -> Arguments:
    jobs, rules, episodes = (records(kind, 0) for kind in (decisions.JOB, decisions.RULES, decisions.EPISODE))
    log = decisions.Log(jobs, np.zeros((0, 0)), np.zeros((0, 0), np.float32), episodes)
    for array in (rules, *log):
        array.flags.writeable = False
    shown, summary = np.zeros((0, 0, 0), np.float32), np.zeros((0, 0), np.float32)
    observed = decisions.Observations(shown, summary, np.zeros((0, 0), np.int8), np.zeros(0))
    return 0, 0, _NOTHING, rules, log, decisions.new_environments(0, 0, 0, 0, False), observed


def _example_prediction_replay() -> Arguments:
    past = prediction_replay.LogColumns(*[_NOTHING] * 6)
    return record(prediction_replay.ADDRESSES), NOTHING_PREDICTED, past, 0


def loop_name(memory: Memory) -> str:
    """Return the name of the loop for memory of this kind."""
    own = next(one for one in PASSES if isinstance(memory.reservations, one.reservations))
    return own.loops[own.loop_of(memory)].name


def _loop(one: Loop, run: Any, example: Callable[..., Arguments], *of: Any, **others: Any) -> Entry:
    """Return a copy of an event loop with its own name, to be compiled separately; `others`: its globals that differ from the module's."""
    own = types.FunctionType(run.__code__, run.__globals__ | others, f"run_{one.name.replace('-', '_')}")
    own.__qualname__, own.__module__ = own.__name__, run.__module__
    return Entry(one.name, one.what, compiled_entry(own), functools.partial(example, *of), one.functions, one.seconds)


_POOLS = "machines of several pools"
_TABLE = (
    *(_loop(one, loop.run, _example_run, own, one, make_pass=own.make) for own in PASSES for one in own.loops),
    _loop(Loop("cluster", _POOLS, 118, 14), cluster.run_cluster, _example_cluster, HEAD),
    _loop(Loop("cluster-kept", f"kept reservations on {_POOLS}", 147, 16), cluster.run_cluster, _example_cluster, KEEP),
    Entry("slurm", "Slurm's scheduling", compiled_entry(slurm.run_slurm), _example_slurm, 189, 80),
    Entry("easy-nodes", "FCFS and EASY on a machine of nodes", compiled_entry(easy.run_easy), _example_easy, 122, 13),
    Entry("planned-nodes", "several reservations on a machine of nodes", compiled_entry(planned.run_planned), _example_planned, 121, 13),
    Entry("oar", "OAR's scheduling", compiled_entry(oar.run_oar), _example_oar, 23, 6),
    Entry("dynamics", "what backfilling did", dynamics.replay_starts, _example_dynamics, 6, 1),
    Entry("decisions", "learning environments", decisions.decide, _example_decisions, 27, 7),
    Entry("replay", "predictions for a log", prediction_replay.replay, _example_prediction_replay, 6, 1),
)


def load_predictor(compiled: CompiledPredictor | None) -> dict[str, int]:
    """Return the addresses of a predictor's compiled functions, by purpose; empty if predictions were made in advance."""
    if compiled is None:
        return {}
    returns = {name: (getattr(compiled, name), kind) for name, kind in (("predict", float64), ("observe", int64), ("started", int64))}
    with _loading:
        return {name: callbacks.compile_callback(*function) for name, function in returns.items() if function[0] is not None}


ENTRIES = {entry.name: entry for entry in _TABLE}
_loading = threading.Lock()


@functools.cache
def load(name: str) -> Callable[..., Any]:
    """Return the compiled function of this entry; compiled on the first call on a machine, later loaded from disk.

    An array of a type other than the example's is an error, not a second compilation.
    """
    entry = ENTRIES[name]
    function: Callable[..., Any] = entry.function
    if not isinstance(function, StoredFunction):
        return function  # the compiler is disabled
    with _loading, event.install_listener("numba:compile", _Counter(entry)) as counter:
        try:
            compiled: Any = function.compile(tuple(typeof(value) for value in entry.example()))
        finally:
            counter.finish()
        compiled.disable_compile()
    return compiled


@functools.cache
def load_unchecked(name: str) -> Callable[..., Any]:
    """Return the compiled function without checks of argument types, which would take longer than a decision in a learning environment.

    Arguments of other types are read as if they had the right ones.
    """
    function: Any = load(name)
    if not hasattr(function, "overloads"):
        return function  # the compiler is disabled
    (compiled,) = function.overloads.values()
    entry_point: Callable[..., Any] = getattr(compiled, "entry_point", function)  # Numba does not document it
    return entry_point


class _Counter(event.Listener):
    """A listener that counts the functions compiled for an entry. Numba does not report functions that it loads from disk."""

    def __init__(self, entry: Entry):
        self._entry = entry
        self._thread = threading.get_ident()
        self._state: Compilation | None = None

    def on_start(self, event: Any) -> None:
        """Report the first compilation, which is the entry's own; all others happen within it."""
        if self._state is None and threading.get_ident() == self._thread:
            self._say(Compilation(self._entry.name, self._entry.what, self._entry.functions, self._entry.seconds))

    def on_end(self, event: Any) -> None:
        """Count a compiled function, except Numba's own functions and those of other threads."""
        if self._state is None or threading.get_ident() != self._thread:
            return
        module = event.data["dispatcher"].py_func.__module__ or ""  # an expression has none
        if module.startswith(("walltime.engine.", "walltime.predictors.")):
            self._say(replace(self._state, done=self._state.done + 1))

    def finish(self) -> None:
        """Report the end, successful or not."""
        if self._state is not None:
            self._say(replace(self._state, finished=True))

    def _say(self, state: Compilation) -> None:
        self._state = state
        notify(state)
