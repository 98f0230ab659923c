// SPDX-License-Identifier: Apache-2.0
// Flex ops on texts: StringJoin, StringLower, StringUpper, StringStrip, Substr, StringLength, StringSplitV2, AsString,
// StringToNumber, StringToHashBucketFast. Texts are sized when the inputs are known.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>

#include "ops/flex/families.h"
#include "ops/flex/farm_hash.h"
#include "ops/flex/flex.h"

namespace leadline::ops {
namespace {

/// Inputs as ops see them while they are planned and while they run.
using Texts = std::function<StringTensorReader(int)>;
/// Calls back with each text of output 0, in order.
using Emit = std::function<void(const std::function<void(std::string_view)>&)>;

/// Sizes output 0 by what `emit` makes.
void size_texts(InferContext& c, const Shape& shape, const Emit& emit) {
  int64_t count = 0;
  int64_t characters = 0;
  emit([&](std::string_view text) {
    ++count;
    characters = checked_add(c, characters, static_cast<int64_t>(text.size()));
  });
  c.require(count == shape.elements(), "it makes {} texts for shape {}", count, shape.to_string());
  c.set_output_shape(0, shape);
  set_string_bytes(c, 0, count, characters);
}

void write_texts(const RunContext& run, const Emit& emit) {
  const TensorView& out = run.output(0);
  StringTensorWriter writer({out.data, static_cast<size_t>(out.bytes)}, out.elements());
  emit([&](std::string_view text) { writer.add(text); });
}

// StringJoin(N texts), attribute separator: single texts are repeated

Emit joined(const Texts& texts, int count, std::string separator, int64_t size) {
  return [=](const auto& use) {
    std::vector<StringTensorReader> inputs;
    for (int i = 0; i < count; ++i) inputs.push_back(texts(i));
    std::string text;
    for_items(size, 64 * static_cast<double>(count), [&](int64_t k) {
      text.clear();
      for (int i = 0; i < count; ++i) {
        if (i > 0) text += separator;
        const StringTensorReader& from = inputs[static_cast<size_t>(i)];
        text += from[from.size() == 1 ? 0 : k];
      }
      use(text);
    });
  };
}

/// The shape of the texts is known before their lengths are.
void defer_bytes(InferContext& c, const Shape& shape) {
  c.set_output_shape(0, shape);
  c.defer();
}

void infer_join(InferContext& c) {
  const std::string separator(node_def(c).text("separator", ""));
  Shape shape;
  for (int i = 0; i < c.input_count(); ++i) {
    c.require_input_type(i, {DType::kString});
    if (c.input(i).shape.rank() > 0) shape = c.input(i).shape;
  }
  for (int i = 0; i < c.input_count(); ++i) {
    c.require(c.input(i).shape.rank() == 0 || c.input(i).shape == shape, "input {} has shape {}, expected {} or []", i,
              c.input(i).shape.to_string(), shape.to_string());
  }
  c.require_output_type(0, {DType::kString});
  if (!all_known(c)) return defer_bytes(c, shape);
  size_texts(c, shape,
             joined([&](int i) { return known_strings(c, i); }, c.input_count(), separator, shape.elements()));
}

std::unique_ptr<Kernel> prepare_join(PrepareContext& c) {
  const std::string separator(node_def(c).text("separator", ""));
  return make_kernel([separator](RunContext& run) {
    write_texts(run, joined([&](int i) { return run_strings(run, run.input(i)); }, run.input_count(), separator,
                            run.output(0).elements()));
  });
}

// StringLower, StringUpper, StringStrip: a text for each text. Letters beyond ASCII change only where the encoding says
// so, which is refused.

using Change = std::string (*)(std::string_view);

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}
std::string upper(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return result;
}
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
std::string strip(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return std::string(text);
}

Emit changed(const Texts& texts, Change change) {
  return [=](const auto& use) {
    const StringTensorReader from = texts(0);
    for_items(from.size(), 64, [&](int64_t i) { use(change(from[i])); });
  };
}

template <Change kChange>
void infer_change(InferContext& c) {
  const std::string_view encoding = node_def(c).text("encoding", "");
  if (!encoding.empty()) c.fail(ErrorCode::kUnsupported, "its encoding is '{}', expected none (bytes)", encoding);
  c.require_input_type(0, {DType::kString});
  c.require_output_type(0, {DType::kString});
  if (!all_known(c)) return defer_bytes(c, c.input(0).shape);
  size_texts(c, c.input(0).shape, changed([&](int i) { return known_strings(c, i); }, kChange));
}

template <Change kChange>
std::unique_ptr<Kernel> prepare_change(PrepareContext&) {
  return make_kernel([](RunContext& run) {
    write_texts(run, changed([&](int i) { return run_strings(run, run.input(i)); }, kChange));
  });
}

// AsString(input), attributes precision, scientific, shortest, width, fill

struct NumberFormat {
  int precision = -1;
  bool scientific = false;
  bool shortest = false;
  int width = -1;
  char fill = ' ';
  explicit NumberFormat(const OpContext& c)
      : precision(static_cast<int>(std::clamp<int64_t>(node_def(c).integer("precision", -1), -1, 512))),
        scientific(node_def(c).flag("scientific", false)),
        shortest(node_def(c).flag("shortest", false)),
        width(static_cast<int>(std::clamp<int64_t>(node_def(c).integer("width", -1), -1, 512))) {
    const std::string_view given = node_def(c).text("fill", "");
    if (!given.empty()) fill = given[0];
  }
};

template <typename T>
std::string format_number(T value, const NumberFormat& format) {
  std::string text;
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_integral_v<T>) {
    text = std::to_string(value);
  } else {
    const int precision = format.precision < 0 ? 6 : format.precision;
    if (format.scientific)
      text = fmt::format("{:.{}e}", value, precision);
    else if (format.shortest)
      text = format.precision < 0 ? fmt::format("{:g}", value) : fmt::format("{:.{}g}", value, precision);
    else
      text = fmt::format("{:.{}f}", value, precision);
  }
  const auto width = static_cast<size_t>(std::max(format.width, 0));
  if (text.size() >= width) return text;
  if (format.fill == '-') return text + std::string(width - text.size(), ' ');
  // Zeros stand after the sign.
  const size_t at = format.fill == '0' && text.starts_with('-') ? 1 : 0;
  return text.insert(at, width - text.size(), format.fill);
}

