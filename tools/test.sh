#!/usr/bin/env bash
# Runs the test suite on two workers, with a fresh folder for compiled kernels. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."

WALLTIME_CACHE=$(mktemp -d)
export WALLTIME_CACHE
trap 'rm -rf "$WALLTIME_CACHE"' EXIT

# Compiled once here, so that the workers do not all do it at the same time.
.venv/bin/python -c "from walltime.engine.run import load_kernel; load_kernel()"
.venv/bin/python -m pytest --numprocesses "${WORKERS:-2}" --dist worksteal "$@"
