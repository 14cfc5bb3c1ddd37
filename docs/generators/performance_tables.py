"""The tables and sentences of the page on performance, made from the numbers that the benchmarks stored.

Each function of `PARTS` takes what one section of `benchmarks/run.py` stored and returns Markdown.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

Numbers = dict[str, Any]
FILE = Path(__file__).with_name("performance.json")
STORED = "`docs/generators/performance.json`"


def load(file: Path = FILE) -> Numbers:
    """The stored sections by name; empty if nothing has been measured."""
    numbers: Numbers = json.loads(file.read_text()) if file.exists() else {}
    return numbers


def performance(part: str, file: Path = FILE) -> str:
    """A part of the page as Markdown, or a note that it was not measured."""
    numbers = load(file)
    if part == "runs":
        return runs(numbers)
    name, function = PARTS[part]
    if name not in numbers:
        return f"*Not measured: section `{name}` is not among the stored numbers.*"
    result = numbers[name]["result"]
    if "skipped" in result:
        return f"*Not measured: {result['skipped']}.*"
    if numbers[name]["environment"]["quick"]:
        return "*Measured with small sizes, to try the benchmarks out.*\n\n" + function(result)
    return function(result)


def runs(numbers: Numbers) -> str:
    """When and where each section was measured."""
    if not numbers:
        return "*Nothing has been measured.*"
    rows = []
    for name, section in numbers.items():
        e = section["environment"]
        software = f"walltime {e['walltime']}, Python {e['python']}, numpy {e['numpy']}, Numba {e['numba']}"
        rows.append((f"`{name}`", e["date"], e["cpu"], e["cores"], f"{e['load_before']:.2f}", software))
    head = ("section", "date", "processor", "cores", "load average before", "software")
    return table(head, rows) + f"\n\nAll numbers are in {STORED}."


def throughput(result: Numbers) -> str:
    """Million jobs per second by log and policy."""
    by_log = {name: w for name, w in result["workloads"].items() if "load" not in w}
    if not by_log:
        return "*Not measured on logs: none was available.*"
    every = [rate for w in by_log.values() for rate in w["jobs_per_second"].values()]
    easy = [w["jobs_per_second"]["easy"] for w in by_log.values()]
    return (
        f"Under EASY the kernel simulates {span(easy, millions)} million jobs per second, and under every policy at least "
        f"{millions(min(every))} million. In millions of jobs per second:\n\n{_rates(by_log, result['policies'])}"
    )


def loads(result: Numbers) -> str:
    """Million jobs per second by load and policy."""
    by_load = {f"load {w['load']}": w for w in result["workloads"].values() if "load" in w}
    jobs, procs = next(iter(by_load.values()))["jobs"], result["model_procs"]
    return (
        f"{jobs:,} jobs of the Lublin'99 model on {procs} processors, in millions of jobs per second. Above saturation "
        "the queue grows to the end, and policies that consider all of it at every event are left out:"
        f"\n\n{_rates(by_load, result['policies'])}"
    )


def _rates(workloads: Numbers, policies: Sequence[str]) -> str:
    rows = []
    for name, w in workloads.items():
        rates = w["jobs_per_second"]
        rows.append((name, f"{w['jobs']:,}", *(millions(rates[p]) if p in rates else "" for p in policies)))
    return table(("workload", "jobs", *policies), rows)


def limit(result: Numbers) -> str:
    """The kernel compared with C++."""
    ratios = [w["ratio"] for w in result["workloads"].values()]
    rows = [
        (name, f"{w['jobs']:,}", spread(w["kernel"], milliseconds), spread(w["cpp"], milliseconds), f"{w['ratio']:.2f}")
        for name, w in result["workloads"].items()
    ]
    return (
        f"The kernel takes {span(ratios, '{:.2f}'.format)} times as long as the C++ program (`{result['compiler']}`, "
        f"`{result['flags']}`). Median, with the fastest and the slowest run in parentheses:"
        f"\n\n{table(('workload', 'jobs', 'kernel, ms', 'C++, ms', 'kernel / C++'), rows)}"
    )


def growth(result: Numbers) -> str:
    """Time per job and memory against the number of jobs."""
    points = result["points"]
    rows = [
        (f"{p['jobs']:,}", p["load"], f"{p['seconds']['median']:.4g}", f"{p['seconds_per_job'] * 1e9:.0f}", f"{p['depth']:,.0f}")
        for p in points
    ]
    least, most = points[0], max(points, key=lambda p: p["jobs"])
    memory = result["memory"]
    return (
        f"With {least['jobs']:,} jobs a job takes {least['seconds_per_job'] * 1e9:.0f} ns, with {most['jobs']:,} jobs "
        f"{most['seconds_per_job'] * 1e9:.0f} ns. The process that generates {memory['jobs']:,} jobs and simulates them takes "
        f"{memory['peak_bytes'] / 1e9:.2f} GB at its peak, {memory['bytes_per_job']:.0f} bytes for each job.\n\n"
        f"{table(('jobs', 'load', 'seconds', 'ns per job', 'waiting jobs, mean'), rows)}"
    )


def depth(result: Numbers) -> str:
    """Time per job against the depth of the queue."""
    policies = list(dict.fromkeys(p["policy"] for p in result["points"]))
    said, rows = [], []
    for policy in policies:
        points = [p for p in result["points"] if p["policy"] == policy]
        first, last = points[0], points[-1]
        said.append(
            f"Under {policy} a job takes {microseconds(first)} microseconds with {first['depth']:,.0f} waiting jobs and "
            f"{microseconds(last)} with {last['depth']:,.0f}."
        )
        rows += [(policy, f"{p['depth']:,.0f}", f"{p['jobs']:,}", microseconds(p)) for p in points]
    return f"{' '.join(said)}\n\n{table(('policy', 'waiting jobs, mean', 'starts timed', 'microseconds per job'), rows)}"


def overload(result: Numbers) -> str:
    """Complete runs of an overloaded machine."""
    rows = [
        (p["policy"], p["load"], p["estimates"], f"{p['jobs']:,}", f"{p['seconds']['median']:.3g}", f"{p['seconds_per_job'] * 1e6:.3g}")
        for p in result["overload"]
    ]
    return table(("policy", "load", "estimates", "jobs", "seconds", "microseconds per job"), rows)


def batch(result: Numbers) -> str:
    """Batches on all cores."""
    rows = []
    for b in result["batches"]:
        what = f"{b['badness']} values of f, {b['seeds']} seeds"
        if b["kind"] == "paper":
            what += "; each f deterministic; user estimates"
        numbers = (f"{b['cases']:,}", f"{b['seconds']:.2f}", f"{b['simulations_per_second']:,.0f}", f"{b['peak_bytes'] / 1e9:.2f}")
        rows.append((b["log"], what, f"{b['jobs']:,}", *numbers))
    return table(("log", "estimates", "jobs", "simulations", "seconds", "simulations per second", "peak memory, GB"), rows)


def threads(result: Numbers) -> str:
    """Speed-up and efficiency."""
    most = result["points"][-1]
    rows = [
        (p["workers"], spread(p["seconds"], "{:.2f}".format), f"{p['speedup']:.2f}", f"{100 * p['efficiency']:.0f} %")
        for p in result["points"]
    ]
    return (
        f"{result['cases']:,} simulations of {result['workload']} ({result['jobs']:,} jobs) under EASY run {most['speedup']:.2f} times as "
        f"fast with {most['workers']} workers as with one.\n\n{table(('workers', 'seconds', 'speed-up', 'efficiency'), rows)}"
    )


def dynamics(result: Numbers) -> str:
    """The cost of instrumentation."""
    rows = [
        (name, f"{w['jobs']:,}", *(milliseconds(w[stage]["median"]) for stage in ("without", "kernel", "analysis")), f"{w['ratio']:.2f}")
        for name, w in result["workloads"].items()
    ]
    head = ("workload", "jobs", "kernel without dynamics, ms", "kernel with dynamics, ms", "analysis, ms", "total relative to without")
    return table(head, rows)


def predictions(result: Numbers) -> str:
    """EASY without and with predictors."""
    labels = list(next(iter(result["workloads"].values()))["jobs_per_second"])
    rows = [(name, f"{w['jobs']:,}", *(millions(w["jobs_per_second"][x]) for x in labels)) for name, w in result["workloads"].items()]
    return table(("workload", "jobs", *labels), rows)


def prediction_replay(result: Numbers) -> str:
    """The schemes of tang13 replayed along a log."""
    rows = [(name, f"{r['jobs']:,}", r["configurations"], f"{r['seconds']:.1f}") for name, r in result["replay"].items()]
    return table(("workload", "jobs", "schemes", "seconds"), rows)


def campaign(result: Numbers) -> str:
    """Share of CPU time in kernels, and resident memory while many cells run."""
    share = result["share"]
    lines = [
        f"A campaign of {share['cells']:,} cells of {share['workload']} spends {100 * share['share']:.0f} % of its CPU time in "
        "kernels; the rest is startup, the plan and files. Resident memory in MB, while small cells run:"
    ]
    for memory in result["memory"]:
        done = memory["done"]
        head = (f"{memory['executor']}, cells done", *(f"{count:,}" for count in done))
        rows = [(who, *(f"{value:,.0f}" for value in values)) for who, values in memory["megabytes"].items()]
        lines.append(table(head, rows))
    return "\n\n".join(lines)


def memory(result: Numbers) -> str:
    """Bytes per job."""
    said = " and ".join(f"{b:.0f} bytes under {policy}" for policy, b in result["bytes_per_job"].items())
    return f"With {result['jobs']:,} jobs, each job takes {said}: workload, run and result together, on top of the loaded program."


def making(result: Numbers) -> str:
    """Seconds to generate workloads and estimates."""
    rows = [(name, f"{s['median']:.3g}") for name, s in result["seconds"].items()]
    return f"For {result['jobs']:,} jobs:\n\n{table(('task', 'seconds'), rows)}"


def reading(result: Numbers) -> str:
    """Seconds and memory to read a log."""
    rows = []
    for name, one in result["formats"].items():
        rows.append((name, f"{one['bytes'] / 1e6:,.0f}", f"{one['seconds']['median']:.1f}", f"{one['peak_bytes'] / 1e9:.2f}"))
    return f"Logs of {result['jobs']:,} jobs:\n\n{table(('format', 'size, MB', 'seconds', 'peak memory, GB'), rows)}"


def start(result: Numbers) -> str:
    """Response times of commands."""
    rows = [(f"`{name}`" if name.startswith("walltime") else name, f"{s['median']:.2f}") for name, s in result["seconds"].items()]
    return table(("command or step", "seconds"), rows)


def processor(result: Numbers) -> str:
    """CPU time of one command."""
    p = result["processor"]
    rows = [(name, f"{seconds:.3f}") for name, seconds in p["seconds"].items()]
    return f"`walltime simulate {p['workload']} --policy easy`:\n\n{table(('part', 'CPU seconds'), rows)}"


def cold(result: Numbers) -> str:
    """CPU time to compile, by entry, in seconds and as a multiple of a trivial function's."""
    trivial = result["cold"]["trivial"]["median"]
    commands = result["cold"]["commands"]
    rows = [(name, f"{seconds['now']:.1f}", f"{seconds['now'] / trivial:.1f}") for name, seconds in commands.items()]
    head = ("first `walltime simulate` with", "CPU s", "relative to a trivial function")
    return f"{table(head, rows)}\n\nA process that imports Numba and compiles one trivial function takes {trivial:.2f} s."


