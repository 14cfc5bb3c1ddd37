#!/usr/bin/env bash
# Runs tests on four workers, as some only wait, and the quick ones on two, as none does and each worker takes seconds to find them all:
# tools/test.sh PROFILE, where PROFILE is quick, default, nightly or slurm; more arguments go to pytest.
# tests/profiles.py says how many examples each of them takes, the markers in pyproject.toml which tests it leaves out.
set -euo pipefail
cd "$(dirname "$0")/.."

export WALLTIME_PROFILE=$1
shift
unset PYTHONDONTWRITEBYTECODE # else every worker, and every command that a test starts, compiles all modules again
case $WALLTIME_PROFILE in quick) own=2 ;; *) own=4 ;; esac
workers=(--numprocesses "${WORKERS:-$own}" --dist worksteal)

if [ "$WALLTIME_PROFILE" = quick ]; then
  .venv/bin/python tools/warm.py # in the folder of this user's kernels
  exec .venv/bin/python -m pytest "${workers[@]}" -m "not slow and not nightly" -o "testpaths=tests/unit tests/golden tests/oracle" "$@"
fi

if [ "$WALLTIME_PROFILE" = slurm ]; then
  export WALLTIME_PROFILE=default
  .venv/bin/python tools/warm.py
  chosen=(-m "slurm and not nightly" -rs)
  alone=(tests/slurm/test_backfill.py tests/slurm/test_replay.py)
  # run ARGUMENTS: a real Slurm works in real time, so what fails is tried once more, alone, and both runs are seen.
  run() {
    .venv/bin/python -m pytest "$@" && return
    echo "test: what failed is tried once more, alone"
    .venv/bin/python -m pytest "$@" --last-failed --last-failed-no-failures none --numprocesses 0
  }
  # Schedules are compared with simulated ones alone: other work delays a real Slurm.
  status=0
  run --numprocesses 0 "${chosen[@]}" "${alone[@]}" "$@" || status=$?
  # Everything else mostly waits: several clusters at once, more than there are cores.
  run --numprocesses 5 --dist loadscope --no-loadscope-reorder "${chosen[@]}" tests/slurm "${alone[@]/#/--ignore=}" "$@" || status=$?
  exit "$status"
fi

# Compiled here, so that the workers do not all do it at the same time: in the folder of this user's kernels, which are never stale.
# At night, everything is compiled again with indices checked, so that no function reads or writes outside its arrays; a test counts them.
chosen=(-m "not nightly and not slurm")
if [ "$WALLTIME_PROFILE" = nightly ]; then
  WALLTIME_CACHE=$(mktemp -d)
  export NUMBA_BOUNDSCHECK=1
  export WALLTIME_CACHE WALLTIME_COUNTS="$WALLTIME_CACHE/counts.json"
  trap 'rm -rf "$WALLTIME_CACHE"' EXIT
  chosen=(-m "not slurm" --durations=25 --durations-min=30 -p tests.resume) # the slowest tests are candidates to shorten
  # A run that was interrupted continues: tests that passed at this commit, without later changes, are not repeated.
  if [ -z "$(git status --porcelain)" ]; then
    WALLTIME_PASSING=.nightly/$(git rev-parse HEAD)
  else
    WALLTIME_PASSING=$WALLTIME_CACHE/passed
  fi
  WALLTIME_PASSED="$WALLTIME_CACHE/passed-before"
  export WALLTIME_PASSING WALLTIME_PASSED
  mkdir -p .nightly
  touch "$WALLTIME_PASSING"
  cp "$WALLTIME_PASSING" "$WALLTIME_PASSED"
  echo "test: $(wc -l <"$WALLTIME_PASSED") tests passed before at this commit"
fi
status=0
.venv/bin/python tools/warm.py ${WALLTIME_COUNTS:+"$WALLTIME_COUNTS"}
.venv/bin/python -m pytest "${workers[@]}" "${chosen[@]}" "$@" || status=$?
echo "test: $WALLTIME_PROFILE took $((SECONDS / 60)) min $((SECONDS % 60)) s, compilation included"
exit $status
