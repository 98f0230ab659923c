#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Formatting and lint of the JavaScript and CSS of reports (src/report/assets) with the version of Biome that
# tools/js/package-lock.json names; it is installed into build/js. Without npm nothing is checked, which fails under CI.
# usage: tools/lint_js.sh             check
#        tools/lint_js.sh --format    rewrite files in the project's format
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v npm >/dev/null; then
  echo "lint: JavaScript and CSS were not checked: npm is not installed (Debian: apt-get install npm)" >&2
  [[ -z ${CI:-} ]]
  exit
fi

installed=build/js
if ! cmp -s tools/js/package-lock.json $installed/package-lock.json || [[ ! -x $installed/node_modules/.bin/biome ]]; then
  rm -rf $installed
  mkdir -p $installed
  cp tools/js/package.json tools/js/package-lock.json $installed
  (cd $installed && npm ci --silent --no-audit --no-fund) ||
    { rm -rf $installed; echo "lint: npm could not install tools/js/package-lock.json" >&2; exit 1; }
fi

biome=$PWD/$installed/node_modules/.bin/biome
cd src/report/assets
if [[ ${1:-} == --format ]]; then
  "$biome" format --write .
else
  "$biome" ci --error-on-warnings .
fi
