"""A back-cast: rules are inferred from what a log recorded before a change of its site, and predict what was recorded after it.

    python validation/back_casts.py LOG --date 1997-05-01 [--ends 08:00] [--json]

Three machines are simulated freely along the whole log: the plain machine under EASY; the machine with the rules inferred from the months
before the date; and the same with the change. In the last one, windows that begin at the time of `--ends` hold only until the date. The
recorded mean waits are printed with the calibration error from the months before. "Trusted from" is reliable if the error after the date is
within it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import walltime as wt
from walltime.errors import WalltimeError
from walltime.inference import infer
from walltime.machine import Machine
from walltime.metrics.recorded import agreement
from walltime.metrics.weekly_interval import LogWeeks
from walltime.workload.filters import span_of
from walltime.workload.scaling import window

FAR = "2999-01-01"


def back_cast(workload: wt.Workload, date: str, ends: str | None = None) -> dict[str, Any]:
    """The mean waits before and after a date, s: recorded, and simulated with what is known from before; see above."""
    cut, _ = span_of(workload, f"{date}:{FAR}")
    inference = infer(window(workload, int(workload.submit[0]), cut))
    if inference.refused:
        return {"log": workload.origin.name, "date": date, "refused": inference.refused}
    site = inference.machine
    machines: dict[str, Machine] = {"plain EASY": Machine.one_pool(workload.machine_procs, policy="easy"), "the rules of before": site}
    if ends is not None:
        changed = tuple(replace(one, until=cut) if one.begin == ends else one for one in site.windows)
        machines["the rules of before, changed"] = replace(site, windows=changed)
    rows = [{"machine": name, **_compared(workload, machine, cut)} for name, machine in machines.items()]
    return {"log": workload.origin.name, "date": date, "rules": [rule.text for rule in inference.rules], "rows": rows}


def _compared(workload: wt.Workload, machine: Machine, cut: int) -> dict[str, Any]:
    """Return recorded and simulated mean waits before and after, and whether the error after is within the calibration error before."""
    schedule = wt.simulate(workload, machine.policy or "easy", machine=machine)
    jobs = schedule.workload
    recorded = jobs.recorded_wait
    assert recorded is not None
    weeks = LogWeeks.of(jobs.submit, (schedule.submit, schedule.start))
    known = [(recorded >= 0) & mask for mask in (jobs.submit < cut, jobs.submit >= cut)]
    before, after = (agreement("", "", recorded[inside], schedule.wait[inside], weeks, inside) for inside in known)
    return {
        "before": {"recorded": before.mean_recorded, "simulated": before.mean_simulated, "rank_correlation": before.rank_correlation},
        "after": {"recorded": after.mean_recorded, "simulated": after.mean_simulated, "rank_correlation": after.rank_correlation},
        "trusted_from": before.threshold,
        "doubt": before.doubt,
        "error_after": after.bias,
        "within": bool(np.abs(after.bias) <= before.threshold),
    }


def shown(found: dict[str, Any]) -> str:
    """The back-cast as text."""
    if "refused" in found:
        return f"{found['log']}: {found['refused']}"
    lines = [f"{found['log']}, {found['date']}: {'; '.join(found['rules']) or 'no rule'}"]
    lines += [f"{'mean wait, h':32} {'before':>18} {'after':>18} {'off by up to':>13} {'off after':>10}"]
    for row in found["rows"]:
        parts = [f"{row[part]['simulated'] / 3600:6.2f} of {row[part]['recorded'] / 3600:6.2f}" for part in ("before", "after")]
        ends = f"{row['trusted_from'] / 3600:13.2f} {row['error_after'] / 3600:+10.2f} {'within' if row['within'] else 'BEYOND'}"
        lines.append(f"{row['machine']:32} {parts[0]:>18} {parts[1]:>18} {ends}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the back-cast; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("--date", required=True, help="when the site changed, such as 1997-05-01")
    parser.add_argument("--ends", help="windows that begin at this time of day hold until then only, such as 08:00")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    try:
        found = back_cast(wt.read(given.log), given.date, given.ends)
    except WalltimeError as fault:
        print(fault, file=sys.stderr)
        return 1
    print(json.dumps(found, indent=2) if given.json else shown(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
