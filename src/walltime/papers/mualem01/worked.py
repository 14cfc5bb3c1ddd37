"""mualem01, Figs. 1 to 3: draw the worked examples, with jobs of our own that match captions and text."""

import numpy as np

from walltime.papers.drawing import Example, example_chart
from walltime.papers.items import item
from walltime.papers.results import Claim, Parts
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
def figure_1(_study: Study) -> Parts:
    """Fig. 1: conservative backfilling."""
    names = ["r", "s", "t", "1", "2", "3"]
    examples = [
        Example("conservative: 2 may not run at 4, it would delay 1", ANCHORS, Conservative(), names=names),
        Example("without reservations it does", ANCHORS, Hybrid(depth=0), names=names),
    ]
    yield example_chart("fig1", examples, "r, s and t run; 1, 2 and 3 wait, in this order.")
    *_, first, second, third = examples[0].schedule.start.tolist()
    yield Claim("1 starts when the first two running jobs have ended", first == 8, f"at {first}")
    yield Claim("2 is not put at its first potential anchor, 4, as it would delay 1", second == 12, f"at {second}")
    yield Claim("3 is backfilled at once", third == 3, f"at {third}")


@item("F2", where="a worked example")
def figure_2(_study: Study) -> Parts:
    """Fig. 2: conservative backfilling after an early end."""
    names = ["a", "b", "1", "2"]
    examples = [
        Example("compressed", REPEATED, Conservative(), names=names),
        Example("planned from scratch", REPEATED, Conservative(variant="scratch"), names=names),
    ]
    yield example_chart("fig2", examples, "b ends at 3 instead of 10; 2 had a reserved start at 4, before 1.")
    (kept, kept_reserved), (start, reserved) = ((int(s.start[3]), int(s.reserved_start[3])) for s in (one.schedule for one in examples))
    yield Claim("compressing: 2 starts at its reserved start", kept == kept_reserved, f"at {kept}")
    yield Claim("from scratch: 2 starts later than its reserved start", start > reserved, f"at {start} instead of {reserved}")


@item("F3", where="a worked example")
def figure_3(_study: Study) -> Parts:
    """Fig. 3: EASY may delay queued jobs."""
    names = ["a", "1", "2", "3"]
    examples = [Example("EASY", UNBOUNDED, Easy(), names=names), Example("conservative", UNBOUNDED, Conservative(), names=names)]
    yield example_chart("fig3", examples, "a runs; 1, 2 and 3 wait, in this order.")
    easy, conservative = (example.schedule.start.tolist() for example in examples)
    yield Claim("1, the first in the queue, is not delayed", easy[1] == conservative[1], f"at {easy[1]}")
    yield Claim("2, the second, is delayed by 3 under EASY", easy[2] > conservative[2], f"at {easy[2]} instead of {conservative[2]}")
