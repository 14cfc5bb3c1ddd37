"""The same jobs as Slurm's accounting has them, in each form that a site may have them in."""

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path

import polars as pl

BEGIN = 1_772_445_600
"""2026-03-02 10:00 UTC."""
STATES = ("COMPLETED", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 1001", "OUT_OF_MEMORY", "NODE_FAIL", "COMPLETED", "DEADLINE")
KINDS = ("a100", "h100_1g.10gb", "")
NUMBERS = ("ElapsedRaw", "TimelimitRaw", "ReqCPUS", "AllocCPUS", "NNodes", "Priority")


def day_clock(seconds: int) -> str:
    """A time as in Timelimit."""
    days, rest = divmod(seconds, 86_400)
    return f"{days}-" * (days > 0) + f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"


def iso(seconds: int, between: str = "T", zone: str = "") -> str:
    """A time of day in UTC."""
    import datetime

    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime(f"%Y-%m-%d{between}%H:%M:%S") + zone


def gpus_of(job: int) -> int:
    return (0, 2, 4)[job % 3]


def records(jobs: int = 50) -> list[dict[str, str]]:
    """The jobs by sacct's titles; some were never started, wait, run, are parts of resized jobs or of arrays, or used GPUs."""
    rows = []
    for k in range(1, jobs + 1):
        state = STATES[k % len(STATES)]
        submit = BEGIN + 60 * k
        never = state in ("DEADLINE", "CANCELLED by 1001") and k % 2 == 0
        start = submit + 7 * k
        run = 0 if never else 100 + 10 * k
        if k == 48:
            state = "PENDING"
        elif k == 49:
            state = "RUNNING"
        elif k == 50:
            state = "RESIZING"
        waits = state == "PENDING" or never
        kind = KINDS[k % 3]
        procs, nodes, gpus = 2 * (k % 4 + 1), k % 2 + 1, gpus_of(k)
        gres = f",gres/gpu:{kind}={gpus}" if gpus and kind else f",gres/gpu={gpus}" if gpus else ""
        tres = f"cpu={procs},mem={4 * procs}G,node={nodes}{gres}"
        rows.append(
            {
                "JobIDRaw": str(k),
                "JobID": f"10_{k}" if 10 <= k < 14 else str(k),
                "User": f"user{k % 5}",
                "Account": ("bio", "chem, inc")[k % 2],
                "Partition": ("main", "long")[k % 2],
                "QOS": "normal",
                "State": state,
                "ExitCode": "1:0" if state == "FAILED" else "0:0",
                "Submit": str(submit),
                "Eligible": str(submit),
                "Start": "" if waits else str(start),
                "End": "" if state in ("PENDING", "RUNNING") else str(start + run),
                "ElapsedRaw": str(0 if waits else run),
                "TimelimitRaw": "UNLIMITED" if k % 7 == 0 else str(10 * k),
                "ReqCPUS": str(procs),
                "AllocCPUS": "0" if waits else str(procs),
                "NNodes": str(nodes),
                "Priority": str(1000 + k),
                "ReqTRES": tres,
                "AllocTRES": "" if waits else tres,
                "NodeList": "" if waits else f"n[{k}-{k + nodes - 1}]",
                "Constraints": ("", "a|b", "[x*2&y]")[k % 3],
                "JobName": f'my "{k}" run',
            }
        )
    return rows


def clock(row: dict[str, str], between: str = "T", zone: str = "") -> dict[str, str]:
    """The record with times of day, and Timelimit and Elapsed in hours, as sacct prints them without options."""
    names = ("Submit", "Eligible", "Start", "End")
    times = {name: iso(int(row[name]), between, zone) if row[name] else "Unknown" for name in names}
    limit = row["TimelimitRaw"]
    spent = {"Elapsed": day_clock(int(row["ElapsedRaw"])), "Timelimit": limit if limit == "UNLIMITED" else day_clock(60 * int(limit))}
    return {name: value for name, value in (row | times | spent).items() if not name.endswith(("dRaw", "tRaw"))} | {
        "JobIDRaw": row["JobIDRaw"]
    }


def spreadsheet(row: dict[str, str]) -> dict[str, str]:
    """The record as a spreadsheet saves it: with its own format of times."""
    import datetime

    times = {}
    for name in ("Submit", "Eligible", "Start", "End"):
        one = datetime.datetime.fromtimestamp(int(row[name] or 0), datetime.UTC)
        times[name] = f"{one:%d.%m.%Y %H:%M:%S}" if row[name] else ""
    return clock(row) | times


def parsable(delimiter: str, ends: bool = False, **how: str) -> Callable[[Path, list], None]:
    def write(path: Path, rows: list) -> None:
        rows = [clock(row, **how) for row in rows] if how else rows
        path.write_text("".join(delimiter.join(line) + delimiter * ends + "\n" for line in (rows[0], *(row.values() for row in rows))))

    return write


def as_csv(delimiter: str = ",", quoting: int = csv.QUOTE_MINIMAL, index: bool = False, **how: str) -> Callable[[Path, list], None]:
    def write(path: Path, rows: list) -> None:
        rows = [clock(row, **how) for row in rows] if how else rows
        out = io.StringIO()
        writer = csv.writer(out, delimiter=delimiter, quoting=quoting)
        writer.writerow([""] * index + list(rows[0]))
        for place, row in enumerate(rows):
            writer.writerow([place] * index + list(row.values()))
        path.write_text(out.getvalue())

    return write


def frame(rows: list) -> pl.DataFrame:
    """With numbers where all values are, and nulls for unknown values."""
    table = pl.DataFrame(rows)
    return table.with_columns(
        pl.col(name).cast(pl.Int64, strict=False) for name in (*NUMBERS, "Submit", "Eligible", "Start", "End") if name != "TimelimitRaw"
    )


def number(text: str) -> dict:
    """A number as in the JSON of Slurm 23.02 and later."""
    return {"set": text not in ("", "UNLIMITED"), "infinite": text == "UNLIMITED", "number": int(text) if text.isdecimal() else 0}


def plainly(value: object) -> object:
    """The same value with plain numbers, as in the JSON of Slurm 22.05."""
    if isinstance(value, dict) and value.keys() == {"set", "infinite", "number"}:
        return None if value["infinite"] else value["number"]
    if isinstance(value, dict):
        return {name: plainly(one) for name, one in value.items()}
    return [plainly(one) for one in value] if isinstance(value, list) else value


def of_parser(jobs: list, version: int) -> list:
    """The jobs as data_parser v0.0.VERSION writes them: states were texts before 0.0.40, signals had other keys before 0.0.41."""
    for job in jobs:
        if version < 41 and isinstance(job["exit_code"], dict):
            job["exit_code"] = {"status": "SUCCESS", "return_code": job["exit_code"]["return_code"], "signal": {"signal_id": 0, "name": ""}}
        if version < 40 and "state" in job:
            job["state"]["current"] = job["state"]["current"][0]
        elif version < 40:
            job["job_state"] = job["job_state"][0]
    return jobs


def objects(rows: list) -> list[dict]:
    """The jobs as in `sacct --json` of Slurm 23.11 and later."""

    def resources(text: str) -> list[dict]:
        entries = []
        for one in filter(None, text.split(",")):
            name, count = one.split("=")
            kind, _, of = name.partition("/")
            amount = int(count[:-1]) * 1024 if kind == "mem" else int(count)
            entries.append({"type": kind, "name": of, "id": 1, "count": amount})
        return entries

    return [
        {
            "job_id": int(row["JobIDRaw"]),
            "array": {"job_id": 10 if "_" in row["JobID"] else 0, "task_id": number(row["JobID"].partition("_")[2])},
            "het": {"job_id": 0},
            "user": row["User"],
            "account": row["Account"],
            "partition": row["Partition"],
            "qos": row["QOS"],
            "name": row["JobName"],
            "nodes": row["NodeList"],
            "constraints": row["Constraints"],
            "state": {"current": [row["State"].split()[0]], "reason": "None"},
            "exit_code": {"return_code": number(row["ExitCode"].split(":")[0]), "signal": {"id": number("0")}},
            "time": {
                "submission": int(row["Submit"]),
                "eligible": int(row["Eligible"]),
                "start": int(row["Start"] or 0),
                "end": int(row["End"] or 0),
                "elapsed": int(row["ElapsedRaw"]),
                "limit": number(row["TimelimitRaw"]),
            },
            "required": {"CPUs": int(row["ReqCPUS"])},
            "allocation_nodes": int(row["NNodes"]),
            "priority": number(row["Priority"]),
            "tres": {"allocated": resources(row["AllocTRES"]), "requested": resources(row["ReqTRES"])},
            "steps": [],
        }
        for row in rows
    ]


def controlled(rows: list) -> list[dict]:
    """The jobs as slurmrestd's controller has them."""
    return [
        {
            "job_id": int(row["JobIDRaw"]),
            "array_job_id": number("10" if "_" in row["JobID"] else "0"),
            "array_task_id": number(row["JobID"].partition("_")[2]),
            "het_job_id": number("0"),
            "user_name": row["User"],
            "account": row["Account"],
            "partition": row["Partition"],
            "qos": row["QOS"],
            "name": row["JobName"],
            "nodes": row["NodeList"],
            "features": row["Constraints"],
            "job_state": [row["State"].split()[0]],
            "state_reason": "None",
            "exit_code": {"return_code": number(row["ExitCode"].split(":")[0]), "signal": {"id": number("0")}},
            "submit_time": number(row["Submit"]),
            "eligible_time": number(row["Eligible"]),
            "start_time": number(row["Start"] or row["End"]),
            "end_time": number(row["End"]),
            "time_limit": number(row["TimelimitRaw"]),
            "cpus": number(row["ReqCPUS"]),
            "node_count": number(row["NNodes"]),
            "priority": number(row["Priority"]),
            "tres_req_str": row["ReqTRES"],
            "tres_alloc_str": row["AllocTRES"],
        }
        for row in rows
    ]


def in_parquet(change: pl.Expr, spent: bool = False) -> Callable[[Path, list], None]:
    """Parquet with times, in texts as `clock` gives them, changed by an expression; `spent`: with durations as such."""

    def write(path: Path, rows: list) -> None:
        table = pl.DataFrame([clock(row) | ({"Elapsed": int(row["ElapsedRaw"])} if spent else {}) for row in rows])
        table = table.with_columns(pl.duration(seconds="Elapsed").alias("Elapsed")) if spent else table
        table.with_columns(change).write_parquet(path)

    return write


TIMES = pl.col("Submit", "Eligible", "Start", "End")
DATES = TIMES.str.to_datetime("%Y-%m-%dT%H:%M:%S", strict=False)


def changed(form: Callable[[Path, list], None], change: Callable[[bytes], bytes]) -> Callable[[Path, list], None]:
    """A form whose bytes are changed, as other programs and systems do."""

    def write(path: Path, rows: list) -> None:
        form(path, rows)
        path.write_bytes(change(path.read_bytes()))

    return write


USED = {"MaxRSS": "8192K", "AveRSS": "4096K"}


def with_steps(rows: list) -> list[dict[str, str]]:
    """The records with those of batch steps, which used 8 MB, after the jobs that ran."""
    found = []
    for row in rows:
        names = [name for name in ("JobID", "JobIDRaw") if name in row]
        found += [row | dict.fromkeys(USED, ""), *([row | USED | {name: f"{row[name]}.batch" for name in names}] if row["Start"] else [])]
    return found


def objects_with_steps(rows: list) -> list[dict]:
    """The jobs as in `sacct --json`, with their batch steps."""
    used = {"requested": {"max": [{"type": "mem", "name": "", "id": 2, "count": 2**23}]}}
    for job in (jobs := objects(rows)):
        times = {"start": {"set": True, "infinite": False, "number": job["time"]["start"]}, "elapsed": job["time"]["elapsed"]}
        job["steps"] = [{"step": {"id": f"{job['job_id']}.batch"}, "time": times, "tres": used}]
    return jobs


def fixed(path: Path, rows: list) -> None:
    """`sacct` without -P, with columns that are wide enough for all values."""
    rows = [clock(row) for row in rows]
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in rows[0]}
    lines = [dict(zip(widths, widths, strict=True)), {name: "-" * width for name, width in widths.items()}, *rows]
    path.write_text("".join(" ".join(line[name].rjust(width) for name, width in widths.items()) + "\n" for line in lines))


