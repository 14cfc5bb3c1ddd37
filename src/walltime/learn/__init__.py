"""Gymnasium environments in which an agent learns to schedule (`pip install walltime[learn]`), and an agent in numpy.

env.py        the environments: `walltime/Backfilling-v0`, single and vectorised
batch.py      decisions, and the arrays of many environments; the kernel is `walltime.engine.kernel.decisions`
features.py   observations: features with units and scales; the formulas that order the queue
sources.py    episodes from windows of a log, or from workloads
ppo.py        the agent: its networks and its learning algorithm
training.py   training on a log, in a folder; selection of episodes
evaluation.py agents, also of other libraries, against formulas on held-out windows
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from walltime.errors import PolicyError
from walltime.lazy import lazy

if TYPE_CHECKING:
    from walltime.learn.batch import DECISIONS as DECISIONS, FINAL_REWARDS as FINAL_REWARDS, REWARDS as REWARDS, Rules as Rules
    from walltime.learn.env import BackfillingEnv as BackfillingEnv, BackfillingVectorEnv as BackfillingVectorEnv
    from walltime.learn.evaluation import AgainstScheduler as AgainstScheduler, Evaluation as Evaluation, evaluate as evaluate
    from walltime.learn.features import FEATURES as FEATURES, FORMULAS as FORMULAS, QUEUE as QUEUE, Feature as Feature
    from walltime.learn.ppo import TrainingSettings as TrainingSettings
    from walltime.learn.sources import Episode as Episode, overlapping as overlapping, windows as windows
    from walltime.learn.training import Task as Task, TrainedAgent as TrainedAgent, load as load, train as train

_get, __dir__, __all__ = lazy(__name__)


def __getattr__(name: str) -> Any:
    """Return a name of the package; the environments need Gymnasium."""
    if name.startswith("Backfilling") and find_spec("gymnasium") is None:
        raise PolicyError("Gymnasium is not installed; run: pip install 'walltime[learn]'")
    return _get(name)


if find_spec("gymnasium") is not None:
    from walltime.learn.env import register

    register()
