#!/usr/bin/env bash
# Installs a wheel where it is to stay: packaging/install.sh WHEEL FOLDER [EXTRA,...]
# FOLDER becomes a virtual environment with the versions of requirements.lock, so that every machine computes with the same ones.
# PYTHON=python3.12 chooses another interpreter; other options of pip come from its environment, such as PIP_NO_INDEX and PIP_FIND_LINKS.
set -euo pipefail
[ $# -ge 2 ] || { echo "install: name the wheel and the folder, such as packaging/install.sh dist/walltime-0.1.0-py3-none-any.whl /opt/walltime" >&2; exit 2; }
wheel=$(realpath "$1") folder=$2 extras=${3:+[$3]}
[ -f "$wheel" ] || { echo "install: there is no $wheel; make wheel builds it into dist/" >&2; exit 2; }
lock=$(dirname "$0")/../requirements.lock

"${PYTHON:-python3}" -m venv "$folder"
grep -o '^[a-z0-9._-]*==[^ ]*' "$lock" >"$folder/constraints.txt"
"$folder/bin/python" -m pip --disable-pip-version-check --quiet install --constraint "$folder/constraints.txt" "$wheel$extras"
"$folder/bin/walltime" --version