def shown(path: Path, rows: list) -> None:
    """`scontrol show job`; before 23.02, `TRES` was in place of `AllocTRES`."""
    keys = {"JobName": "JobName", "Account": "Account", "QOS": "QOS", "JobState": "State", "ExitCode": "ExitCode", "RunTime": "Elapsed"}
    keys |= {f"{name}Time": name for name in ("Submit", "Eligible", "Start", "End")} | {"TimeLimit": "Timelimit", "NumNodes": "NNodes"}
    keys |= {"NumCPUs": "ReqCPUS", "ReqTRES": "ReqTRES", "AllocTRES": "AllocTRES", "NodeList": "NodeList", "Features": "Constraints"}
    lines = []
    for row in map(clock, rows):
        array = f"ArrayJobId=10 ArrayTaskId={row['JobID'].partition('_')[2]} " if "_" in row["JobID"] else ""
        known = row | {"State": row["State"].split()[0], "Constraints": row["Constraints"] or "(null)"}
        pairs = " ".join(f"{key}={known[name]}" for key, name in (keys | {"Priority": "Priority", "Partition": "Partition"}).items())
        lines.append(f"JobId={row['JobIDRaw']} {array}UserId={row['User']}(1001) {pairs}\n")
    path.write_text("".join(lines))


META = {"plugin": {"data_parser": "data_parser/v0.0.44"}, "command": [], "slurm": {"release": "25.11.0"}}
FORMS: dict[str, Callable[[Path, list], None]] = {
    "sacct -P": parsable("|", between="T"),
    "sacct -p": parsable("|", ends=True, between="T"),
    "sacct -P with seconds since 1970": parsable("\x1f"),
    "sacct -P with offsets": parsable("\x1f", zone="+0000", between="T"),
    "sacct -P with Z and a blank": parsable("\x1f", zone="Z", between=" "),
    "sacct -P with fractions": parsable("\x1f", zone=".250", between="T"),
    "sacct -P with odd delimiters": parsable("^|^", between="T"),
    "sacct, fixed width": fixed,
    "scontrol show job": shown,
    "CSV": as_csv(between="T"),
    "CSV with blanks in times": as_csv(between=" "),
    "CSV with all fields in quotes": as_csv(quoting=csv.QUOTE_ALL, between="T"),
    "CSV with numbered rows": as_csv(index=True, between=" "),
    "CSV with semicolons": as_csv(";", between=" "),
    "CSV with bars": as_csv("|", quoting=csv.QUOTE_ALL, between=" "),
    "TSV": as_csv("\t", between="T"),
    "Parquet": lambda path, rows: frame(rows).write_parquet(path),
    "Parquet of texts": lambda path, rows: pl.DataFrame([clock(row) for row in rows]).write_parquet(path),
    "Parquet of dates": in_parquet(DATES),
    "Parquet of dates with a zone, and durations": in_parquet(DATES.dt.replace_time_zone("UTC"), spent=True),
    "Parquet with ms since 1970": lambda path, rows: frame(rows).with_columns(TIMES * 1000).write_parquet(path),
    "CSV with CRLF and a BOM": changed(as_csv(between="T"), lambda text: b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n")),
    "CSV in UTF-16": changed(as_csv(between="T"), lambda text: text.decode().encode("utf-16")),
    "CSV with the columns in another order": lambda path, rows: as_csv(between=" ")(path, [dict(reversed(row.items())) for row in rows]),
    "CSV of a spreadsheet": lambda path, rows: as_csv(";")(path, [spreadsheet(row) for row in rows]),
    "CSV, packed": changed(as_csv(between="T"), gzip.compress),
    "JSON of texts": lambda path, rows: path.write_text("\n".join(json.dumps(clock(row)) for row in rows)),
    "JSON of columns": lambda path, rows: path.write_text(json.dumps({name: [row[name] for row in rows] for name in rows[0]})),
    "JSON lines": lambda path, rows: frame(rows).write_ndjson(path),
    "JSON array": lambda path, rows: frame(rows).write_json(path),
    "sacct --json": lambda path, rows: path.write_text(json.dumps({"meta": META, "jobs": objects(rows), "errors": []})),
    "sacct --json, meta last": lambda path, rows: path.write_text(json.dumps({"jobs": objects(rows), "meta": META})),
    "sacct --json after a warning": lambda path, rows: path.write_text("sacct: warning: odd\n" + json.dumps({"jobs": objects(rows)})),
    "sacct --json of Slurm 22.05": lambda path, rows: path.write_text(json.dumps({"jobs": plainly(of_parser(objects(rows), 38))})),
    "jq .jobs": lambda path, rows: path.write_text(json.dumps(objects(rows), indent=2)),
    "jq .jobs[]": lambda path, rows: path.write_text("\n".join(json.dumps(one, indent=2) for one in objects(rows))),
    "jq -c .jobs[]": lambda path, rows: path.write_text("\n".join(map(json.dumps, objects(rows)))),
    "slurmrestd": lambda path, rows: path.write_text(json.dumps({"jobs": controlled(rows), "last_update": 1, "meta": META})),
    **{
        f"{name} 0.0.{version}": lambda path, rows, jobs=jobs, version=version: path.write_text(
            json.dumps({"jobs": of_parser(jobs(rows), version), "meta": META})
        )
        for version in range(39, 45)
        for name, jobs in (("slurmrestd's accounting", objects), ("slurmrestd's controller", controlled))
    },
}
"""Writes the jobs to a file, by the form."""
