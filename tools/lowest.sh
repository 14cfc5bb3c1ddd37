#!/usr/bin/env bash
# Tests the lowest versions that pyproject.toml allows of what the package needs, in a virtual environment of their own. The highest
# ones are those in requirements.lock, which all other tests run with.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export WALLTIME_CACHE=$folder/cache

.venv/bin/python tools/lowest.py >"$folder/constraints.txt"
.venv/bin/python -m venv "$folder/venv"
pip=("$folder/venv/bin/python" -m pip --disable-pip-version-check --quiet)
"${pip[@]}" install --constraint "$folder/constraints.txt" hatchling editables pytest hypothesis jsonschema pytest-xdist
"${pip[@]}" install --constraint "$folder/constraints.txt" --no-build-isolation --editable .
"$folder/venv/bin/python" -m pip --disable-pip-version-check freeze --exclude-editable

# Imports, the command line, tables, figures, and a compiled run of each policy. Old packages warn of what newer ones will drop.
tests=(tests/unit/test_imports.py tests/unit/schedule/test_files.py tests/unit/report/test_figures.py tests/unit/metrics/test_months.py
  tests/unit/compiled/test_jit.py tests/unit/logs/test_fetch.py tests/unit/cli/test_cli.py tests/golden/test_small_examples.py)
"$folder/venv/bin/python" -m pytest --quiet -p no:cacheprovider --override-ini filterwarnings= \
  -k "not kth and not interrupt and not audits" "${tests[@]}"