def orders(result: Numbers) -> str:
    """The loop's time by policy, in ms and as a multiple of EASY's."""
    rows = []
    for name, log in result["speed"].items():
        easy = log["seconds"]["easy"]["now"]
        for policy, seconds in log["seconds"].items():
            now = seconds["now"]
            rows.append((name, f"{log['depth']:.0f}", policy, f"{now * 1e3:.1f}", f"{now / easy:.2f}", log["load"]))
    return table(("workload", "waiting jobs", "policy", "time, ms", "time relative to EASY", "load average"), rows)


def learning(result: Numbers) -> str:
    """Decisions per second in learning environments: one, and many side by side."""
    rows = [(name, f"{found['one']:,.0f}", f"{found['many']:,.0f}") for name, found in result["rates"].items()]
    many = f"{result['side_by_side']:,} environments in {result['threads']} threads"
    return table(("observation, decision, initial state", "one environment", many), rows)


def published_environment(result: Numbers) -> str:
    """The published environment and this one in turns, on the same sequences with the same decisions."""
    if not result.get("published"):
        return "*Not compared with the published environment: its program was not available.*"
    rows = []
    for name, found in result["published"].items():
        theirs, own = found["published"]["median"], found["walltime"]["median"]
        rows.append((name, f"{theirs:,.0f}", f"{own:,.0f}", f"{own / theirs:.0f}", "yes" if found["same"] else "**no**"))
    return table(("sequences", "published environment", "this environment", "ratio", "same observations and rewards?"), rows)


