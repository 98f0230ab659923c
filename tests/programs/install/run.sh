#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a finished build into an empty prefix, then builds and runs programs that know only that prefix: with the
# engine, with leadline::guard, and with both.
# usage: run.sh <build folder> <model.tflite> [C++ compiler]
set -euo pipefail

build=$1
model=$2
compiler=${3:-c++}
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

build_with() {
  cmake -S "$here" -B "$scratch/build" -G Ninja -DCMAKE_CXX_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_PREFIX_PATH="$scratch/prefix" -DWITH_GUARD="$1" && cmake --build "$scratch/build"
}

# The engine alone.
cmake --install "$build" --prefix "$scratch/prefix" --component dev >"$scratch/install.log"
build_with OFF
if [[ $(nm -C "$scratch/build/external" | grep -c leadline::guard::) != 0 ]]; then
  echo "a program that links the engine contains parts of leadline::guard" >&2
  exit 1
fi
if build_with ON >"$scratch/without_guard.log" 2>&1; then
  echo "leadline::guard is not installed, but find_package(leadline COMPONENTS guard) found it" >&2
  exit 1
fi
grep -q guard "$scratch/without_guard.log"

# The library beside it.
cmake --install "$build" --prefix "$scratch/prefix" >>"$scratch/install.log"
build_with ON

output=$("$scratch/build/external" "$model")
echo "$output"
[[ $output =~ ^peak_bytes=[1-9][0-9]*$ ]] || { echo "expected peak_bytes=<positive number>" >&2; exit 1; }
output=$("$scratch/build/with_highway" "$model")
[[ $output == highway=other ]] || { echo "expected highway=other, got $output" >&2; exit 1; }

output=$("$scratch/build/guarded")
[[ $output == exit_code=7 ]] || { echo "expected exit_code=7, got $output" >&2; exit 1; }
output=$("$scratch/build/both" "$model")
[[ $output =~ ^accounted=[1-9][0-9]*$ ]] || { echo "expected accounted=<positive number>, got $output" >&2; exit 1; }

# A file that is not a model must end in a sentence and exit code 1, not in a signal.
head -c 100 /dev/zero >"$scratch/zeros.tflite"
status=0
"$scratch/build/external" "$scratch/zeros.tflite" || status=$?
[[ $status -eq 1 ]] || { echo "expected exit code 1 for a damaged model, got $status" >&2; exit 1; }

if [[ -e $scratch/prefix/bin/leadline ]]; then
  "$scratch/prefix/bin/leadline" --version
fi
# Only public headers may be installed.
stray=$(find "$scratch/prefix/include" -type f ! -path '*/include/leadline/*.h')
[[ -z $stray ]] || { echo "installed by mistake: $stray" >&2; exit 1; }
