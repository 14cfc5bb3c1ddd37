"""The worked examples of mualem01, Figs. 1 to 3, as drawings: the jobs are ours, made to show what captions and text describe."""

from __future__ import annotations

import numpy as np

from walltime.papers.drawing import Example, example_chart
from walltime.papers.items import item
from walltime.papers.results import Claims, Part
from walltime.papers.study import Study
from walltime.policy import Conservative, Easy, Hybrid
from walltime.workload import Workload


def jobs_of(machine: int, *rows: tuple[int, int, int, int]) -> Workload:
    """Return jobs from rows of submission, processors, estimate and runtime."""
    submit, procs, requested, runtime = np.array(rows).T
    return Workload.from_arrays(submit=submit, procs=procs, requested=requested, runtime=runtime, machine_procs=machine)


ANCHORS = jobs_of(5, (0, 1, 20, 20), (0, 1, 4, 4), (0, 2, 8, 8), (1, 4, 4, 4), (2, 2, 6, 6), (3, 1, 3, 3))
REPEATED = jobs_of(4, (0, 3, 4, 4), (0, 1, 10, 3), (1, 4, 5, 5), (2, 3, 6, 6))
UNBOUNDED = jobs_of(4, (0, 3, 4, 4), (1, 3, 3, 3), (2, 4, 2, 2), (3, 1, 10, 10))


@item("F1", where="a worked example")
def figure_1(_study: Study) -> list[Part]:
    """Fig. 1: conservative backfilling."""
    names = ["r", "s", "t", "1", "2", "3"]
    examples = [
        Example("conservative: 2 may not run at 4, it would delay 1", ANCHORS, Conservative(), names=names),
        Example("without reservations it does", ANCHORS, Hybrid(depth=0), names=names),
    ]
    start = examples[0].schedule.start.tolist()
    claims = Claims(
        ("1 starts when the first two running jobs have ended", start[3] == 8, f"at {start[3]}"),
        ("2 is not put at its first potential anchor, 4, as it would delay 1", start[4] == 12, f"at {start[4]}"),
        ("3 is backfilled at once", start[5] == 3, f"at {start[5]}"),
    )
    return [example_chart("fig1", examples, "r, s and t run; 1, 2 and 3 wait, in this order."), claims]


@item("F2", where="a worked example")
def figure_2(_study: Study) -> list[Part]:
    """Fig. 2: backfilling again after an early end."""
    names = ["a", "b", "1", "2"]
    examples = [
        Example("compressed", REPEATED, Conservative(), names=names),
        Example("planned from scratch", REPEATED, Conservative(variant="scratch"), names=names),
    ]
    kept, broken = (example.schedule for example in examples)
    start, reserved = int(broken.start[3]), int(broken.reserved_start[3])
    claims = Claims(
        ("compressing: 2 starts at its reserved start", int(kept.start[3]) == int(kept.reserved_start[3]), f"at {kept.start[3]}"),
        ("from scratch: 2 starts later than its reserved start", start > reserved, f"at {start} instead of {reserved}"),
    )
    caption = "b ends at 3 instead of 10; 2 had a reserved start at 4, before 1."
    return [example_chart("fig2", examples, caption), claims]


@item("F3", where="a worked example")
def figure_3(_study: Study) -> list[Part]:
    """Fig. 3: EASY may delay queued jobs."""
    names = ["a", "1", "2", "3"]
    examples = [Example("EASY", UNBOUNDED, Easy(), names=names), Example("conservative", UNBOUNDED, Conservative(), names=names)]
    easy, conservative = (example.schedule.start.tolist() for example in examples)
    claims = Claims(
        ("1, the first in the queue, is not delayed", easy[1] == conservative[1], f"at {easy[1]}"),
        ("2, the second, is delayed by 3 under EASY", easy[2] > conservative[2], f"at {easy[2]} instead of {conservative[2]}"),
    )
    return [example_chart("fig3", examples, "a runs; 1, 2 and 3 wait, in this order."), claims]
