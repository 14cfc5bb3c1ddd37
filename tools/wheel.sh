#!/usr/bin/env bash
# Builds the source distribution and the wheel of the last commit into dist/, the wheel from the source distribution, and tries the
# wheel out where no source is.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/checkout" "$folder/unpacked" "$folder/dist"

[ -z "$(git status --porcelain)" ] || echo "wheel: changes that are not committed are left out"
git archive HEAD | tar -x -C "$folder/checkout"
(cd "$folder/checkout" && "$OLDPWD/.venv/bin/hatchling" build --target sdist --directory "$folder/dist")
tar -x -z -C "$folder/unpacked" --strip-components 1 -f "$folder"/dist/*.tar.gz
(cd "$folder/unpacked" && "$OLDPWD/.venv/bin/hatchling" build --target wheel --directory "$folder/dist")

rm -rf dist
cp -r "$folder/dist" dist
PYTHON=${PYTHON:-.venv/bin/python} bash tools/smoke.sh dist/*.whl dist/*.tar.gz
