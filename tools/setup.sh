#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what a job needs, and no more: Debian packages and virtual environments. Does nothing, quickly, when all of
# it is there.
# usage: tools/setup.sh [--no-apt] [build | lint | check | tests | survive | bench | jupyterlab | vm | wheels | fuzz | coverage]
#   build     a compiler, the libraries Leadline uses, and .venv to build and run the package in (the default)
#   lint      build, and the formatters and linters of C++ and JavaScript; those of Python in .venv-lint
#   check     lint, and what the C++ tests and the Python tests need
#   tests     check, and what only some tests need: TensorFlow in .venv-tensorflow, images to learn, a browser, an OpenCL
#             device, valgrind to count instructions
#   survive   tests, and libraries whose memory the watch has to do with, in .venv-native (6 GB: torch's wheel has CUDA)
#   bench     build, and Google Benchmark, and the engines that benchmarks run beside Leadline, in .venv-bench
#   jupyterlab  build, a browser, and JupyterLab in .venv-jupyterlab
#   vm        check, and what runs tests in a virtual machine
#   wheels    build, and what fetches and compiles the libraries inside wheels, and tests wheels in other systems
#   fuzz      build, and clang with libFuzzer
#   coverage  tests, and what counts the lines that tests run
#   --no-apt  a missing Debian package is an error that says how to install it
set -euo pipefail
cd "$(dirname "$0")/.."

export LC_ALL=C  # one order for sort and comm
python=${PYTHON:-python3}
packages=(
  g++ make cmake ninja-build
  flatbuffers-compiler libflatbuffers-dev libhwy-dev libfmt-dev libcli11-dev zlib1g-dev
  libpng-dev libjpeg62-turbo-dev
  python3 python3-dev python3-venv
)
declare -A environments=([.venv]=requirements-build.txt)

add_job() {
  case $1 in
    build) ;;
    lint)
      packages+=(clang-format-19 clang-tidy-19)
      command -v npm >/dev/null || packages+=(npm)  # Debian's, where no other is there; for tools/lint_js.sh
      environments[.venv-lint]=requirements-lint.txt
      ;;
    check)
      add_job lint
      packages+=(ccache libgtest-dev nlohmann-json3-dev)
      environments[.venv]=requirements-dev.txt
      ;;
    tests)
      add_job check
      packages+=(dataset-fashion-mnist chromium ocl-icd-libopencl1 pocl-opencl-icd valgrind)
      environments[.venv-tensorflow]=requirements-tensorflow.txt
      ;;
    survive)
      add_job tests
      environments[.venv-native]=requirements-native.txt
      ;;
    bench)
      packages+=(libbenchmark-dev)
      environments[.venv-bench]=requirements-bench.txt
      ;;
    jupyterlab)
      packages+=(chromium)
      environments[.venv-jupyterlab]=requirements-jupyterlab.txt
      ;;
    vm)
      add_job check
      packages+=(qemu-system-x86 busybox-static cpio)
      ;;
    wheels) packages+=(dpkg-dev nasm debootstrap qemu-user-static binfmt-support) ;;
    fuzz) packages+=(clang-19 libclang-rt-19-dev libgtest-dev nlohmann-json3-dev) ;;
    coverage)
      add_job tests
      environments[.venv]=requirements-coverage.txt
      ;;
    *)
      echo "setup: '$1' is not a job: expected build, lint, check, tests, survive, bench, jupyterlab, vm, wheels, fuzz or coverage" >&2
      exit 2
      ;;
  esac
}

install_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    $apt || return 0
    echo "setup: this is not Debian or Ubuntu, so system packages are up to you. Leadline needs what these contain:"
    echo "setup:   ${packages[*]}"
    return 0
  fi
  local -a missing as_root=()
  mapfile -t missing < <(comm -23 <(printf '%s\n' "${packages[@]}" | sort -u) \
    <(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null | sed -n 's/ installed$//p' | sort -u))
  [[ ${#missing[@]} -gt 0 ]] || return 0
  if ! $apt; then
    echo "setup: missing Debian packages: ${missing[*]}" >&2
    echo "setup: 'make setup' installs them (apt-get install, as root or with sudo)" >&2
    exit 1
  fi

  if [[ $(id -u) -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
      echo "setup: missing Debian packages, and neither root nor sudo is here. Ask an administrator to run:" >&2
      echo "setup:   apt-get install ${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  echo "setup: installing Debian packages: ${missing[*]}"
  if ! { "${as_root[@]}" apt-get update -q &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"; }; then
    echo "setup: apt-get could not install: ${missing[*]} (its reason is above)" >&2
    exit 1
  fi
  rm -f build/*/build.ninja  # so that CMake looks again for what it did not find
}

# The requirements of a file and of those it includes, one per line.
requirements_of() {
  local line
  while read -r line; do
    line=${line%%#*}
    case $line in
      '-r '*) requirements_of "${line#-r }" ;;
      *) echo "${line// /}" ;;
    esac
  done <"$1" | sed '/^$/d' | sort -u
}

# What was installed into an environment is listed in its stamp: an environment that has more than a job needs stays.
install_venv() {
  local venv=$1 requirements=$2
  local stamp=$venv/requirements.stamp
  if [[ -x $venv/bin/python && -f $stamp && -z $(comm -23 <(requirements_of "$requirements") "$stamp") ]] &&
    "$venv/bin/python" -c ''; then
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
  requirements_of "$requirements" >"$stamp"
}

apt=true
if [[ ${1:-} == --no-apt ]]; then
  apt=false
  shift
fi
add_job "${1:-build}"
install_packages
for venv in "${!environments[@]}"; do
  install_venv "$venv" "${environments[$venv]}"
done
