// SPDX-License-Identifier: Apache-2.0
#include "cli/tensor_io.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <span>

#include "io/zip_writer.h"
#include "leadline/error.h"

namespace leadline::cli {
namespace {

bool is_sub_byte(DType type) {
  const int bits = dtype_bits(type);
  return bits > 0 && bits < 8;
}

bool is_signed(DType type) { return type == DType::kInt4 || type == DType::kInt2; }

/// The type an array must have in a file: sub-byte integers come one to a byte.
std::optional<std::string> file_descr(DType type) {
  if (is_sub_byte(type)) return is_signed(type) ? "|i1" : "|u1";
  return npy_descr(type);
}

/// The bytes of a string tensor: count, offsets, characters.
std::vector<std::byte> string_buffer(const std::vector<std::string>& strings) {
  size_t size = sizeof(int32_t) * (strings.size() + 2);
  for (const std::string& s : strings) size += s.size();
  if (size > static_cast<size_t>(INT32_MAX))
    throw Error(ErrorCode::kInvalidArgument, "the strings take more than 2 GiB");
  std::vector<std::byte> bytes(size);
  size_t at = 0;
  const auto put = [&](size_t value) {
    const auto number = static_cast<int32_t>(value);
    std::memcpy(bytes.data() + at, &number, sizeof(number));
    at += sizeof(number);
  };
  put(strings.size());
  size_t position = sizeof(int32_t) * (strings.size() + 2);
  for (const std::string& s : strings) {
    put(position);
    position += s.size();
  }
  put(position);
  for (const std::string& s : strings) {
    std::memcpy(bytes.data() + at, s.data(), s.size());
    at += s.size();
  }
  return bytes;
}

/// Packs one value per byte into `bits` each, the first value in the lowest bits.
void pack_bits(std::span<const std::byte> values, int bits, std::span<std::byte> out) {
  std::fill(out.begin(), out.end(), std::byte{0});
  const auto per_byte = static_cast<size_t>(8 / bits);
  const unsigned mask = (1U << static_cast<unsigned>(bits)) - 1U;
  for (size_t i = 0; i < values.size() && i / per_byte < out.size(); ++i) {
    const unsigned shift = static_cast<unsigned>(i % per_byte) * static_cast<unsigned>(bits);
    out[i / per_byte] |= static_cast<std::byte>((std::to_integer<unsigned>(values[i]) & mask) << shift);
  }
}

std::span<std::byte> bytes_of(const TensorMemory& memory) {
  return {memory.data, static_cast<size_t>(std::max<int64_t>(memory.bytes, 0))};
}

template <typename T, typename Make>
void fill(std::span<std::byte> bytes, const Make& make) {
  for (size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    const T value = make();
    std::memcpy(bytes.data() + at, &value, sizeof(T));
  }
}

/// A name for an entry of the archive: nothing in it can be taken for a path outside.
std::string entry_name(const NamedTensor& tensor, size_t position, std::set<std::string>& taken) {
  std::string name = printable(tensor.name);
  if (name.empty() || name.size() > 1000 || name.starts_with('/') || name.find("..") != std::string::npos) {
    name = fmt::format("output_{}", position);
  }
  while (!taken.insert(name).second) name += fmt::format("_{}", position);
  return name;
}

}  // namespace

void check_type(const NamedTensor& input, const TensorInfo& info, const ArrayReader& array) {
  const ArrayType& type = array.header().type;
  if (info.dtype == DType::kString) {
    if (type.kind == 'S' || type.kind == 'U') return;
  } else if (const std::optional<std::string> descr = file_descr(info.dtype)) {
    if (std::string_view(*descr).substr(1) == fmt::format("{}{}", type.kind, type.item_bytes)) return;
  }
  throw Error(ErrorCode::kInvalidArgument,
              fmt::format("input '{}' is {}, the array of {} is {}; convert it before (in Python: array.astype('{}'))",
                          input.name, dtype_name(info.dtype), array.where(), type_name(type),
                          info.dtype == DType::kString ? "S" : file_descr(info.dtype).value_or("?").substr(1)));
}

void load_input(Interpreter& interpreter, int index, ArrayReader& array) {
  const TensorInfo info = interpreter.tensor_info(index);
  if (info.dtype == DType::kString) {
    std::vector<std::string> strings = array.read_strings();
    strings.resize(static_cast<size_t>(array.header().elements));
    return interpreter.set_tensor(index, string_buffer(strings));
  }
  const TensorMemory memory = interpreter.tensor(index);
  if (!is_sub_byte(info.dtype)) return array.read(bytes_of(memory));
  std::vector<std::byte> values(static_cast<size_t>(array.header().bytes));
  array.read(values);
  pack_bits(values, dtype_bits(info.dtype), bytes_of(memory));
}

void fill_random(Interpreter& interpreter, int index, std::mt19937_64& random) {
  const TensorInfo info = interpreter.tensor_info(index);
  if (info.dtype == DType::kString) {
    constexpr std::array<const char*, 8> kWords = {"deep",    "water", "rope",   "sail",
                                                   "harbour", "tide",  "anchor", "mark"};
    std::vector<std::string> strings(static_cast<size_t>(info.shape.elements()));
    for (std::string& s : strings) s = kWords[random() % kWords.size()];
    return interpreter.set_tensor(index, string_buffer(strings));
  }
  const TensorMemory memory = interpreter.tensor(index);
  const std::span<std::byte> bytes = bytes_of(memory);
  const auto real = [&] { return static_cast<double>(random() >> 11U) * 0x1p-52 - 1.0; };
  const auto bit = [&] { return random() >> 63U; };
  const bool quantized = !info.scales.empty();
  switch (info.dtype) {
    case DType::kFloat32:
    case DType::kComplex64:
      return fill<float>(bytes, [&] { return static_cast<float>(real()); });
    case DType::kFloat64:
    case DType::kComplex128:
      return fill<double>(bytes, real);
    case DType::kFloat16:
    case DType::kBFloat16: {
      // A sign, the exponents of [1/4, 1) and a random mantissa.
      const unsigned exponent = info.dtype == DType::kFloat16 ? 13U << 10U : 125U << 7U;
      const unsigned mantissa = info.dtype == DType::kFloat16 ? 0x7FFU : 0xFFU;
      return fill<uint16_t>(bytes, [&] {
        return static_cast<uint16_t>((bit() << 15U) | (exponent + (static_cast<unsigned>(random()) & mantissa)));
      });
    }
    case DType::kInt32:
      if (!quantized) return fill<int32_t>(bytes, [&] { return static_cast<int32_t>(bit()); });
      return fill<int32_t>(bytes, [&] { return static_cast<int32_t>(static_cast<uint32_t>(random())); });
    case DType::kUInt32:
      return fill<uint32_t>(bytes, [&] { return static_cast<uint32_t>(bit()); });
    case DType::kInt64:
    case DType::kUInt64:
      return fill<uint64_t>(bytes, bit);
    case DType::kInt16:
    case DType::kUInt16:
      if (!quantized) return fill<uint16_t>(bytes, [&] { return static_cast<uint16_t>(bit()); });
      return fill<uint16_t>(bytes, [&] { return static_cast<uint16_t>(random()); });
    case DType::kBool:
      return fill<uint8_t>(bytes, [&] { return static_cast<uint8_t>(bit()); });
    case DType::kResource:
    case DType::kVariant:
      throw Error(ErrorCode::kInvalidArgument, fmt::format("input '{}' is a {}: random values cannot be made for it",
                                                           info.name, dtype_name(info.dtype)));
    default:
      return fill<uint8_t>(bytes, [&] { return static_cast<uint8_t>(random()); });
  }
}

std::vector<std::string> tensor_strings(const TensorMemory& memory) {
  const auto size = static_cast<size_t>(std::max<int64_t>(memory.bytes, 0));
  const auto count = static_cast<size_t>(memory.shape.elements());
  const auto number = [&](size_t i) {
    int32_t value = 0;
    std::memcpy(&value, memory.data + i * sizeof(int32_t), sizeof(value));
    return value;
  };
  if (count == 0 || size / sizeof(int32_t) < count + 2 || static_cast<size_t>(number(0)) != count) return {};
  std::vector<std::string> strings;
  for (size_t i = 0; i < count; ++i) {
    const int64_t from = number(1 + i);
    const int64_t to = number(2 + i);
    if (from < 0 || to < from || to > memory.bytes) return {};
    strings.emplace_back(reinterpret_cast<const char*>(memory.data + from), static_cast<size_t>(to - from));
  }
  return strings;
}

std::vector<std::byte> unpack_bits(const TensorMemory& memory) {
  const auto bits = static_cast<unsigned>(dtype_bits(memory.dtype));
  const unsigned per_byte = 8U / bits;
  const unsigned sign = is_signed(memory.dtype) ? 1U << (bits - 1U) : 0U;
  std::vector<std::byte> values(static_cast<size_t>(memory.shape.elements()));
  const std::span<const std::byte> packed = bytes_of(memory);
  for (size_t i = 0; i < values.size() && i / per_byte < packed.size(); ++i) {
    const unsigned shift = static_cast<unsigned>(i % per_byte) * bits;
    const unsigned value = (std::to_integer<unsigned>(packed[i / per_byte]) >> shift) & ((1U << bits) - 1U);
    values[i] = static_cast<std::byte>((value ^ sign) - sign);
  }
  return values;
}

void save_tensors(const std::string& path, const std::vector<NamedTensor>& tensors, const Interpreter& interpreter) {
  const bool single = path.ends_with(".npy");
  if (single && tensors.size() != 1) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("a .npy file holds one array, the model has {} outputs; use a name that ends in .npz",
                            tensors.size()));
  }
  OutputFile file(path);
  ZipWriter zip(file);
  std::set<std::string> taken;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorMemory memory = interpreter.tensor(tensors[i].index);
    std::vector<std::byte> converted;
    std::span<const std::byte> data = bytes_of(memory);
    std::optional<std::string> descr = file_descr(memory.dtype);
    if (memory.dtype == DType::kString) {
      const std::vector<std::string> strings = tensor_strings(memory);
      size_t longest = 1;
      for (const std::string& s : strings) longest = std::max(longest, s.size());
      converted.resize(longest * static_cast<size_t>(memory.shape.elements()));
      for (size_t s = 0; s < strings.size(); ++s) {
        std::memcpy(converted.data() + s * longest, strings[s].data(), strings[s].size());
      }
      descr = fmt::format("|S{}", longest);
      data = converted;
    } else if (is_sub_byte(memory.dtype)) {
      converted = unpack_bits(memory);
      data = converted;
    }
    if (!descr) {
      throw Error(ErrorCode::kUnsupported, fmt::format("output '{}' is a {}, which a numpy file cannot hold",
                                                       tensors[i].name, dtype_name(memory.dtype)));
    }
    const std::string header = npy_header(*descr, memory.shape);
    if (single) {
      file.write(header);
      file.write(data);
    } else {
      zip.add(entry_name(tensors[i], i, taken) + ".npy", header, data);
    }
  }
  if (!single) zip.finish();
  file.finish();
}

}  // namespace leadline::cli
