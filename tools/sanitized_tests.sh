#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Python tests of what reads files and computes, with the extension of the asan preset. Tests that measure or limit
# memory, processes that are killed, and notebooks are not among them: they would see the sanitizer's own doings.
# usage: tools/sanitized_tests.sh [pytest arguments]
set -euo pipefail
cd "$(dirname "$0")/.."

build=$PWD/build/asan
site=$build/site
reports=$build/reports
CMAKE_INSTALL_MODE=ABS_SYMLINK cmake --install "$build" --component python --prefix "$site" >/dev/null
rm -rf "$reports"
mkdir -p "$reports"
tests=("$@")
if [[ ${#tests[@]} -eq 0 ]]; then
  tests=(tests/conformance tests/museum)
  for name in bound_tensors calibration calibration_ranges cli containers converter converter_quantization custom_layers \
    debugger fuzz hostile_names keras_layers keras_mutants keras_ops lite model_builder models outputs parity passes \
    quantization_rules quantize register_op roundtrip shared_parts tensors tf_convert tf_graphs tf_random_graphs \
    tf_tensors threads; do
    tests+=("tests/python/test_$name.py")
  done
  for name in memory_is_known_before_and_flat_over_a_thousand_samples rounds_do_not_grow; do
    tests+=(--deselect "tests/python/test_calibration.py::test_$name")
  done
fi
# Leaks are looked for by the C++ tests: an interpreter never frees all it has. Memory that is refused is an error to
# handle, not a death. Reports go to files because nothing reads the output of children of tests.
export ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:log_path=$reports/report
export UBSAN_OPTIONS=print_stacktrace=1:log_path=$reports/report
export LEADLINE_PROGRAM=$build/leadline LEADLINE_FUZZ=$build/leadline_fuzz
status=0
LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libubsan.so)" PYTHONPATH=$site \
  .venv/bin/python -m pytest "${tests[@]}" || status=1
# What allocator_may_return_null says about a refusal is a warning.
shopt -s nullglob
for report in "$reports"/*; do
  if grep -q 'ERROR: \|runtime error: ' "$report"; then
    cat "$report" >&2
    status=1
  fi
done
exit $status