def stepping(result: Numbers) -> str:
    """Return the cost of copies and steps of a simulation."""
    parts = ("first copy", "copy", "step", "state", "copy and submit")
    rows = [(name, found["waiting"], *(f"{found[part]:,.0f}" for part in parts)) for name, found in result["calls"].items()]
    return table(("log, policy", "waiting jobs", *(f"{part}, µs" for part in parts)), rows)


def starts(result: Numbers) -> str:
    """Seconds that the simulations for start times take."""
    rows = []
    for machine, found in result["machines"].items():
        rows += [
            (f"{machine} processors".replace("of 1 processors", "of 1 processor"), policy, f"{s['median']:.1f}")
            for policy, s in found["seconds"].items()
        ]
    return table(("machine", "policy", f"seconds for {result['samples']} simulations of {result['waiting']:,} waiting jobs"), rows)


def nodes(result: Numbers) -> str:
    """Seconds by log, policy and kind of machine, as ratios to the same policy on a number of processors."""
    kinds = ("number", "one pool", "several pools", "nodes")
    rows = []
    for name, found in result.items():
        for policy in dict.fromkeys(cell.rpartition(", ")[0] for cell in found.get("ratio", {})):
            cells = [_seconds_and_ratio(found, f"{policy}, {kind}") for kind in kinds]
            rows.append((name, policy, *cells, *_when(found)))
    heads = ("single pool, s", "machine file with one pool, s", "three pools, s", "Slurm's nodes, s")
    return table(("log, nodes x processors", "policy", *heads, "date", "load average before"), rows)


