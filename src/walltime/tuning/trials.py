"""What orders cost on windows of a log, with common random numbers; and the folder that keeps it, so that a search goes on after Ctrl-C."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from walltime.errors import OutputError, PolicyError
from walltime.files import json_lines
from walltime.policy import Order, Policy, takes
from walltime.simulation.specification import Scheduler, parse_scheduler
from walltime.simulation.threads import in_threads
from walltime.simulation.windows import Window, log_cost

Array = np.ndarray
PLACES = ("order", "backfill-order")
"""Where an order can be used."""
BELIEF = "100"
"""What predictions decide if there are any, unless it is said: the places in the queue, not how long jobs are planned to run."""


class Trials:
    """Costs of schedulers on windows; each window and each shaken copy of it is simulated, always the same ones.

    `copies`: the log itself, and so many less one shaken by up to `shake` s. `metric`: the cost.
    """

    def __init__(
        self, windows: Sequence[Window], metric: str, copies: int, shake: int, seed: int, overrun: str = "kill", workers: int | None = None
    ):
        self.windows, self.metric, self.overrun, self.workers = windows, metric, overrun, workers
        self.runs = [window if copy == 0 else window.shaken(shake, seed + copy) for window in windows for copy in range(copies)]
        self.copies = copies

    def costs(self, schedulers: Sequence[Scheduler], progress: Callable[[int], None] | None = None) -> Array:
        """Natural logarithms of the costs, float64 of shape (schedulers, windows): means over the copies."""
        count = len(self.runs)

        def make_worker() -> Callable[[int, Callable[[int], None]], float]:
            def run(number: int, check: Callable[[int], None]) -> float:
                which, window = divmod(number, count)
                return float(getattr(self.runs[window].run(schedulers[which], check, overrun=self.overrun), self.metric))

            return run

        values = in_threads(make_worker, len(schedulers) * count, self.workers, progress)
        return log_cost(np.array(values), self.metric).reshape(len(schedulers), len(self.windows), self.copies).mean(axis=2)


def with_order(base: Scheduler, order: Order, where: str) -> Scheduler:
    """The scheduler with another order of the queue or of backfilling; raises PolicyError if its policy has no such order."""
    if where not in PLACES:
        raise PolicyError(f"an order can be used as {' or '.join(PLACES)}, not as {where!r}", "unknown_option")
    if not takes(base.policy, where):
        raise PolicyError(f"{base.policy.label} has no {where.replace('-', ' ')} to tune; take easy, for example", "no_backfill_order")
    changes: dict[str, Any] = {where.replace("-", "_"): order}
    return replace(base, policy=replace(base.policy, **changes))


def with_predictions(policy: Policy, predictor: str, believe: str) -> Scheduler:
    """The scheduler with this policy, and with what is believed of predictions if there is a predictor; by their spellings."""
    return parse_scheduler(f"{policy.label},predictor={predictor},believe={believe}") if predictor else Scheduler(policy)


class CostFolder:
    """Costs by label in a folder: `plan.json` says what they are of, `costs.jsonl` has a line for each; without a folder in memory.

    Raises OutputError if the folder has the costs of something else, or cannot be written.
    """

    def __init__(self, folder: str | Path | None, plan: Mapping[str, Any]):
        self._costs: dict[str, list[float]] = {}
        self._file: Path | None = None
        if folder is None:
            return
        folder = Path(folder)
        text = json.dumps(plan, indent=2, sort_keys=True) + "\n"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            settings, self._file = folder / "plan.json", folder / "costs.jsonl"
            same = not settings.exists() or settings.read_bytes() == text.encode()
            if same:
                settings.write_text(text)
            kept = self._file.read_bytes() if self._file.exists() else b""
        except OSError as error:
            raise OutputError(
                f"{folder}: cannot be used ({(error.strerror or str(error)).lower()}); name another place", "unusable_folder"
            ) from error
        if not same:
            raise OutputError(f"{folder}: has the results of other settings or another log; name another folder", "other_settings")
        for record in json_lines(kept):
            label, costs = record.get("scheduler"), record.get("costs")
            if isinstance(label, str) and isinstance(costs, list) and all(type(one) in (int, float) for one in costs):
                self._costs[label] = costs
        if kept and not kept.endswith(b"\n"):  # a run was interrupted within its last line
            with self._file.open("ab") as file:
                file.write(b"\n")

    def costs(self, schedulers: Sequence[Scheduler], find: Callable[[list[Scheduler]], Array]) -> Array:
        """The costs of these schedulers; `find` is asked for those that are not kept yet, all at once."""
        missing = list({one.label: one for one in schedulers if one.label not in self._costs}.values())
        if missing:
            rows = {one.label: row.tolist() for one, row in zip(missing, find(missing), strict=True)}
            self._costs |= rows
            if self._file is not None:
                with self._file.open("a") as file:
                    file.writelines(json.dumps({"scheduler": label, "costs": costs}) + "\n" for label, costs in rows.items())
        return np.array([self._costs[one.label] for one in schedulers])

    def __len__(self) -> int:
        return len(self._costs)
