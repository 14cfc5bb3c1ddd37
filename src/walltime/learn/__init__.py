"""Environments in which an agent learns to schedule, for Gymnasium (`pip install walltime[learn]`); and an agent that needs only numpy.

env.py        the environments: `walltime/Backfilling-v0`, one and many side by side
batch.py      what is decided, and the arrays of many environments; the kernel is `walltime.engine.kernel.decisions`
features.py   what is observed: every feature, with its unit and scale; the formulas that order the queue
sources.py    where episodes come from: windows of a log, models, shaken logs
ppo.py        the agent: its networks, and how it learns
training.py   which episodes are worth learning from; its training on a log, in a folder
evaluation.py schedules of agents, of other libraries too, against those of formulas, on windows that they have not seen
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from walltime.errors import PolicyError
from walltime.learn.batch import AT_THE_END, DECISIONS, REWARDS, SELECTIONS, Rules
from walltime.learn.evaluation import AgainstScheduler, Evaluation, Importance, evaluate
from walltime.learn.features import FEATURES, FORMULAS, QUEUE, Feature
from walltime.learn.ppo import TrainingSettings
from walltime.learn.sources import Episode, drawn, overlapping, shaken, windows
from walltime.learn.training import Task, TrainedAgent, kept, load, train

if TYPE_CHECKING:
    from walltime.learn.env import BackfillingEnv as BackfillingEnv
    from walltime.learn.env import BackfillingVectorEnv as BackfillingVectorEnv

ENVIRONMENTS = ("BackfillingEnv", "BackfillingVectorEnv")
__all__ = [
    "AT_THE_END",
    "DECISIONS",
    "FEATURES",
    "FORMULAS",
    "QUEUE",
    "REWARDS",
    "SELECTIONS",
    "AgainstScheduler",
    "BackfillingEnv",
    "BackfillingVectorEnv",
    "Episode",
    "Evaluation",
    "Feature",
    "Importance",
    "Rules",
    "Task",
    "TrainedAgent",
    "TrainingSettings",
    "drawn",
    "evaluate",
    "kept",
    "load",
    "overlapping",
    "shaken",
    "train",
    "windows",
]


def __getattr__(name: str) -> Any:
    """The environments, which need Gymnasium; everything else of the package does without."""
    if name not in ENVIRONMENTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if find_spec("gymnasium") is None:
        raise PolicyError("Gymnasium is not installed; pip install 'walltime[learn]'")
    from walltime.learn import env

    return getattr(env, name)


if find_spec("gymnasium") is not None:
    from walltime.learn.env import register

    register()
