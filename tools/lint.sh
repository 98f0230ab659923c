#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formatting and static analysis of all sources.
# usage: tools/lint.sh                         check formatting, Python, JavaScript and layering: seconds
#        tools/lint.sh --tidy <build>          clang-tidy over all C++ sources, with the options of a build folder's preset:
#                                              about 3 s a file
#        tools/lint.sh --tidy-changed <build>  the same over those that differ from the main branch (on it: from the last
#                                              commit), at most LEADLINE_TIDY_FILES of them (100: under 3 minutes on 2 cores)
#        tools/lint.sh --format                rewrite files in the project's format
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t files < <(find include src python/src tests examples bench fuzz -name '*.h' -o -name '*.cc' | sort)
status=0

# Sources that differ from where this branch left the main one, as patterns; for a header the file of the same name.
changed_sources() {
  local base head branch
  head=$(git rev-parse HEAD) || return 0
  for branch in ${LEADLINE_LINT_BASE:-} origin/main main; do
    base=$(git merge-base HEAD "$branch" 2>/dev/null) && break
  done
  if [[ -z ${base:-} || $base == "$head" ]]; then base=$(git rev-parse --verify --quiet HEAD^ || echo "$head"); fi
  { git diff --name-only --diff-filter=d "$base" && git ls-files --others --exclude-standard; } |
    sed -nE 's/\.h$/.cc/; /^(src|python\/src|tests|examples|bench|fuzz)\/.*\.cc$/p' | sort -u |
    while read -r path; do if [[ -f $path ]]; then echo "$path"; fi; done |
    spread "${LEADLINE_TIDY_FILES:-100}" | sed 's/\./\\./g; s/.*/^&$/'
}

# At most this many of the lines, evenly spread.
spread() {
  awk -v most="$1" '{line[NR] = $0} END {
    if (NR > most) printf "lint: clang-tidy takes %d of the %d files that changed\n", most, NR >"/dev/stderr"
    step = NR > most ? NR / most : 1
    for (i = 0; i < NR && i < most; ++i) print line[int(i * step) + 1]
  }'
}

case ${1:-} in
  --format)
    clang-format-19 -i "${files[@]}"
    tools/lint_python.sh --format
    tools/lint_js.sh --format
    ;;
  --tidy | --tidy-changed)
    if [[ $1 == --tidy ]]; then
      chosen=('^(src|python/src|tests|examples|bench|fuzz)/.*\.cc$')
    else
      mapfile -t chosen < <(changed_sources)
      if [[ ${#chosen[@]} -eq 0 ]]; then
        echo "lint: no C++ source has changed"
        exit 0
      fi
    fi
    # A folder of its own, with a command for every file; a build compiles several at once.
    build=build/tidy
    cmake --preset "$(basename "$2")" -B "$build" -DLEADLINE_JOINED_SOURCES=OFF >/dev/null
    cmake --build "$build" --target leadline_schema >/dev/null
    echo "lint: clang-tidy"
    # -w: the compiler's own warnings are g++'s to report.
    run-clang-tidy-19 -quiet -p "$build" -j "$(nproc)" -extra-arg=-w "${chosen[@]/#^/$PWD/}" >"$build/tidy.log" 2>&1 || status=1
    if [[ $status -ne 0 ]]; then grep -v '^\[\|^clang-tidy-19 \|warnings generated' "$build/tidy.log" >&2; fi
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
