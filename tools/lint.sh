#!/usr/bin/env bash
# Looks at the code without running it; goes on after a failure, so that one run shows everything.
set -uo pipefail
cd "$(dirname "$0")/.."

status=0
check() {
  echo "lint: $*"
  ".venv/bin/$1" "${@:2}" || status=1
}
check ruff check
check ruff format --check
check mypy
check lint-imports
.venv/bin/python tools/budgets.py || status=1
exit $status
