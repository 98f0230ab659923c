// SPDX-License-Identifier: Apache-2.0
#include "readers/structured.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

namespace leadline::fuzz {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kDeepest = 64;

void collect(Json& value, std::vector<Json*>& all, int depth) {
  all.push_back(&value);
  if (depth > kDeepest) return;
  if (value.is_array() || value.is_object()) {
    for (Json& part : value) collect(part, all, depth + 1);
  }
}

Json odd_value(Random& random) {
  switch (random() % 10) {
    case 0:
      return nullptr;
    case 1:
      return random() % 2 == 0;
    case 2:
      return Json::array();
    case 3:
      return Json::object();
    case 4:
      return "";
    case 5:
      return -static_cast<int64_t>(odd_number(random) & INT64_MAX);
    case 6:
      return 0.5;
    case 7:
      return 1e300;
    default:
      return static_cast<int64_t>(odd_number(random) & INT64_MAX);
  }
}

void change(Json& value, const std::vector<Json*>& all, Random& random) {
  const Json other = *all[random() % all.size()];
  switch (random() % 6) {
    case 0:
      if (other.dump().size() < 2000) value = other;
      return;
    case 1:
      if (value.is_array() && !value.empty()) {
        value.erase(random() % value.size());
      } else if (value.is_object() && !value.empty()) {
        auto it = value.begin();
        std::advance(it, static_cast<std::ptrdiff_t>(random() % value.size()));
        value.erase(it);
      }
      return;
    case 2:
      if (value.is_array()) value.push_back(value.empty() || random() % 2 == 0 ? other : Json(value.back()));
      return;
    default:
      value = value.is_number() && random() % 4 != 0 ? Json(odd_number(random) & INT64_MAX) : odd_value(random);
  }
}

/// A field of a message: its tag, and what follows.
struct Field {
  uint64_t tag = 0;
  uint64_t number = 0;        // of a varint
  std::string bytes;          // of the other types
  std::vector<Field> fields;  // of a text that reads as a message
  bool message = false;
};

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

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

std::optional<std::vector<Field>> parse(std::string_view text, int depth) {
  std::vector<Field> fields;
  while (!text.empty()) {
    const auto tag = take_varint(text);
    if (!tag || *tag >> 3 == 0 || *tag >> 3 > 100) return std::nullopt;
    Field field;
    field.tag = *tag;
    const unsigned type = *tag & 7;
    if (type == 0) {
      const auto number = take_varint(text);
      if (!number) return std::nullopt;
      field.number = *number;
    } else {
      const auto size = type == 2   ? take_varint(text)
                        : type == 5 ? 4
                        : type == 1 ? std::optional<uint64_t>(8)
                                    : std::nullopt;
      if (!size || *size > text.size()) return std::nullopt;
      field.bytes = text.substr(0, *size);
      text.remove_prefix(*size);
      if (type == 2 && depth < kDeepest) {
        if (auto inner = parse(field.bytes, depth + 1)) {
          field.fields = *std::move(inner);
          field.message = true;
        }
      }
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

std::string write(const std::vector<Field>& fields) {
  std::string out;
  for (const Field& field : fields) {
    put_varint(out, field.tag);
    const unsigned type = field.tag & 7;
    if (type == 0) {
      put_varint(out, field.number);
      continue;
    }
    const std::string bytes = field.message ? write(field.fields) : field.bytes;
    if (type == 2) put_varint(out, bytes.size());
    out += bytes;
  }
  return out;
}

/// A list of fields and a place in it.
struct Place {
  std::vector<Field>* fields;
  size_t index;
};

void collect(std::vector<Field>& fields, std::vector<Place>& all) {
  for (size_t i = 0; i < fields.size(); ++i) {
    all.push_back({&fields, i});
    collect(fields[i].fields, all);
  }
}

}  // namespace

uint64_t odd_number(Random& random) {
  constexpr uint64_t kEnds[] = {0, 1, 2, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX, uint64_t{1} << 63U};
  switch (random() % 4) {
    case 0:
      return kEnds[random() % std::size(kEnds)];
    case 1:
      return (uint64_t{1} << random() % 64) + random() % 3 - 1;
    default:
      return random() % 16;
  }
}

bool mutate_json(std::string& text, Random& random) {
  Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded()) return false;
  for (uint64_t left = 1 + random() % 3; left > 0; --left) {
    std::vector<Json*> all;
    collect(document, all, 0);
    change(*all[random() % all.size()], all, random);
  }
  text = document.dump(-1, ' ', false, Json::error_handler_t::replace);
  return true;
}

bool mutate_message(std::string& bytes, Random& random) {
  auto document = parse(bytes, 0);
  if (!document) return false;
  for (uint64_t left = 1 + random() % 3; left > 0; --left) {
    std::vector<Place> all;
    collect(*document, all);
    if (all.empty()) return false;
    const Place place = all[random() % all.size()];
    const Place from = all[random() % all.size()];
    const Field other = (*from.fields)[from.index];
    Field& field = (*place.fields)[place.index];
    switch (random() % 6) {
      case 0:
        place.fields->erase(place.fields->begin() + static_cast<std::ptrdiff_t>(place.index));
        break;
      case 1: {
        const Field copy = field;
        place.fields->push_back(copy);
        break;
      }
      case 2:
        field = other;
        break;
      case 3:  // the contents of another field of the same type
        if ((field.tag & 7) == (other.tag & 7)) {
          const uint64_t tag = field.tag;
          field = other;
          field.tag = tag;
        }
        break;
      default:
        if ((field.tag & 7) == 0) {
          field.number = odd_number(random);
        } else if (!field.message && !field.bytes.empty()) {
          field.bytes[random() % field.bytes.size()] = static_cast<char>(random());
        }
    }
  }
  bytes = write(*document);
  return true;
}

}  // namespace leadline::fuzz
