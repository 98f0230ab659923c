#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Which lines of C++ and Python the tests run: builds the preset coverage, runs the C++ tests and the Python tests with it
# (C++ that is reached from Python and from the program counts), and writes build/coverage/report/index.html.
# usage: tools/coverage.sh [pytest arguments]    tests/python, tests/conformance and tests/museum unless told otherwise
set -euo pipefail
cd "$(dirname "$0")/.."

build=$PWD/build/coverage
site=$build/site
report=$build/report
flags=
# With one instruction set, as in sanitized builds: lines are the same in all of them.
if [[ $(uname -m) == x86_64 ]]; then flags="-march=x86-64-v2 -maes -mpclmul"; fi
cmake --preset coverage -DCMAKE_CXX_FLAGS="$flags" >/dev/null
cmake --build --preset coverage -j "$(nproc)" --target product leadline_tests
CMAKE_INSTALL_MODE=ABS_SYMLINK cmake --install "$build" --component python --prefix "$site" >/dev/null

find "$build" -name '*.gcda' -delete
rm -rf "$report" "$build"/python.coverage*
mkdir -p "$report"
tests=("$@")
if [[ ${#tests[@]} -eq 0 ]]; then tests=(tests/python tests/conformance tests/museum); fi

export COVERAGE_FILE=$build/python.coverage LEADLINE_PROGRAM=$build/leadline PYTHONPATH=$site
status=0
"$build/leadline_tests" --gtest_brief=1 || status=1
# Tests that measure time and memory may fail here, because counting takes both: figures are made from what ran.
.venv/bin/python -m coverage run -m pytest "${tests[@]}" || echo "coverage: some Python tests failed (see above)"

python=(.venv/bin/python -m)
"${python[@]}" coverage combine --quiet
"${python[@]}" coverage json --quiet -o "$report/python.json"
"${python[@]}" coverage html --quiet -d "$report/python"
# Threads count without locks, so that a counter may come out wrong, but not a line that never ran as one that did.
"${python[@]}" gcovr --root . -j "$(nproc)" --object-directory "$build" --filter include/ --filter src/ --filter python/src/ \
  --exclude '.*_test\.cc' --exclude '.*_testing\.h' --exclude-throw-branches --merge-lines \
  --gcov-ignore-parse-errors=all --gcov-ignore-errors=no_working_dir_found \
  --json-summary "$report/cpp.json" --html-nested "$report/cpp.html" "$build"
.venv/bin/python tools/coverage_report.py "$report"
exit $status
