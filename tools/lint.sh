#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formatting and static analysis of all sources.
# usage: tools/lint.sh                  check formatting, Python, JavaScript and layering: seconds
#        tools/lint.sh --tidy <build>   clang-tidy over the C++ sources of a build folder (compile_commands.json): minutes
#        tools/lint.sh --format         rewrite files in the project's format
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t files < <(find include src python/src tests examples bench fuzz -name '*.h' -o -name '*.cc' | sort)
status=0
case ${1:-} in
  --format)
    clang-format-19 -i "${files[@]}"
    tools/lint_python.sh --format
    tools/lint_js.sh --format
    ;;
  --tidy)
    build=$2
    [[ -f $build/build.ninja ]] || cmake --preset "$(basename "$build")"
    cmake --build "$build" --target leadline_schema >/dev/null
    # -w: the compiler's own warnings are g++'s to report.
    run-clang-tidy-19 -quiet -p "$build" -j "$(nproc)" -extra-arg=-w \
      "$PWD/(src|python/src|examples)/.*\.cc$" 2>/dev/null || status=1
    ;;
  *)
    echo "lint: clang-format"
    clang-format-19 --dry-run --Werror "${files[@]}" || status=1
    echo "lint: layering"
    .venv/bin/python tools/check_layering.py || status=1
    tools/lint_python.sh || status=1
    echo "lint: JavaScript and CSS"
    tools/lint_js.sh || status=1
    ;;
esac
exit $status
