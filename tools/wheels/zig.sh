#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes the commands cc, c++, ar and ranlib of the compiler in the PyPI package ziglang, which makes programs for any
# machine and any release of glibc, and a toolchain file for CMake with them.
# usage: tools/wheels/zig.sh <python with ziglang> <x86_64 | aarch64> <folder>
set -euo pipefail

glibc=2.28  # manylinux_2_28
zig=$("$1" -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent / "zig")')
machine=$2
mkdir -p "$3"
folder=$(realpath "$3")

# Written only where it differs, or everything would be compiled again.
write() {
  local path=$folder/$1 text
  text=$(cat)
  if [[ ! -f $path || $(cat "$path") != "$text" ]]; then echo "$text" >"$path"; fi
  chmod +x "$path"
}
for name in cc c++; do
  write $name <<END
#!/bin/sh
exec "$zig" $name -target $machine-linux-gnu.$glibc "\$@"
END
done
for name in ar ranlib; do
  write $name <<END
#!/bin/sh
exec "$zig" $name "\$@"
END
done
# CMAKE_SYSTEM_NAME is not set: CMake would look for a Python of the other machine, where this machine's does, as only its
# headers are used.
write toolchain.cmake <<END
set(CMAKE_C_COMPILER $folder/cc)
set(CMAKE_CXX_COMPILER $folder/c++)
set(CMAKE_AR $folder/ar CACHE FILEPATH "")
set(CMAKE_RANLIB $folder/ranlib CACHE FILEPATH "")
# No symbols of the linker's: this machine's strip does not know programs of others.
foreach(kind IN ITEMS EXE MODULE SHARED)
  set(CMAKE_\${kind}_LINKER_FLAGS "-s -Wl,--gc-sections" CACHE STRING "" FORCE)
endforeach()
# From libraries.sh, never this machine's.
set(ZLIB_INCLUDE_DIR $folder/../prefix/include CACHE PATH "")
set(ZLIB_LIBRARY $folder/../prefix/lib/libz.a CACHE FILEPATH "")
set(PNG_PNG_INCLUDE_DIR $folder/../prefix/include CACHE PATH "")
set(PNG_LIBRARY $folder/../prefix/lib/libpng.a CACHE FILEPATH "")
set(JPEG_INCLUDE_DIR $folder/../prefix/include CACHE PATH "")
set(JPEG_LIBRARY $folder/../prefix/lib/libjpeg.a CACHE FILEPATH "")
END
