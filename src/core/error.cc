// SPDX-License-Identifier: Apache-2.0
#include "core/error.h"

namespace leadline {
namespace {

// Copying an exception takes no memory; making its text would.
const Error out_of_memory(ErrorCode::kOutOfMemory,
                          "the system has no memory left for this; what was begun has been undone");

}  // namespace

void fail_with(ErrorCode code, fmt::string_view format, fmt::format_args args) {
  throw Error(code, fmt::vformat(format, args));
}

void throw_out_of_memory() { throw Error(out_of_memory); }

}  // namespace leadline
