// SPDX-License-Identifier: Apache-2.0
// Decodes one block compressed with Snappy: the length, then literals and copies of earlier output.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace leadline::saved_model {

/// How many bytes the block says it has when decompressed. Throws Error(kInvalidModel) when that is more than `limit`
/// or than `data` could hold.
size_t snappy_size(std::span<const std::byte> data, size_t limit, const std::string& what);

/// The decompressed bytes, at most `limit`. Throws Error(kInvalidModel) beginning with `what` when the data is damaged.
std::vector<std::byte> snappy_decode(std::span<const std::byte> data, size_t limit, const std::string& what);

}  // namespace leadline::saved_model
