#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the source distribution in dist/: what git has, and third_party, with which it builds where nothing is installed but
# a C++20 compiler and Python.
# usage: tools/wheels/sdist.sh <python with scikit-build-core and build>
set -euo pipefail
cd "$(dirname "$0")/../.."

python=$(realpath -s "$1")
tree=build/sdist/tree
rm -rf build/sdist
mkdir -p $tree dist
git ls-files -z --cached --others --exclude-standard | tar -c --null --files-from=- --ignore-failed-read | tar -x -C $tree
tools/wheels/third_party.sh $tree/third_party
"$python" -m build --sdist --no-isolation --outdir "$PWD/dist" $tree >build/sdist/build.log || {
  cat build/sdist/build.log >&2
  exit 1
}
version=$(sed -n 's/.*kVersion = "\([0-9.]*\)".*/\1/p' include/leadline/version.h)
ls -l "dist/leadline-$version.tar.gz"
