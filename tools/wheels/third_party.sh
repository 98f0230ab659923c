#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Collects what Leadline is built with and a source distribution brings along (cmake/ThirdParty.cmake): the headers of the
# installed Debian packages, zlib's sources, what flatc makes of the schemas, and the licences of it all.
# usage: tools/wheels/third_party.sh <folder>
set -euo pipefail
cd "$(dirname "$0")/../.."

folder=$1
rm -rf "$folder"
mkdir -p "$folder"/{include,generated/model,licenses,zlib}

# <Debian package> <folder below /usr/include>
copy_headers() {
  local headers=/usr/include/$2
  if [[ ! -d $headers ]]; then
    echo "third_party: $headers is missing; 'apt-get install $1' brings it" >&2
    exit 1
  fi
  cp -r "$headers" "$folder/include/"
  cp "/usr/share/doc/$1/copyright" "$folder/licenses/$2.txt"
}
copy_headers libfmt-dev fmt
copy_headers libhwy-dev hwy
copy_headers libflatbuffers-dev flatbuffers
copy_headers libcli11-dev CLI
# Only what is included: tests and sorting of Highway, and tools of flatbuffers, are not.
rm -rf "$folder"/include/hwy/{tests,contrib/{algo,image,sort}} "$folder"/include/flatbuffers/{pch,grpc.h,idl.h,code_generators.h}

tools/wheels/sources.sh build/sources zlib
cp build/sources/zlib/*.[ch] "$folder/zlib/"
cp build/sources/zlib/debian/copyright "$folder/licenses/zlib.txt"

for schema in tflite conversion_metadata; do
  flatc --cpp -o "$folder/generated/model" "src/model/$schema.fbs"
done
