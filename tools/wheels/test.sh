#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the wheels of dist/ where users are, in fresh Debian systems with nothing but Python, and does every job once
# (tests/wheels/smoke.py); integer results have to be the same everywhere. Root, for debootstrap and chroot.
# usage: tools/wheels/test.sh <python with Keras and Leadline> [<suite>-<machine>-numpy<version>]...
set -euo pipefail
cd "$(dirname "$0")/../.."

python=$1
shift
cases=("$@")
[[ $# -gt 0 ]] || cases=(bookworm-amd64-numpy1.26.4 bookworm-amd64-numpy2.4.6 trixie-amd64-numpy2.4.6)
roots=build/chroots
work=build/wheels/test
mkdir -p $roots $work
if [[ $(id -u) -ne 0 ]]; then
  echo "test-wheels: debootstrap and chroot need root; run it with sudo" >&2
  exit 1
fi
version=$(sed -n 's/.*kVersion = "\([0-9.]*\)".*/\1/p' include/leadline/version.h)
mirror=$(sed -nE 's/^URIs: *([^ ]+).*/\1/p; s/^deb (\[[^]]*\] )?([^ ]+) .*/\2/p' /etc/apt/sources.list.d/debian.sources \
  /etc/apt/sources.list 2>/dev/null | head -n 1) || true  # one of the files is usually not there

# An arm64 system's programs run in qemu, which the kernel has to be told.
enable_emulation() {
  local binfmt=/proc/sys/fs/binfmt_misc
  [[ -e $binfmt/register ]] || mount -t binfmt_misc none $binfmt
  [[ -e $binfmt/qemu-aarch64 ]] || update-binfmts --import qemu-aarch64 2>/dev/null || true
  [[ -e $binfmt/qemu-aarch64 ]] || update-binfmts --enable qemu-aarch64
}

make_root() {
  local suite=$1 machine=$2 root=$roots/$1-$2
  [[ -f $root/ready ]] && return 0
  rm -rf "$root"
  debootstrap --variant=minbase --arch="$machine" --include=python3,python3-venv,ca-certificates "$suite" "$root" "$mirror" \
    >"$root.log" 2>&1 || { tail -n 20 "$root.log" >&2; return 1; }
  touch "$root/ready"
}

[[ -f $work/inputs/pictures/dogs/one.png ]] || "$python" tests/wheels/make_inputs.py $work/inputs >/dev/null 2>&1
rm -f $work/*.json
for name in "${cases[@]}"; do
  IFS=- read -r suite machine numpy <<<"$name"
  if [[ $machine == arm64 ]]; then enable_emulation; fi
  make_root "$suite" "$machine"
  root=$roots/$suite-$machine
  minor=$(chroot "$root" python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  platform=$([[ $machine == arm64 ]] && echo aarch64 || echo x86_64)
  rm -rf "$root/test"
  mkdir -p "$root/test/wheels"
  cp -r $work/inputs tests/wheels/smoke.py "$root/test/"
  # Fetched out here, so that the system in there needs no network.
  "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --python-version "$minor" \
    --platform "manylinux_2_28_$platform" --platform "manylinux_2_27_$platform" --platform "manylinux2014_$platform" \
    -d "$root/test/wheels" "numpy==${numpy#numpy}"
  cp dist/leadline-"$version"-*"$platform".whl "$root/test/wheels/"
  echo "test-wheels: $name"
  mount --bind /proc "$root/proc"
  status=0
  chroot "$root" /bin/sh -ec '
    rm -rf /test/venv
    python3 -m venv /test/venv
    /test/venv/bin/pip install --quiet --disable-pip-version-check --no-index --find-links /test/wheels leadline
    cd /test
    exec /test/venv/bin/python smoke.py inputs' >"$work/$name.json" || status=1
  umount "$root/proc"
  [[ $status -eq 0 ]] || exit 1
  cat "$work/$name.json"
done
"$python" - $work/*.json <<'END'
import json, sys

facts = {path: json.load(open(path)) for path in sys.argv[1:]}
integers = {path: fact["integers"] for path, fact in facts.items()}
sys.exit(f"test-wheels: integer results differ: {integers}" if len(set(integers.values())) != 1 else 0)
END
echo "test-wheels: ${#cases[@]} systems passed; integer results are equal"
