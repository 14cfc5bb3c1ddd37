#!/usr/bin/env bash
# Makes .venv: the versions pinned in requirements.lock, then this project itself, editable. Does nothing where that is done.
# PYTHON=python3.12 chooses another interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
stamp=.venv/.ready

fail() {
  echo "setup: $1" >&2
  exit 1
}

# What the environment depends on; the folder too, because an environment cannot be moved.
wanted() {
  pwd
  cat requirements.lock pyproject.toml tools/setup.sh
}

works() { .venv/bin/python -c "import importlib.metadata as m; m.version('walltime')" 2>/dev/null; }

install_venv() {
  local as_root=()
  local advice="this Python cannot make virtual environments; install Debian's package python3-venv (as root: apt-get install python3-venv)"
  command -v apt-get >/dev/null || fail "$advice"
  if [ "$(id -u)" -ne 0 ]; then
    sudo -n true 2>/dev/null || fail "$advice"
    as_root=(sudo -n)
  fi
  echo "setup: installing Debian's package python3-venv"
  local log
  log=$("${as_root[@]}" apt-get -qq update 2>&1 && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y python3-venv 2>&1) || {
    echo "$log" >&2
    fail "$advice"
  }
  "$python" -c "import ensurepip" 2>/dev/null || fail "$advice"
}

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(wanted | sha256sum)" ] && works; then
  exit 0
fi

command -v "$python" >/dev/null || fail "there is no $python; install Python 3.11 or newer, or name another one with PYTHON="
"$python" -c "import sys; sys.exit(sys.version_info < (3, 11))" ||
  fail "Python 3.11 or newer is needed, $python is $("$python" -c 'import platform; print(platform.python_version())'); name another one with PYTHON="

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
  "$python" -c "import ensurepip, venv" 2>/dev/null || install_venv
  rm -rf .venv
  "$python" -m venv .venv || fail "the virtual environment .venv cannot be made"
fi
rm -f "$stamp"
echo "setup: installing what requirements.lock pins into .venv (once; a minute or two)"
pip=(.venv/bin/python -m pip --disable-pip-version-check --quiet)
# The lock has all that they need in turn; asked to look for it, pip may want a newer version of a package with an extra, which has no hash.
"${pip[@]}" install --no-deps --require-hashes --requirement requirements.lock || fail "the packages cannot be installed; is there a network?"
"${pip[@]}" install --no-deps --no-build-isolation --editable . || fail "the project itself cannot be installed"
works || fail "the project is not installed, though its installation succeeded; remove .venv and try again"
wanted | sha256sum >"$stamp"
