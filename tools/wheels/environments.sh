#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes build/wheels/python-3.11 and python-3.12 with what wheels are built by (requirements-wheels.txt).
# PYTHON311 and PYTHON312 name the Pythons; the second may be any from 3.12 on.
set -euo pipefail
cd "$(dirname "$0")/../.."

wheels=build/wheels
mkdir -p $wheels

# find_python <variable> <version>...: the Python of that variable, of PATH, or of pyenv.
find_python() {
  local variable=$1 version candidate
  shift
  if [[ -n ${!variable:-} ]]; then
    echo "${!variable}"
    return 0
  fi
  for version in "$@"; do
    for candidate in "python$version" "$HOME/.pyenv/versions/$version".*/bin/python; do
      if "$candidate" -c "import sys, sysconfig, venv, os; sys.exit('%d.%d' % sys.version_info[:2] != '$version' or not \
os.path.exists(sysconfig.get_path('include') + '/Python.h'))" 2>/dev/null; then
        command -v "$candidate"
        return 0
      fi
    done
  done
  echo "wheels: no Python $* with headers was found; $variable=<path of one> names it" >&2
  return 1
}

# An environment with what building takes.
environment() {
  local folder=$wheels/python-$2
  if ! cmp -s requirements-wheels.txt "$folder/requirements.txt"; then
    "$1" -m venv --clear "$folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r requirements-wheels.txt
    cp requirements-wheels.txt "$folder/requirements.txt"
  fi
}

environment "$(find_python PYTHON311 3.11)" 3.11
environment "$(find_python PYTHON312 3.12 3.13 3.14)" 3.12
