#!/usr/bin/env bash
# Runs the test suite on two workers, with a fresh folder for compiled kernels. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."

WALLTIME_CACHE=$(mktemp -d)
export WALLTIME_CACHE
trap 'rm -rf "$WALLTIME_CACHE"' EXIT

# Compiled once here, so that the workers do not all do it at the same time; a test looks at how much that was.
export WALLTIME_COUNTS="$WALLTIME_CACHE/counts.json"
.venv/bin/python tools/warm.py "$WALLTIME_COUNTS"
.venv/bin/python -m pytest --numprocesses "${WORKERS:-2}" --dist worksteal "$@"