template <typename T>
Emit formatted(const T* values, int64_t count, const NumberFormat& format) {
  return [=](const auto& use) { for_items(count, 200, [&](int64_t i) { use(format_number(values[i], format)); }); };
}

void infer_as_string(InferContext& c) {
  node_def(c);
  c.require_output_type(0, {DType::kString});
  if (!all_known(c)) return c.defer();
  visit_numeric(c, c.input(0).dtype(), [&](auto type) {
    using T = decltype(type);
    size_texts(c, c.input(0).shape,
               formatted(c.input(0).values<T>().data(), c.input(0).shape.elements(), NumberFormat(c)));
  });
}

std::unique_ptr<Kernel> prepare_as_string(PrepareContext& c) {
  const NumberFormat format(c);
  return visit_numeric(c, c.input(0).dtype(), [format](auto type) {
    using T = decltype(type);
    return make_kernel([format](RunContext& run) {
      write_texts(run, formatted(run.input(0).as<T>(), run.input(0).elements(), format));
    });
  });
}

// StringLength, StringToNumber, StringToHashBucketFast: a number for each text

void infer_numbers(InferContext& c, std::initializer_list<DType> types) {
  node_def(c);
  c.require_input_type(0, {DType::kString});
  c.require_output_type(0, types);
  c.set_output_shape(0, c.input(0).shape);
}

void infer_length(InferContext& c) { infer_numbers(c, {DType::kInt32}); }

std::unique_ptr<Kernel> prepare_length(PrepareContext& c) {
  const bool characters = node_def(c).text("unit", "BYTE") == "UTF8_CHAR";
  return make_kernel([characters](RunContext& run) {
    const StringTensorReader texts = run_strings(run, run.input(0));
    for_items(texts.size(), 64, [&](int64_t i) {
      const std::string_view text = texts[i];
      // A character of UTF-8 has one byte that does not continue another.
      const auto count =
          characters ? std::count_if(text.begin(), text.end(),
                                     [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; })
                     : static_cast<std::ptrdiff_t>(text.size());
      run.output(0).mutable_as<int32_t>()[i] = static_cast<int32_t>(count);
    });
  });
}

