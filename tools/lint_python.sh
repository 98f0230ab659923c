#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Format, lint and types of the Python sources; pyproject.toml has the settings.
# usage: tools/lint_python.sh            check
#        tools/lint_python.sh --format   rewrite files in the project's format, and fix what can be fixed
# Runs ruff and mypy of requirements-lint.txt from .venv-lint (tools/setup.sh lint makes it), or from the folder of
# programs that LEADLINE_LINT names.
set -euo pipefail
cd "$(dirname "$0")/.."

lint=${LEADLINE_LINT:-.venv-lint/bin}
folders=(bench conftest.py examples fuzz python src tests tools)
if [[ ! -x $lint/ruff || ! -x $lint/mypy ]]; then
  echo "lint: $lint has no ruff and mypy: run tools/setup.sh lint" >&2
  exit 1
fi
if [[ ${1:-} == --format ]]; then
  "$lint/ruff" check --quiet --fix-only "${folders[@]}"
  "$lint/ruff" format --quiet "${folders[@]}"
  exit 0
fi

status=0
echo "lint: ruff"
"$lint/ruff" check --quiet "${folders[@]}" || status=1
"$lint/ruff" format --quiet --diff "${folders[@]}" || status=1
echo "lint: mypy"
# Types of numpy and of the package itself are those of the environment that has both.
"$lint/mypy" --python-executable .venv/bin/python || status=1
"$lint/mypy" --python-executable .venv/bin/python tests/typing/public_names.py || status=1
exit $status
