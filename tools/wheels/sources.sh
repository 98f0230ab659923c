#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches source packages of Debian and unpacks them with Debian's patches, those of security included, without touching
# what apt is configured to do. A folder that is there is left alone.
# usage: tools/wheels/sources.sh <folder> <source package>...     <folder>/<package> is then its tree
set -euo pipefail

mkdir -p "$1"
folder=$(realpath "$1")
shift
apt=$folder/.apt
mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
options=(-q -o Dir::Etc::sourcelist="$apt/debian.sources" -o Dir::Etc::sourceparts=/dev/null
  -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache")

# The machine's own sources of packages, asked for source code.
write_sources() {
  local file
  : >"$apt/debian.sources"
  for file in /etc/apt/sources.list.d/*.sources; do
    [[ -f $file ]] && { sed 's/^Types:.*/Types: deb-src/' "$file" && echo; } >>"$apt/debian.sources"
  done
  if [[ -s /etc/apt/sources.list ]] && grep -q '^deb ' /etc/apt/sources.list; then
    sed -nE 's/^deb (\[[^]]*\] )?([^ ]+) ([^ ]+) (.*)/Types: deb-src\nURIs: \2\nSuites: \3\nComponents: \4\n/p' \
      /etc/apt/sources.list >>"$apt/debian.sources"
  fi
}

# A mirror may list what it does not hold yet; then the version before that is taken.
fetch() {
  local package=$1 version work
  work=$(mktemp -d "$folder/.$package.XXXXXX")
  for version in $(apt-cache "${options[@]}" showsrc "$package" | sed -n 's/^Version: //p' | sort -rVu); do
    if (cd "$work" && apt-get "${options[@]}" source "$package=$version") >"$work.log" 2>&1; then
      mv "$work/"*/ "$folder/$package"
      rm -rf "$work" "$work.log"
      echo "sources: $package $version"
      return 0
    fi
    echo "sources: $package $version could not be fetched, trying an older one" >&2
  done
  cat "$work.log" >&2
  return 1
}

missing=()
for package in "$@"; do [[ -d $folder/$package ]] || missing+=("$package"); done
[[ ${#missing[@]} -gt 0 ]] || exit 0
write_sources
apt-get "${options[@]}" update >"$apt/update.log" 2>&1 || { cat "$apt/update.log" >&2; exit 1; }
for package in "${missing[@]}"; do fetch "$package"; done
