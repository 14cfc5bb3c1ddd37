"""What a compiled predictor has learned, and so much of it as matters for an excerpt of the jobs.

A predictor's memory is of all jobs and all keys. From some moment on only the keys of jobs that have not ended matter, and of their
histories the last jobs; all others stay as they were. So an excerpt has the records of its own jobs, then those of earlier ones that are
still read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from walltime.compiled.prediction_memory import HISTORY, KNOWN, PredictionRules, PredictionState, PredictorMemory

Array = np.ndarray


class Excerpt(NamedTuple):
    """Part of a memory: `learning`, for the jobs [first, last).

    `old`: the earlier jobs whose records come behind these; `keys`: the numbers of its keys in the whole; the last one is for all jobs.
    `ended`: how many jobs of each had ended; `room`: of each in its `fifo`.
    """

    learning: PredictorMemory
    first: int
    last: int
    old: Array
    keys: Array
    ended: Array


class LearnedMemory:
    """The memory of a predictor for all jobs, as of some moment; nothing of it is written to.

    `reads`: how many of the last jobs of a key it reads; below 0: those whose records have not expired.
    """

    def __init__(self, learning: PredictorMemory, reads: int):
        self.learning, self.reads = learning, reads

    def excerpt(self, first: int, last: int) -> Excerpt:
        """So much of the memory as matters for these jobs; their records are as they are in the whole."""
        whole, every = self.learning, len(self.learning.keys) - 1
        own = whole.key[first:last]
        keys = np.append(np.unique(own[own >= 0]), every)
        histories = whole.keys[keys]
        ended = histories["ended"].copy()
        begin = histories["expired"] if self.reads < 0 else np.maximum(ended - self.reads, 0)
        ranked = len(whole.marks) > 0
        coming = np.bincount(np.searchsorted(keys, own[own >= 0]), minlength=len(keys))
        if len(whole.fifo) and not ranked:
            coming[-1] = last - first
        room = np.where(keys == every, ended - begin + (last - first), histories["room"] if ranked else ended - begin + coming)
        offset = np.concatenate([[0], np.cumsum(room)])[:-1]
        fifo, places = np.zeros(int(room.sum()), np.int64), _runs(ended - begin)
        which = np.repeat(np.arange(len(keys)), ended - begin)
        jobs = whole.fifo[histories["first"][which] + begin[which] + places]
        earlier = (jobs < first) | (jobs >= last)
        old = np.unique(jobs[earlier])
        number = np.where(earlier, last - first + np.searchsorted(old, jobs), jobs - first)
        shift = begin * (0 if ranked else 1)
        shift[-1] = begin[-1]  # nothing is ranked among all jobs
        fifo[offset[which] + begin[which] - shift[which] + places] = number
        own_keys = histories.copy()
        own_keys["first"], own_keys["room"] = offset - shift, np.where(keys == every, own_keys["room"], room)
        marks = values = None
        marks, values = np.zeros(0, np.int64), np.zeros(0)
        if ranked:
            inside = np.repeat(histories["first"][:-1], room[:-1]) + _runs(room[:-1])
            marks, values = whole.marks[inside], whole.values[inside]
        learning = whole._replace(
            jobs=np.concatenate([whole.jobs[first:last], whole.jobs[old]]).astype(KNOWN, copy=False).view(np.recarray),
            key=np.where(own >= 0, np.searchsorted(keys, own), -1),
            keys=own_keys.astype(HISTORY, copy=False).view(np.recarray),
            counts=whole.counts[keys],
            fifo=fifo,
            marks=marks,
            values=values,
            features=whole.features[first:last],
        )
        return Excerpt(learning, first, last, old, keys, ended)

    def advanced(self, part: Excerpt, learning: PredictorMemory, arrived: int) -> LearnedMemory:
        """The memory after what an excerpt has learned since, whose jobs before `arrived` may have records that changed."""
        whole = PredictorMemory(*(array.copy() for array in self.learning))
        count, keys = part.last - part.first, part.keys
        whole.jobs[part.first : part.first + arrived] = learning.jobs[:arrived]
        before, after, now = self.learning.keys[keys], part.learning.keys, learning.keys
        for name in ("ended", "admitted", "expired", "total", "squares"):
            column = whole.keys[name]
            column[keys] = now[name]
        which = np.repeat(np.arange(len(keys)), now["ended"] - part.ended)
        places = part.ended[which] + _runs(now["ended"] - part.ended)
        jobs = learning.fifo[after["first"][which] + places]
        old = np.append(part.old, 0)[np.maximum(jobs - count, 0)]
        whole.fifo[before["first"][which] + places] = np.where(jobs < count, jobs + part.first, old)
        whole.counts[keys] = learning.counts
        if len(whole.marks):
            room = before["room"][:-1]
            inside = np.repeat(before["first"][:-1], room) + _runs(room)
            whole.marks[inside] = learning.marks[: len(inside)]
        return LearnedMemory(whole, self.reads)


class Guesses(NamedTuple):
    """How jobs are predicted, `prediction`, what has been learned for that, `learned`, and the `part` of it in an excerpt.

    `said`: of the jobs before the excerpt what was predicted, on what basis, and how often it was corrected.
    """

    prediction: PredictionRules
    learned: LearnedMemory
    part: Excerpt | None
    said: tuple[tuple[Array, Array, Array], ...]

    @property
    def of_coming(self) -> Array:
        """What stands for the prediction of each job until it arrives, or is that."""
        compiled = self.prediction.compiled
        return self.prediction.predicted if compiled is None else np.asarray(compiled.learning.jobs.limit)

    def ahead(self, source: PredictionState, first: int, gone: int, arrived: int, last: int) -> tuple[Guesses, PredictionState]:
        """For an excerpt that begins `gone` jobs after the one of `source`, whose first is `first`, and ends before the job `last`."""
        learned, part, learning = self.learned, self.part, source.learning
        if self.prediction.compiled is not None:
            if part is None:
                learned = LearnedMemory(PredictorMemory(*(array.copy() for array in learning)), learned.reads)
            else:
                learned = learned.advanced(part, learning, arrived)
            part = learned.excerpt(first + gone, last)
            learning = part.learning
        coming = self.of_coming[first + arrived : last]
        predicting = PredictionState(
            predicted=np.concatenate([source.predicted[gone:arrived], coming]),
            corrections=np.concatenate([source.corrections[gone:arrived], np.zeros(len(coming), np.int64)]),
            increments=source.increments,
            learning=learning,
        )
        return self._replace(learned=learned, part=part, said=(*self.said, self.of(source, first, gone))), predicting

    def of(self, source: PredictionState, first: int, jobs: int) -> tuple[Array, Array, Array]:
        """What was predicted of so many jobs of an excerpt whose first job is `first`."""
        if self.prediction.compiled is None:
            basis = self.prediction.basis[first : first + jobs]
        else:
            basis = source.learning.jobs["basis"][:jobs].astype(np.uint8)
        return source.predicted[:jobs].copy(), basis, source.corrections[:jobs].copy()


def _runs(lengths: Array) -> Array:
    """0, 1, ... for each of these lengths, one after the other."""
    return np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