void infer_to_number(InferContext& c) {
  infer_numbers(c, {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64});
}

std::unique_ptr<Kernel> prepare_to_number(PrepareContext& c) {
  return visit_numeric(c, c.output(0).dtype(), [](auto type) -> std::unique_ptr<Kernel> {
    using T = decltype(type);
    if constexpr (std::is_same_v<T, bool>)
      return nullptr;  // infer refuses it
    else
      return make_kernel([](RunContext& run) {
        const StringTensorReader texts = run_strings(run, run.input(0));
        for_items(texts.size(), 100, [&](int64_t i) {
          std::string text = strip(texts[i]);
          if (text.starts_with('+')) text.erase(0, 1);
          T value{};
          const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
          run.require(error == std::errc() && end == text.data() + text.size() && !text.empty(),
                      "text {} is not a number of type {}", i, dtype_name(run.output(0).dtype));
          run.output(0).mutable_as<T>()[i] = value;
        });
      });
  });
}

void infer_hash(InferContext& c) {
  c.require(node_def(c).integer("num_buckets", 0) > 0, "it has {} buckets, expected more than none",
            node_def(c).integer("num_buckets", 0));
  infer_numbers(c, {DType::kInt64});
}

std::unique_ptr<Kernel> prepare_hash(PrepareContext& c) {
  const auto buckets = static_cast<uint64_t>(node_def(c).integer("num_buckets", 1));
  return make_kernel([buckets](RunContext& run) {
    const StringTensorReader texts = run_strings(run, run.input(0));
    for_items(texts.size(), 64, [&](int64_t i) {
      run.output(0).mutable_as<int64_t>()[i] = static_cast<int64_t>(farm_hash_64(texts[i]) % buckets);
    });
  });
}

// Substr(input, pos, len), in bytes

Emit parts(const StringTensorReader& texts, const std::function<int64_t(int, int64_t)>& number, int64_t single) {
  return [=](const auto& use) {
    for_items(texts.size(), 64, [&](int64_t i) {
      const std::string_view text = texts[i];
      const int64_t at = number(1, single == 1 ? 0 : i);
      const auto size = static_cast<int64_t>(text.size());
      const int64_t begin = at < 0 ? at + size : at;
      const int64_t length = number(2, single == 1 ? 0 : i);
      if (begin < 0 || begin > size || length < 0) return use({});
      use(text.substr(static_cast<size_t>(begin), static_cast<size_t>(length)));
    });
  };
}

void infer_substr(InferContext& c) {
  c.require_input_type(0, {DType::kString});
  c.require_output_type(0, {DType::kString});
  if (node_def(c).text("unit", "BYTE") != "BYTE") c.fail(ErrorCode::kUnsupported, "its unit is not BYTE");
  for (int i = 1; i < 3; ++i) {
    require_indices(c, i);
    c.require(c.input(i).shape.elements() == 1 || c.input(i).shape == c.input(0).shape,
              "input {} has shape {}, expected {} or one number", i, c.input(i).shape.to_string(),
              c.input(0).shape.to_string());
  }
  c.require(c.input(1).shape == c.input(2).shape, "places and lengths have different shapes");
  if (!all_known(c)) return defer_bytes(c, c.input(0).shape);
  const auto number = [&](int input, int64_t i) { return load_index(c.input(input).data, c.input(input).dtype(), i); };
  const StringTensorReader texts = known_strings(c, 0);
  for (int64_t i = 0; i < texts.size(); ++i) {
    const int64_t at = number(1, c.input(1).shape.elements() == 1 ? 0 : i);
    const auto size = static_cast<int64_t>(texts[i].size());
    c.require(at >= -size && at <= size, "place {} is outside a text of {} bytes", at, size);
  }
  size_texts(c, c.input(0).shape, parts(texts, number, c.input(1).shape.elements()));
}

std::unique_ptr<Kernel> prepare_substr(PrepareContext&) {
  return make_kernel([](RunContext& run) {
    const auto number = [&](int input, int64_t i) { return index_at(run.input(input), i); };
    write_texts(run, parts(run_strings(run, run.input(0)), number, run.input(1).elements()));
  });
}

// StringSplitV2(input, sep) -> indices, values, shape

