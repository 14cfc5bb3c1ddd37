"""The shadow time of the head of the queue, and its extra nodes: EASY's reservation (mualem01, section 2.2), for all kernels.

Elsewhere it has another form where a loop needs one: number/easy.py draws the shadow time of the same head nearer instead of walking anew,
and in pools/ the head's place is by pool, so it is looked for in the plan.
"""

from __future__ import annotations

from walltime.engine.kernel.jit import kernel

__all__ = ["find_shadow"]


@kernel
def find_shadow(running, count, now, free, wanted):
    """When so many processors are free if nothing starts, how many more are free then, and how many jobs have ended by then.

    `running[:count]`: the running jobs by expected end. All whose expected end is the shadow time count, not only the first sufficient
    ones, and an overdue job is expected to end now; both are interpretations of mualem01, section 2.2.
    """
    shadow, i = now, 0
    while free < wanted or (i < count and running[i].expected <= shadow):
        free += running[i].procs
        shadow = max(shadow, running[i].expected)
        i += 1
    return shadow, free - wanted, i
