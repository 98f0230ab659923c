#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what Leadline needs to be built and tested: Debian packages, and .venv with the packages of
# requirements-dev.txt. Does nothing, quickly, when all of it is there.
# usage: tools/setup.sh [--lint | --tests | --bench | --fuzz]
#   --lint: also clang-format, clang-tidy and npm, and ruff and mypy in .venv-lint
#   --tests: also what only tests need: TensorFlow in .venv-tensorflow, images to learn, a browser, an OpenCL device,
#            valgrind to count instructions
#   --bench: also the engines that benchmarks run beside Leadline, in .venv-bench
#   --fuzz: also clang with libFuzzer
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  g++ make cmake ninja-build ccache
  flatbuffers-compiler libflatbuffers-dev libhwy-dev libfmt-dev libcli11-dev nlohmann-json3-dev zlib1g-dev
  libpng-dev libjpeg62-turbo-dev
  libgtest-dev libbenchmark-dev
  python3 python3-dev python3-venv
)
if [[ ${1:-} == --lint ]]; then
  packages+=(clang-format-19 clang-tidy-19)
  command -v npm >/dev/null || packages+=(npm)  # Debian's, where no other is there; for tools/lint_js.sh
elif [[ ${1:-} == --fuzz ]]; then
  packages+=(clang-19 libclang-rt-19-dev)
elif [[ ${1:-} == --tests ]]; then
  packages+=(dataset-fashion-mnist chromium ocl-icd-libopencl1 pocl-opencl-icd valgrind)
fi
python=${PYTHON:-python3}

install_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "setup: this is not Debian or Ubuntu, so system packages are up to you. Leadline needs what these contain:"
    echo "setup:   ${packages[*]}"
    return 0
  fi
  local missing
  missing=$(comm -23 <(printf '%s\n' "${packages[@]}" | sort) \
    <(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null | sed -n 's/ installed$//p' | sort -u))
  [[ -n $missing ]] || return 0

  local -a list as_root=()
  mapfile -t list <<<"$missing"
  if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
      echo "setup: missing Debian packages, and neither root nor sudo is here. Ask an administrator to run:" >&2
      echo "setup:   apt-get install ${list[*]}" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  echo "setup: installing Debian packages: ${list[*]}"
  if ! { "${as_root[@]}" apt-get update -q &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${list[@]}"; }; then
    echo "setup: apt-get could not install: ${list[*]} (its reason is above)" >&2
    exit 1
  fi
}

install_venv() {
  local venv=$1 requirements=$2
  local stamp=$venv/requirements.stamp wanted
  wanted=$(sha256sum "$requirements")
  if [[ -x $venv/bin/python && -f $stamp && $(<"$stamp") == "$wanted" ]] && "$venv/bin/python" -c ''; then
    return 0
  fi
  echo "setup: installing the packages of $requirements into $venv"
  if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    "$python" -m venv --clear "$venv"
  fi
  if ! "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements"; then
    echo "setup: pip could not install $requirements (its reason is above); is the package index reachable?" >&2
    exit 1
  fi
  echo "$wanted" >"$stamp"
}

install_packages
install_venv .venv requirements-dev.txt
if [[ ${1:-} == --lint ]]; then
  install_venv .venv-lint requirements-lint.txt
elif [[ ${1:-} == --tests ]]; then
  install_venv .venv-tensorflow requirements-tensorflow.txt
elif [[ ${1:-} == --bench ]]; then
  install_venv .venv-bench requirements-bench.txt
fi
