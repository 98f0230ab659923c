// SPDX-License-Identifier: Apache-2.0
// The table of a SavedModel's variables, and blocks compressed with Snappy.
#include "import/saved_model/bundle.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "import/saved_model/files_testing.h"
#include "import/saved_model/snappy.h"
#include "leadline/error.h"
#include "readers/readers.h"

namespace leadline::fuzz {
namespace {

using saved_model::Bundle;
using namespace saved_model::testing;  // NOLINT: words to write tables with

BundleWriter variables() {
  BundleWriter writer;
  writer.add("layer/bias", 1, shape({4}), std::string(16, 'b'));
  writer.add("layer/kernel", 1, shape({2, 2}), std::string(16, 'k'));
  writer.add("layer/steps", 9, shape({}), std::string(8, '\1'));
  writer.add_strings("names", {"one", "three"});
  return writer;
}

void run_bundle(Bytes bytes) {
  static const TempDirectory directory;
  static const bool written = (variables().write(directory), true);
  static_cast<void>(written);
  directory.write("variables/variables.index", as_string(bytes));
  const auto bundle = Bundle::open(directory.path() + "/variables/variables", small_budget());
  for (const Bundle::Entry& entry : bundle->entries()) {
    use(bundle->describe(entry));
    try {
      const auto source = bundle->source(entry);
      if (source->bytes() > kBudget) continue;
      std::vector<std::byte> data(static_cast<size_t>(source->bytes()));
      source->read(data);
      use(as_text(data));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kInternal) throw;
    }
  }
}

/// A number of 7 bits a byte; nothing behind the end.
std::optional<uint64_t> take_varint(std::string_view& text) {
  uint64_t value = 0;
  for (unsigned shift = 0; !text.empty() && shift < 64; shift += 7) {
    const auto byte = static_cast<unsigned char>(text.front());
    text.remove_prefix(1);
    value |= uint64_t{byte & 0x7FU} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

/// Sets the checksum of the block at `handle` (offset and size, behind which are a byte and the checksum).
std::optional<std::string_view> repair_block(std::string& file, std::string_view handle) {
  const auto offset = take_varint(handle);
  const auto size = take_varint(handle);
  if (!offset || !size || *offset > file.size() || *size > file.size() - *offset) return std::nullopt;
  if (file.size() - *offset - *size < 5) return std::nullopt;
  const std::string_view block = std::string_view(file).substr(*offset, *size);
  const uint32_t crc = masked(std::string_view(file).substr(*offset, *size + 1));
  std::memcpy(file.data() + *offset + *size + 1, &crc, sizeof crc);
  return block;
}

/// Sets the checksums of the index and of the blocks that it names.
void repair(std::string& file) {
  constexpr size_t kFooter = 48;
  if (file.size() < kFooter) return;
  const std::string footer = file.substr(file.size() - kFooter, 40);
  repair_block(file, footer);
  std::string_view second = footer;
  take_varint(second);
  take_varint(second);
  const auto index = repair_block(file, second);
  if (!index) return;
  const std::string rows(*index);
  std::string_view left = rows;
  while (left.size() > 8) {
    take_varint(left);
    const auto key = take_varint(left);
    const auto value = take_varint(left);
    if (!key || !value || *key > left.size() || *value > left.size() - *key) return;
    repair_block(file, left.substr(*key, *value));
    left.remove_prefix(*key + *value);
  }
}

std::vector<std::string> tables() {
  TableWriter slices;
  slices.add("", Proto().number(1, 1).bytes);
  const Proto extent = Proto().number(1, 0).number(2, 1);
  slices.add("part", Proto().number(1, 1).add(2, shape({2})).add(7, Proto().add(1, extent)).bytes);
  return {variables().index(), slices.bytes(1), TableWriter().bytes()};
}

void run_snappy(Bytes bytes) { use(as_text(saved_model::snappy_decode(bytes, 1 << 20, "block"))); }

std::vector<std::string> blocks() {
  const std::string literal = varint(5) + std::string(1, char{4 << 2}) + "hello";
  const std::string copy =
      varint(12) + std::string(1, char{3 << 2}) + "abcd" + std::string(1, char{(4 << 2) | 1}) + std::string(1, '\4');
  const std::string far =
      varint(8) + std::string(1, char{3 << 2}) + "abcd" + std::string(1, char{(3 << 2) | 2}) + std::string("\4\0", 2);
  return {literal, copy, far};
}

std::vector<std::string> words() {
  return {"layer/kernel",    varint(UINT64_MAX),   varint(INT64_MAX),
          varint(1U << 31U), std::string(1, '\1'), little_endian(0xDB4775248B80FB57ULL, 8)};
}

}  // namespace

Reader bundle_reader() {
  return {.name = "bundle", .run = run_bundle, .seeds = tables, .words = words, .repair = repair, .most_bytes = 2048};
}
Reader snappy_reader() {
  return {.name = "snappy", .run = run_snappy, .seeds = blocks, .words = words, .most_bytes = 1024};
}

}  // namespace leadline::fuzz
