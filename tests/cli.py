"""The command line inside a test: a small log, a call, and the one line that whatever goes wrong gets."""

from walltime.cli.main import run

HEADER = "; Version: 2.2\n; MaxProcs: 4\n; UnixStartTime: 843480031\n; TimeZoneString: Europe/Stockholm\n"


def record(job: int, submit: object, runtime: object, procs: object, requested: object, status: int = 1, user: int = 1) -> str:
    """One line of a log in Standard Workload Format."""
    return f"{job} {submit} -1 {runtime} {procs} -1 -1 {procs} {requested} -1 {status} {user} 1 -1 -1 -1 -1 -1\n"


def call(capsys, *arguments: object) -> tuple[int, str, str]:
    """Exit status, standard output, and standard error without what is said to those who wait."""
    status = run([str(a) for a in arguments])
    captured = capsys.readouterr()
    waits = ("compiling the engine", "runs in the plain Python engine, 200 to 700 times slower")
    errors = "".join(line for line in captured.err.splitlines(keepends=True) if not any(text in line for text in waits))
    return status, captured.out, errors


def one_line(status: int, out: str, err: str) -> str:
    """The error, after a look that it is one line and nothing else."""
    assert status in (1, 2)
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("walltime: ")
    assert "Traceback" not in err
    return err
