#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formatting, static analysis and layering of the C++ sources.
# usage: tools/lint.sh <build folder>   check; the folder has compile_commands.json
#        tools/lint.sh --format         rewrite files in the project's format
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t files < <(find include src python/src tests examples bench fuzz -name '*.h' -o -name '*.cc' | sort)
if [[ $1 == --format ]]; then
  clang-format-19 -i "${files[@]}"
  exit 0
fi

tools/setup.sh --lint
build=$1
status=0
echo "lint: clang-format"
clang-format-19 --dry-run --Werror "${files[@]}" || status=1
echo "lint: layering"
.venv/bin/python tools/check_layering.py || status=1
echo "lint: clang-tidy"
[[ -f $build/build.ninja ]] || cmake --preset "$(basename "$build")"
if [[ -f src/model/tflite.fbs ]]; then
  cmake --build "$build" --target leadline_schema >/dev/null
fi
# -w: the compiler's own warnings are g++'s to report.
run-clang-tidy-19 -quiet -p "$build" -j "$(nproc)" -extra-arg=-w \
  "$PWD/(src|python/src|examples)/.*\.cc$" 2>/dev/null || status=1
exit $status
