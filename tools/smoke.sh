#!/usr/bin/env bash
# Tries a wheel out: tools/smoke.sh WHEEL [SDIST]. Installs it, with the versions of requirements.lock, into an environment of its own;
# then imports, commands and worked examples must do there, in a folder that holds nothing of the source but these tests.
# The source distribution must give the same wheel with this Python, but for the names of the tool that builds it. PYTHON=python3.13 chooses another interpreter.
set -euo pipefail
wheel=$(realpath "$1")
sdist=${2:+$(realpath "$2")}
cd "$(dirname "$0")/.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export WALLTIME_CACHE=$folder/cache
unset PYTHONPATH

"${PYTHON:-python3}" -m venv "$folder/venv"
python=$folder/venv/bin/python
walltime=$folder/venv/bin/walltime
grep -o '^[a-z0-9._-]*==[^ ]*' requirements.lock >"$folder/constraints.txt"
"$python" -m pip --disable-pip-version-check --quiet install --no-compile --constraint "$folder/constraints.txt" "$wheel" pytest hypothesis

mkdir -p "$folder/elsewhere/tests/golden"
cp tests/profiles.py tests/strategies.py "$folder/elsewhere/tests"
cp tests/golden/worked.py tests/golden/test_small_examples.py "$folder/elsewhere/tests/golden"
cd "$folder/elsewhere"

say() { echo "smoke: $*"; }
say "$("$python" --version), $("$walltime" --version)"
"$python" -c "
import sys, walltime
from pathlib import Path
assert Path(walltime.__file__).is_relative_to(sys.prefix), walltime.__file__
assert (Path(walltime.__file__).parent / 'py.typed').is_file(), 'the wheel has no py.typed'
"
"$walltime" --help >/dev/null
"$walltime" paper list >/dev/null
"$walltime" cite walltime >/dev/null
"$walltime" schema slurm score >/dev/null
[ -f "$folder/venv/share/man/man1/walltime-compare.1" ] || { echo "smoke: the wheel has no manual pages" >&2; exit 1; }
say "imports, and has its data files"

if [ -n "$sdist" ]; then
  "$python" -m pip --disable-pip-version-check --quiet wheel --no-deps --wheel-dir "$folder/built" "$sdist"
  "$python" -c "
import sys, zipfile
one, other = ({name: file.read(name) for name in file.namelist()} for file in map(zipfile.ZipFile, sys.argv[1:]))
different = sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name) and not name.endswith(('/WHEEL', '/RECORD')))
sys.exit('the source distribution gives another wheel: ' + ', '.join(different) if different else 0)
" "$wheel" "$folder"/built/*.whl
  say "comes of the source distribution as it is"
fi

"$walltime" generate lublin99 --jobs 500 --procs 64 --load 0.7 --seed 1 --out log.swf.gz
"$walltime" simulate log.swf.gz --policy easy --out schedule.csv
"$walltime" audit log.swf.gz schedule.csv --policy easy
say "simulates"

"$python" -m pytest --quiet -p no:cacheprovider --import-mode=importlib tests/golden
say "gives the schedules of the worked examples"
