// SPDX-License-Identifier: Apache-2.0
// FlexBuffers documents as OptionValues, from unchecked bytes, and reading them by name.
#include <cmath>
#include <limits>

#include "core/boundary.h"
#include "core/error.h"
#include "io/flexbuffer_reader.h"
#include "leadline/custom_op.h"

namespace leadline {
namespace {

using namespace flexbuffer;

/// A value and where it is: a small number in place, everything else where an offset points.
struct Slot {
  size_t position = 0;
  size_t width = 0;     // of what is stored in place
  uint64_t packed = 0;  // type and the width of what it points to
  uint8_t type() const { return static_cast<uint8_t>(packed >> 2); }
};

class Decoder {
 public:
  explicit Decoder(std::span<const std::byte> bytes) : bytes_(bytes), reader_(bytes), text_left_(16 * bytes.size()) {}

  std::optional<OptionValue> root() {
    if (bytes_.size() < 3) return std::nullopt;
    const auto width = std::to_integer<size_t>(bytes_[bytes_.size() - 1]);
    if (!std::has_single_bit(width) || width > 8 || width > bytes_.size() - 2) return std::nullopt;
    return value({bytes_.size() - 2 - width, width, std::to_integer<uint64_t>(bytes_[bytes_.size() - 2])}, 0);
  }

 private:
  using Result = std::optional<OptionValue>;

  Result value(const Slot& slot, int depth) {
    constexpr int kDeepest = 32;
    // Offsets of a hostile document may form loops, or lead to one place many times: no honest one has more values
    // than bytes.
    if (depth > kDeepest || ++values_ > bytes_.size()) return std::nullopt;
    const uint8_t type = slot.type();
    if (type == kFlexNull) return OptionValue{};
    if (type == kFlexBool || (type >= kFlexInt && type <= kFlexFloat)) return number(type, slot.position, slot.width);
    const auto target = reader_.target_at(slot.position, slot.width);
    if (!target) return std::nullopt;
    const size_t width = width_of(slot.packed);
    if (type >= kFlexIndirectInt && type <= kFlexIndirectFloat) {
      return number(static_cast<uint8_t>(type - kFlexIndirectInt + kFlexInt), *target, width);
    }
    switch (type) {
      case kFlexKey: {
        auto key = reader_.key_at(*target);
        return key ? text(std::move(*key)) : std::nullopt;
      }
      case kFlexString:
      case kFlexBlob: {
        const auto run = vector_at(reader_, *target, width);
        if (!run || run->count > bytes_.size() - run->first) return std::nullopt;
        return text(std::string(reinterpret_cast<const char*>(bytes_.data() + run->first), run->count));
      }
      case kFlexMap:
        return map(*target, width, depth);
      default:
        return list(type, *target, width, depth);
    }
  }

  Result number(uint8_t type, size_t position, size_t width) const {
    if (type == kFlexFloat) {
      const auto value = reader_.float_at(position, width);
      return value ? Result(OptionValue{*value}) : std::nullopt;
    }
    if (type == kFlexInt) {
      const auto value = reader_.signed_at(position, width);
      return value ? Result(OptionValue{*value}) : std::nullopt;
    }
    const auto value = reader_.unsigned_at(position, width);
    if (!value) return std::nullopt;
    if (type == kFlexBool) return OptionValue{*value != 0};
    constexpr uint64_t kLargest = std::numeric_limits<int64_t>::max();
    if (*value <= kLargest) return OptionValue{static_cast<int64_t>(*value)};
    return OptionValue{static_cast<double>(*value)};
  }

  Result text(std::string characters) {
    if (characters.size() > text_left_) return std::nullopt;
    text_left_ -= characters.size();
    return OptionValue{std::move(characters)};
  }

  Result list(uint8_t type, size_t first, size_t width, int depth) {
    Vector elements{first, width, 0};
    uint64_t packed = 0;  // of every element of a typed vector; 0: each has its own
    if (type >= kFlexVectorInt2 && type <= kFlexVectorFloat4) {
      elements.count = static_cast<size_t>((type - kFlexVectorInt2) / 3 + 2);
      packed = static_cast<uint64_t>((type - kFlexVectorInt2) % 3 + kFlexInt) << 2;
    } else {
      const auto found = vector_at(reader_, first, width);
      if (!found) return std::nullopt;
      elements = *found;
      if (type == kFlexVectorBool) {
        packed = uint64_t{kFlexBool} << 2;
      } else if (type >= kFlexVectorInt && type <= kFlexVectorString) {
        packed = static_cast<uint64_t>(type - kFlexVectorInt + kFlexInt) << 2;
      } else if (type != kFlexVector) {
        return std::nullopt;
      }
    }
    OptionList items;
    for (size_t i = 0; i < elements.count; ++i) {
      auto item = element(elements, i, packed, depth);
      if (!item) return std::nullopt;
      items.push_back(std::move(*item));
    }
    return OptionValue{std::move(items)};
  }

