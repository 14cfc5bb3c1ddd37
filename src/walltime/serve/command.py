"""`walltime serve`: a simulated machine for an external scheduler."""

from pathlib import Path
from typing import Annotated, Literal

from walltime.cli import options as o
from walltime.cli.help import manual
from walltime.cli.option_groups import LogOptions, RecordedWindow
from walltime.cli.output import Output, progress_bar


@manual(
    "guides/stepping",
    ("Simulate a log under the scheduler that listens on port 28000.", "serve log.swf.gz --out easy"),
    ("Use another port, and wait up to ten minutes for answers.", "serve log.swf.gz --endpoint tcp://localhost:5555 --timeout 600 --json"),
)
def serve(
    trace: Annotated[Path, o.argument("A job log, plain or compressed, or the name of a log that walltime fetch has downloaded.", "LOG")],
    *,
    protocol: Annotated[Literal["batsim"], o.option("Use this protocol to communicate with the scheduler.", group=o.SCHEDULER)] = "batsim",
    endpoint: Annotated[
        str, o.option("Connect to the scheduler at this ZeroMQ endpoint.", group=o.SCHEDULER, metavar="ENDPOINT")
    ] = "tcp://localhost:28000",
    timeout: Annotated[float, o.option("Wait at most N seconds for each answer.", group=o.SCHEDULER, min=0.1, max=86400)] = 60.0,
    out: Annotated[
        Path | None,
        o.option(
            "Write the schedule in Batsim's formats to PREFIX_jobs.csv and PREFIX_schedule.csv, and the jobs to PREFIX_workload.json.",
            metavar="PREFIX",
            callback=o.written,
        ),
    ] = None,
    overrun: o.OverrunOption = "kill",
    stretch: RecordedWindow,
    reading: LogOptions,
    output: Output,
) -> None:
    """Simulate a log under an external scheduler, such as one written with pybatsim, connected through Batsim's protocol.

    The scheduler may start, reject and kill jobs, and request to be called at a later time. Network, storage and energy are not simulated.
    """
    from walltime.serve import batsim
    from walltime.tables import Facts

    paths = {} if out is None else {name: out.with_name(f"{out.name}_{name}") for name in ("jobs.csv", "schedule.csv", "workload.json")}
    for path in paths.values():
        o.check_output(path, (path.suffix,))
    workload = stretch.alone(reading.load(trace)[0])
    server = batsim.BatsimServer(workload, overrun)
    exchange, close = batsim.zmq_exchange(endpoint, timeout)
    try:
        with progress_bar(len(workload), "jobs", "ended") as progress:
            schedule = server.run(exchange, progress)
    finally:
        close()
    rows = server.table(schedule)
    totals = server.totals(rows)
    if paths:
        batsim.write_rows(paths["jobs.csv"], rows)
        batsim.write_rows(paths["schedule.csv"], [totals])
        batsim.write_workload(paths["workload.json"], workload)
    record = {"log": str(trace), "sha256": workload.origin.sha256, "protocol": protocol, "messages": server.messages, **totals}
    facts = [
        (
            "Jobs",
            f"{totals['nb_jobs_finished']:,} ran ({totals['nb_jobs_killed']:,} were killed), "
            f"and {totals['nb_jobs_rejected']:,} were rejected",
        ),
        ("Mean wait", f"{totals['mean_waiting_time']:,.0f} s"),
        ("Messages", f"{server.messages:,}"),
    ]
    output.show(
        record, [Facts(f"Schedule of the scheduler at {endpoint}", facts)], **{name.replace(".", "_"): path for name, path in paths.items()}
    )
