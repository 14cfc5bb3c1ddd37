#!/usr/bin/env bash
# Looks at the code and the texts without running them; goes on after a failure, so that one run shows everything.
set -uo pipefail
cd "$(dirname "$0")/.."

status=0
check() {
  echo "lint: $*"
  ".venv/bin/$1" "${@:2}" || status=1
}
own() {
  echo "lint: $*"
  .venv/bin/python "$@" || status=1
}
check ruff check
check ruff format --check
check mypy
check lint-imports
own tools/budgets.py
own tools/prose.py
own docs/generators/tables.py --check
exit $status