  Result element(const Vector& elements, size_t i, uint64_t packed, int depth) {
    const size_t position = elements.first + i * elements.width;
    if (packed != 0) return value({position, elements.width, packed}, depth + 1);
    // The types of the elements follow them, one byte each.
    const auto type = reader_.unsigned_at(elements.first + elements.count * elements.width + i, 1);
    return type ? value({position, elements.width, *type}, depth + 1) : std::nullopt;
  }

  Result map(size_t first, size_t width, int depth) {
    // Before the values: their count, the width of the keys, the offset of the vector of keys.
    if (first < 3 * width) return std::nullopt;
    const auto values = vector_at(reader_, first, width);
    const auto keys_first = reader_.target_at(first - 3 * width, width);
    const auto keys_width = reader_.unsigned_at(first - 2 * width, width);
    if (!values || !keys_first || !keys_width || !std::has_single_bit(*keys_width) || *keys_width > 8) {
      return std::nullopt;
    }
    const auto keys = vector_at(reader_, *keys_first, static_cast<size_t>(*keys_width));
    if (!keys || keys->count != values->count) return std::nullopt;
    OptionMap result;
    for (size_t i = 0; i < values->count; ++i) {
      const auto position = reader_.target_at(keys->first + i * keys->width, keys->width);
      auto key = position ? reader_.key_at(*position) : std::nullopt;
      if (!key || key->size() > text_left_) return std::nullopt;
      text_left_ -= key->size();
      auto item = element(*values, i, 0, depth);
      if (!item) return std::nullopt;
      result.insert_or_assign(std::move(*key), std::move(*item));
    }
    return OptionValue{std::move(result)};
  }

  std::span<const std::byte> bytes_;
  Reader reader_;
  size_t values_ = 0;
  size_t text_left_;  // bounds what repeated texts may copy
};

const OptionValue* find(const OptionMap& map, std::string_view name) {
  const auto it = map.find(name);
  return it == map.end() ? nullptr : &it->second;
}

[[noreturn]] void wrong_kind(std::string_view name, const char* expected) {
  fail(ErrorCode::kInvalidModel, "option '{}' is not a {}", name, expected);
}

}  // namespace

std::optional<OptionValue> decode_options(std::span<const std::byte> bytes) try {
  return Decoder(bytes).root();
} catch (...) {
  rethrow_as_error();
}

const OptionMap& OpOptions::map() const {
  if (!map_) {
    auto decoded = decode_options(bytes_);
    auto* found = decoded ? std::get_if<OptionMap>(&decoded->value) : nullptr;
    map_ = found != nullptr ? std::move(*found) : OptionMap();
  }
  return *map_;
}

double OpOptions::number(std::string_view name, double fallback) const {
  const OptionValue* option = find(map(), name);
  if (option == nullptr) return fallback;
  if (const auto* real = std::get_if<double>(&option->value)) return *real;
  if (const auto* whole = std::get_if<int64_t>(&option->value)) return static_cast<double>(*whole);
  if (const auto* flag = std::get_if<bool>(&option->value)) return *flag ? 1.0 : 0.0;
  wrong_kind(name, "number");
}

int64_t OpOptions::integer(std::string_view name, int64_t fallback) const {
  const OptionValue* option = find(map(), name);
  if (option == nullptr) return fallback;
  if (const auto* whole = std::get_if<int64_t>(&option->value)) return *whole;
  if (const auto* flag = std::get_if<bool>(&option->value)) return *flag ? 1 : 0;
  if (const auto* real = std::get_if<double>(&option->value)) {
    constexpr double kLimit = 9007199254740992.0;  // 2^53: beyond it a double cannot distinguish integers
    if (std::abs(*real) <= kLimit && *real == std::floor(*real)) return static_cast<int64_t>(*real);
  }
  wrong_kind(name, "integer");
}

bool OpOptions::flag(std::string_view name, bool fallback) const { return number(name, fallback ? 1.0 : 0.0) != 0.0; }

std::string OpOptions::text(std::string_view name, const std::string& fallback) const {
  const OptionValue* option = find(map(), name);
  if (option == nullptr) return fallback;
  if (const auto* text = std::get_if<std::string>(&option->value)) return *text;
  wrong_kind(name, "text");
}

}  // namespace leadline