def nodes_shapes(result: Numbers) -> str:
    """Return the seconds of Slurm's scheduling for jobs that request memory and GPUs, relative to the same jobs with processors only."""
    rows = [
        (
            f"{found['nodes']:,}",
            *(f"{seconds['median']:.2f}" for seconds in found["seconds"].values()),
            f"{found['shapes']:.2f}",
            *_when(found),
        )
        for found in result.values()
        if "shapes" in found
    ]
    return table(("nodes", "processors only, s", "forty kinds of requests, s", "ratio", "date", "load average before"), rows)


def _when(found: Numbers) -> tuple[str, str]:
    """The day on which a case was measured, and the load before it."""
    return found["environment"]["date"], f"{found['environment']['load_before']:.1f}"


def _seconds_and_ratio(found: Numbers, cell: str) -> str:
    if cell not in found["seconds"]:
        return ""
    seconds, ratio = found["seconds"][cell]["median"], found["ratio"].get(cell)
    written = f"{seconds:.4f}" if seconds < 0.1 else f"{seconds:.2f}"
    return written if ratio is None or cell.endswith(", number") else f"{written} ({ratio:.1f})"


def compression(result: Numbers) -> str:
    """Return the reservations that compressions move, the changed steps of the plan, and the time."""
    rows = []
    for name, found in result.items():
        easy, own = (found["seconds"][policy]["median"] for policy in ("easy", "conservative"))
        each = found["compressions"]
        cells = (f"{each:,}", f"{found['waiting'] / each:.0f}", f"{found['moves'] / each:.2f}", f"{found['steps'] / found['moves']:.0f}")
        rows.append(
            (name, *cells, f"{1e3 * easy:.1f}", f"{1e3 * own:.0f}", f"{own / easy:.0f}", f"{1e9 * (own - easy) / found['steps']:.1f}")
        )
    head = (
        "log",
        "compressions",
        "waiting jobs",
        "moved reservations",
        "changed plan steps per move",
        "EASY, ms",
        "conservative, ms",
        "conservative / EASY",
        "ns per changed step",
    )
    return table(head, rows)


def compression_work(result: Numbers) -> str:
    """Return the work of the kernel for the moves, counted on the first jobs of each log."""
    rows = []
    for name, found in result.items():
        part = found["part"]
        counts = (
            part["moves"],
            part["tried"],
            part["steps"],
            part["search steps"],
            part["openings looked up"],
            part["chunks of 128 compared"],
        )
        rows.append((f"{name}, {part['jobs']:,} jobs", *(f"{count:,}" for count in counts)))
    head = (
        "log",
        "moved reservations",
        "reservations tried",
        "plan steps changed (minimum)",
        "plan steps searched",
        "searches for a job that fits a gap",
        "blocks of 128 jobs checked",
    )
    return table(head, rows)


