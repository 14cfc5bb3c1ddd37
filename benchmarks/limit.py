"""The kernel against a hand-written EASY in C++ (easy.cpp), compiled for this machine."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType

import numpy as np

from benchmarks.common import Options, Result, kernel_run, lublin, paper_logs, show, take_turns
from walltime.estimates import effective_times
from walltime.policy import Easy
from walltime.workload import Workload

SOURCE = Path(__file__).with_name("easy.cpp")
FLAGS = ("-std=c++17", "-O3", "-march=native")


def compiler() -> str | None:
    """The C++ compiler on the PATH; None without one."""
    return shutil.which("g++") or shutil.which("c++")


def compile_easy(folder: Path) -> Path:
    """Compile easy.cpp into the folder; returns the program."""
    found = compiler()
    if found is None:
        raise FileNotFoundError("neither g++ nor c++ is on the PATH")
    program = folder / "easy"
    subprocess.run([found, *FLAGS, "-o", program, SOURCE], check=True)
    return program


class CompiledEasy:
    """The C++ program with a workload loaded, as a child process that simulates once per request."""

    def __init__(self, program: Path, workload: Workload):
        self.jobs = len(workload)
        self._folder = tempfile.TemporaryDirectory()
        jobs, self._starts = Path(self._folder.name) / "jobs", Path(self._folder.name) / "starts"
        runtime, planned = effective_times(workload, "kill")
        np.stack([workload.submit, np.minimum(runtime, planned), planned, workload.procs]).astype(np.int64).tofile(jobs)
        call = [str(program), str(jobs), str(workload.machine_procs), str(self._starts)]
        self._process = subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> CompiledEasy:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self._process.communicate()
        self._folder.cleanup()

    def run(self) -> float:
        """Simulate once; returns the seconds it took."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("run\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def starts(self) -> np.ndarray:
        """End the program; returns the starts of its last run, int64 s."""
        self._process.communicate()
        if self._process.returncode:
            raise RuntimeError(f"the C++ program failed with status {self._process.returncode}")
        return np.fromfile(self._starts, np.int64)


def limit(options: Options) -> Result:
    """Seconds of the kernel and of the C++ program, run in turn, and the ratio of their medians."""
    if compiler() is None:
        reason = "there is no C++ compiler here (g++ or c++)"
        print(f"skipped: {reason}")
        return {"skipped": reason}
    workloads = paper_logs(options) | {"Lublin'99 at load 0.8": lublin(options.size(100_000, 3_000), 0.8)}
    result: Result = {"compiler": compiler_version(), "flags": " ".join(FLAGS), "workloads": {}}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        program = compile_easy(Path(folder))
        for name, workload in workloads.items():
            compared = compare(program, workload, options)
            result["workloads"][name] = compared
            kernel, cpp = compared["kernel"]["median"], compared["cpp"]["median"]
            rows.append((name, f"{len(workload):,}", f"{kernel * 1e3:.2f}", f"{cpp * 1e3:.2f}", f"{compared['ratio']:.2f}"))
    show("EASY: the kernel and C++, ms", ("workload", "jobs", "kernel", "C++", "kernel / C++"), rows)
    return result


def compare(program: Path, workload: Workload, options: Options) -> Result:
    """Both on one workload; raises ValueError if their schedules differ."""
    with CompiledEasy(program, workload) as cpp:
        cpp.run()  # the first run of each warms the caches and is not counted
        schedule = kernel_run(workload, Easy()).start
        taken = take_turns({"kernel": lambda: kernel_run(workload, Easy()).seconds, "cpp": cpp.run}, options)
        different = int(np.count_nonzero(cpp.starts() != schedule))
    if different:
        raise ValueError(f"{different} of {len(workload)} jobs of {workload.origin.name} start at another time in C++")
    return taken | {"jobs": len(workload), "ratio": taken["kernel"]["median"] / taken["cpp"]["median"]}


def compiler_version() -> str:
    """The compiler's name and version."""
    found = compiler()
    assert found is not None
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    return said.splitlines()[0].replace(found, "").strip()
