"""Gymnasium environments in which an agent learns to schedule (`pip install walltime[learn]`), and an agent that needs only numpy.

env.py        the environments: `walltime/Backfilling-v0`, single and vectorised
batch.py      decisions, and the arrays of many environments; the kernel is `walltime.engine.kernel.decisions`
features.py   observations: features with units and scales; the formulas that order the queue
sources.py    episodes from windows of a log, models, and shaken logs
ppo.py        the agent: its networks and its learning algorithm
training.py   training on a log, in a folder; selection of episodes
evaluation.py agents, also of other libraries, against formulas on held-out windows
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from walltime.errors import PolicyError
from walltime.learn.batch import DECISIONS, FINAL_REWARDS, REWARDS, SELECTIONS, Rules
from walltime.learn.evaluation import AgainstScheduler, Evaluation, Importance, evaluate
from walltime.learn.features import FEATURES, FORMULAS, QUEUE, Feature
from walltime.learn.ppo import TrainingSettings
from walltime.learn.sources import Episode, from_model, overlapping, shaken, windows
from walltime.learn.training import Task, TrainedAgent, filter_episodes, load, train

if TYPE_CHECKING:
    from walltime.learn.env import BackfillingEnv as BackfillingEnv
    from walltime.learn.env import BackfillingVectorEnv as BackfillingVectorEnv

ENVIRONMENTS = ("BackfillingEnv", "BackfillingVectorEnv")
__all__ = [
    "DECISIONS",
    "FEATURES",
    "FINAL_REWARDS",
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
    "evaluate",
    "filter_episodes",
    "from_model",
    "load",
    "overlapping",
    "shaken",
    "train",
    "windows",
]


def __getattr__(name: str) -> Any:
    """Return an environment, which needs Gymnasium; the rest of the package does not."""
    if name not in ENVIRONMENTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if find_spec("gymnasium") is None:
        raise PolicyError("Gymnasium is not installed; pip install 'walltime[learn]'")
    from walltime.learn import env

    return getattr(env, name)


if find_spec("gymnasium") is not None:
    from walltime.learn.env import register

    register()
