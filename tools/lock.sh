#!/usr/bin/env bash
# Resolves pyproject.toml anew into requirements.lock: every package of every group, with hashes, for all platforms.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
.venv/bin/python -m venv "$folder/uv"
"$folder/uv/bin/python" -m pip --disable-pip-version-check --quiet install uv
echo "pyzmq>=26" >"$folder/overrides" # pybatsim, a client in tests, demands an old one, and runs with this
"$folder/uv/bin/uv" pip compile pyproject.toml --group dev --universal --python-version 3.11 --fork-strategy fewest \
  --generate-hashes --no-emit-index-url --no-header --no-config --quiet --overrides "$folder/overrides" --upgrade --output-file requirements.lock
if grep -q '://' requirements.lock; then
  echo "lock: requirements.lock names a host" >&2
  exit 1
fi