/// Calls use(text, place, part); without a separator, at stretches of white space.
template <typename Use>
void for_parts(const StringTensorReader& texts, std::string_view separator, int64_t most, const Use& use) {
  for_items(texts.size(), 200, [&](int64_t i) {
    std::string_view rest = texts[i];
    int64_t place = 0;
    if (separator.empty()) {
      while (true) {
        while (!rest.empty() && is_space(rest.front())) rest.remove_prefix(1);
        if (rest.empty()) return;
        size_t size = 0;
        while (size < rest.size() && !is_space(rest[size])) ++size;
        if (most >= 0 && place == most) size = rest.size();
        use(i, place++, rest.substr(0, size));
        rest.remove_prefix(size);
      }
    }
    while (true) {
      const size_t at = most >= 0 && place == most ? std::string_view::npos : rest.find(separator);
      use(i, place++, rest.substr(0, at));
      if (at == std::string_view::npos) return;
      rest.remove_prefix(at + separator.size());
    }
  });
}

void infer_split(InferContext& c) {
  const int64_t most = node_def(c).integer("maxsplit", -1);
  c.require_input_type(0, {DType::kString});
  c.require_input_type(1, {DType::kString});
  require_elements(c, 1, 1);
  c.require(c.input(0).shape.rank() == 1, "the input has shape {}, expected a vector", c.input(0).shape.to_string());
  c.require_output_type(0, {DType::kInt64});
  c.require_output_type(1, {DType::kString});
  c.require_output_type(2, {DType::kInt64});
  if (!all_known(c)) return c.defer();
  int64_t count = 0;
  int64_t characters = 0;
  for_parts(known_strings(c, 0), known_strings(c, 1)[0], most, [&](int64_t, int64_t, std::string_view part) {
    ++count;
    characters += static_cast<int64_t>(part.size());
  });
  c.set_output_shape(0, {count, 2});
  c.set_output_shape(1, {count});
  set_string_bytes(c, 1, count, characters);
  c.set_output_shape(2, {2});
}

std::unique_ptr<Kernel> prepare_split(PrepareContext& c) {
  const int64_t most = node_def(c).integer("maxsplit", -1);
  return make_kernel([most](RunContext& run) {
    const TensorView& values = run.output(1);
    StringTensorWriter writer({values.data, static_cast<size_t>(values.bytes)}, values.elements());
    int64_t count = 0;
    int64_t longest = 0;
    for_parts(run_strings(run, run.input(0)), run_strings(run, run.input(1))[0], most,
              [&](int64_t text, int64_t place, std::string_view part) {
                if (count == values.elements()) return;
                writer.add(part);
                run.output(0).mutable_as<int64_t>()[2 * count] = text;
                run.output(0).mutable_as<int64_t>()[2 * count + 1] = place;
                longest = std::max(longest, place + 1);
                ++count;
              });
    run.output(2).mutable_as<int64_t>()[0] = run.input(0).elements();
    run.output(2).mutable_as<int64_t>()[1] = longest;
  });
}

}  // namespace

void register_flex_strings(Registry& registry) {
  const auto add = [&](std::string_view name, int inputs, int outputs, Infer infer, Prepare prepare,
                       std::string_view types) {
    registry.add(flex_row(name, inputs, outputs, infer, prepare, types));
  };
  add("FlexStringJoin", -1, 1, infer_join, prepare_join, "string");
  add("FlexStringLower", 1, 1, infer_change<lower>, prepare_change<lower>, "string");
  add("FlexStringUpper", 1, 1, infer_change<upper>, prepare_change<upper>, "string");
  add("FlexStringStrip", 1, 1, infer_change<strip>, prepare_change<strip>, "string");
  add("FlexAsString", 1, 1, infer_as_string, prepare_as_string, "real numbers, bool");
  add("FlexStringLength", 1, 1, infer_length, prepare_length, "string");
  add("FlexStringToNumber", 1, 1, infer_to_number, prepare_to_number, "string to f32 f64 i32 i64");
  add("FlexStringToHashBucketFast", 1, 1, infer_hash, prepare_hash, "string to i64");
  add("FlexSubstr", 3, 1, infer_substr, prepare_substr, "string");
  add("FlexStringSplitV2", 2, 3, infer_split, prepare_split, "string");
}

}  // namespace leadline::ops
