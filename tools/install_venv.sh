#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes a build usable from a virtual environment: `.venv/bin/leadline` and `import leadline`. Files are linked, not
# copied, so that an edit of a Python file and a rebuilt extension are seen at once.
# usage: tools/install_venv.sh <build folder> [<environment>]     .venv unless told otherwise
set -euo pipefail
cd "$(dirname "$0")/.."

build=$1
venv=${2:-.venv}
site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
export CMAKE_INSTALL_MODE=ABS_SYMLINK
# Links to files that are gone would still look like modules.
if [[ -d $site/leadline ]]; then
  find "$site/leadline" -xtype l -delete
fi
log=$build/install_venv.log
if ! { cmake --install "$build" --component python --prefix "$site" &&
  CMAKE_INSTALL_MODE=COPY cmake --install "$build" --component jupyter --prefix "$venv" &&
  cmake --install "$build" --component cli --prefix "$venv"; } >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
# What pip would say about the package: Jupyter finds the provisioner of kernels there.
version=$(sed -n 's/.*kVersion = "\([0-9.]*\)".*/\1/p' include/leadline/version.h)
rm -rf "$site"/leadline-*.dist-info
info=$site/leadline-$version.dist-info
mkdir -p "$info"
printf 'Metadata-Version: 2.1\nName: leadline\nVersion: %s\n' "$version" >"$info/METADATA"
awk '/^\[/ { group = "" } /^\[project\.entry-points\./ { split($0, part, "\""); group = part[2]; print "[" group "]" }
  group && / = / { gsub("\"", ""); print }' pyproject.toml >"$info/entry_points.txt"
# Compiled here once, so that the first import is as quick as the next, also where Python may not write.
"$venv/bin/python" -m compileall -q "$site/leadline"