def nodes_memory(result: Numbers) -> str:
    """Peak memory of Slurm's scheduling above the process with its log, and the largest run."""
    rows = [
        (name, f"{found['memory']['peak_bytes'] / 1e6:,.0f}", *(f"{found['memory'][f'bytes_per_{one}']:,.0f}" for one in ("job", "node")))
        for name, found in result.items()
        if "memory" in found
    ]
    head = ("log, nodes x processors", "additional memory, MB", "bytes per job", "bytes per node")
    million = result.get("million")
    if not million:
        return table(head, rows)
    rows.append(
        ("10,000 x 1", *(f"{million[one] / by:,.0f}" for one, by in (("peak_bytes", 1e6), ("bytes_per_job", 1), ("bytes_per_node", 1))))
    )
    said = (
        f"The last line has {million['jobs']:,.0f} generated jobs; {million['waiting']:,.0f} wait on average, and the simulation takes "
        f"{million['seconds']:,.0f} s."
    )
    return f"{table(head, rows)}\n\n{said}"


def nodes_compilation(result: Numbers) -> str:
    """Return the compilation times of parts of the engine, as multiples of a trivial function."""
    if "compilation" not in result:
        return "*Compilation was not measured.*"
    found = result["compilation"]
    rows = [(f"`{name}`", f"{seconds:.1f}", f"{seconds / found['trivial']:.1f}") for name, seconds in found["seconds"].items()]
    date, load = _when(found)
    said = f"Measured on {date}, {found['environment']['cpu']}, load before {load}."
    return f"{table(('part of the engine', 'CPU s', 'relative to a trivial function'), rows)}\n\n{said}"


def audits(result: Numbers) -> str:
    """Seconds that audits take."""
    rows = []
    for name, found in result["workloads"].items():
        rows += [(f"{name}, {found['jobs']:,} jobs", policy, spread(s, "{:.2f}".format)) for policy, s in found["seconds"].items()]
    return table(("workload", "policy", "seconds for all rules"), rows)


PARTS: dict[str, tuple[str, Callable[[Numbers], str]]] = {
    "throughput": ("throughput", throughput),
    "loads": ("throughput", loads),
    "limit": ("limit", limit),
    "growth": ("growth", growth),
    "depth": ("depth", depth),
    "overload": ("depth", overload),
    "batch": ("batch", batch),
    "threads": ("threads", threads),
    "dynamics": ("dynamics", dynamics),
    "predictions": ("predictions", predictions),
    "replay": ("predictions", prediction_replay),
    "campaign": ("campaign", campaign),
    "memory": ("memory", memory),
    "making": ("making", making),
    "reading": ("reading", reading),
    "start": ("start", start),
    "processor": ("start", processor),
    "cold": ("against", cold),
    "orders": ("against", orders),
    "learning": ("learning", learning),
    "published": ("learning", published_environment),
    "stepping": ("stepping", stepping),
    "starts": ("starts", starts),
    "nodes": ("nodes", nodes),
    "nodes-memory": ("nodes", nodes_memory),
    "nodes-shapes": ("nodes", nodes_shapes),
    "compression": ("compression", compression),
    "compression-work": ("compression", compression_work),
    "nodes-compilation": ("nodes", nodes_compilation),
    "audits": ("audits", audits),
}


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table; columns of numbers after the first are right-aligned."""
    cells = [[str(cell) for cell in row] for row in rows]
    numbers = [k > 0 and all(re.match(r"\W*(\d|$)", row[k]) for row in cells) for k in range(len(head))]
    lines = [head, ["---:" if number else "---" for number in numbers], *cells]
    return "\n".join(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def span(values: Sequence[float], shown: Callable[[float], str]) -> str:
    """The lowest and the highest value, or one value if they print the same."""
    low, high = shown(min(values)), shown(max(values))
    return low if low == high else f"{low} to {high}"


def spread(seconds: Numbers, shown: Callable[[float], str]) -> str:
    """A median with the lowest and the highest run."""
    return f"{shown(seconds['median'])} ({shown(seconds['low'])} to {shown(seconds['high'])})"


def millions(rate: float) -> str:
    """Jobs per second in millions."""
    return f"{rate / 1e6:.3g}"


def milliseconds(seconds: float) -> str:
    """Seconds in milliseconds."""
    return f"{seconds * 1e3:.2f}"


def microseconds(point: Numbers) -> str:
    """Time per job of a point in microseconds."""
    return f"{point['seconds_per_job']['median'] * 1e6:.3g}"
