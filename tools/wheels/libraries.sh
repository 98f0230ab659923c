#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the libraries that wheels have inside, from Debian's sources, with the compiler of tools/wheels/zig.sh: zlib,
# libpng, libjpeg-turbo. Debian's own archives are not position-independent and ask for its glibc.
# usage: tools/wheels/libraries.sh <folder with cc, c++, ar> <x86_64 | aarch64> <prefix>
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=$(realpath "$1")
machine=$2
mkdir -p "$3"
prefix=$(realpath "$3")
if [[ -f $prefix/lib/libjpeg.a ]]; then exit 0; fi
tools/wheels/sources.sh build/sources zlib libpng1.6 libjpeg-turbo
mkdir -p "$prefix"/{include,lib,work}

# compile <library> <source>...: with the flags of $flags.
compile() {
  local library=$1 source
  shift
  local -a objects=()
  for source in "$@"; do
    objects+=("$prefix/work/$library-$(basename "$source" .c).o")
    # shellcheck disable=SC2086
    "$bin/cc" -O2 -fPIC -fvisibility=hidden -DNDEBUG $flags -I"$prefix/include" -c "$source" -o "${objects[-1]}"
  done
  rm -f "$prefix/lib/$library.a"
  "$bin/ar" qc "$prefix/lib/$library.a" "${objects[@]}"
  "$bin/ar" s "$prefix/lib/$library.a"
}

zlib=build/sources/zlib
cp $zlib/{zlib,zconf}.h "$prefix/include/"
flags="-DHAVE_UNISTD_H -DHAVE_STDARG_H -DHAVE_HIDDEN" compile libz $zlib/*.c

png=build/sources/libpng1.6
cp $png/{png,pngconf}.h "$prefix/include/"
cp $png/scripts/pnglibconf.h.prebuilt "$prefix/include/pnglibconf.h"
if [[ $machine == x86_64 ]]; then
  simd=("$png"/intel/*.c)
  flags="-DPNG_INTEL_SSE_OPT=1"
else
  simd=("$png"/arm/{arm_init,filter_neon_intrinsics,palette_neon_intrinsics}.c)
  flags="-DPNG_ARM_NEON_OPT=2"
fi
compile libpng $png/png{,error,get,mem,pread,read,rio,rtran,rutil,set,trans,wio,write,wtran,wutil}.c "${simd[@]}"

jpeg=build/sources/libjpeg-turbo
cmake -S $jpeg -B "$prefix/work/jpeg" -G Ninja --log-level=WARNING -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME=Linux \
  -DCMAKE_SYSTEM_PROCESSOR="$machine" -DCMAKE_C_COMPILER="$bin/cc" -DCMAKE_AR="$bin/ar" -DCMAKE_RANLIB="$bin/ranlib" \
  -DCMAKE_C_FLAGS="-fPIC -fvisibility=hidden" -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF -DREQUIRE_SIMD=ON >/dev/null
cmake --build "$prefix/work/jpeg" --target jpeg-static -j "${JOBS:-2}" >/dev/null
cp "$prefix/work/jpeg/jconfig.h" $jpeg/{jpeglib,jmorecfg,jerror}.h "$prefix/include/"
cp "$prefix/work/jpeg/libjpeg.a" "$prefix/lib/"
rm -rf "$prefix/work"
