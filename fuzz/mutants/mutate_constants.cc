// SPDX-License-Identifier: Apache-2.0
// Mutations of what constants hold, and of how they are stored.
#include <algorithm>
#include <bit>
#include <cstring>

#include "leadline/types.h"
#include "mutation.h"

namespace leadline::fuzz {
namespace {

TablePtr pick_constant(Subject& subject, Random& random, bool small) {
  constexpr size_t kSmall = 256;
  const TablePtr subgraph = subject.subgraph(random);
  for (int i = 0; i < 8; ++i) {
    const TablePtr tensor = pick_tensor(subgraph, random);
    if (tensor == nullptr) return nullptr;
    const size_t bytes = contents(subject, *tensor).size();
    if (bytes > 0 && (!small || bytes <= kSmall)) return tensor;
  }
  return nullptr;
}

/// One element of the bytes, by the tensor's type.
void set_element(std::string& bytes, int64_t type, Random& random) {
  const bool floating = type == 0 || type == 8 || type == 10 || type == 11;
  const auto width = static_cast<size_t>(std::max(dtype_bits(static_cast<DType>(type)) / 8, 1));
  const size_t size = type == 8 ? 4 : type == 11 ? 8 : std::min<size_t>(width, 8);
  if (bytes.size() < size) return;
  const size_t at = random.below(bytes.size() / size) * size;
  if (floating && size == 4) {
    const float value = odd_float(random);
    std::memcpy(bytes.data() + at, &value, size);
  } else if (floating) {
    const double value = random.once_in(4) ? 1e300 : static_cast<double>(odd_float(random));
    std::memcpy(bytes.data() + at, &value, size);
  } else {
    int64_t now = 0;
    std::memcpy(&now, bytes.data() + at, size);
    const unsigned unused = 64 - 8 * static_cast<unsigned>(size);
    const int64_t value = odd_integer(random, (now << unused) >> unused);
    std::memcpy(bytes.data() + at, &value, size);
  }
}

int64_t type_of(const Table& tensor) {
  const int64_t type = tensor.integer("type");
  return type >= 0 && type < kDTypeCount ? type : 9;
}

/// Axes, paddings, shapes, indices: a few numbers that say much.
bool change_small_constant(Subject& subject, Random& random) {
  const TablePtr tensor = pick_constant(subject, random, true);
  if (tensor == nullptr) return false;
  std::string bytes = contents(subject, *tensor);
  for (size_t i = random.below(2) + 1; i > 0; --i) set_element(bytes, type_of(*tensor), random);
  set_contents(subject, *tensor, std::move(bytes));
  return true;
}

bool change_constant(Subject& subject, Random& random) {
  const TablePtr tensor = pick_constant(subject, random, false);
  if (tensor == nullptr) return false;
  std::string bytes = contents(subject, *tensor);
  const int64_t type = type_of(*tensor);
  switch (random.below(4)) {
    case 0:  // one value everywhere
      set_element(bytes, type, random);
      {
        const auto width = static_cast<size_t>(std::max(dtype_bits(static_cast<DType>(type)) / 8, 1));
        std::string value = bytes.substr(0, width);
        for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = value[i % value.size()];
      }
      break;
    case 1:  // noise
      for (char& byte : bytes) byte = static_cast<char>(random.next());
      break;
    default:
      for (size_t i = 0; i < 1 + bytes.size() / 16 && i < 64; ++i) set_element(bytes, type, random);
  }
  set_contents(subject, *tensor, std::move(bytes));
  return true;
}

bool change_length(Subject& subject, Random& random) {
  const TablePtr tensor = pick_constant(subject, random, false);
  if (tensor == nullptr) return false;
  std::string bytes = contents(subject, *tensor);
  bytes.resize(random.pick<size_t>({0, bytes.size() - 1, bytes.size() / 2, bytes.size() + 1, 2 * bytes.size(), 1}));
  set_contents(subject, *tensor, std::move(bytes));
  return true;
}

/// Number of strings, offsets, text: the format of string tensors inside of a buffer.
bool change_strings(Subject& subject, Random& random) {
  const TablePtr subgraph = subject.subgraph(random);
  const TablePtr tensor = pick_tensor(subgraph, random);
  if (tensor == nullptr || (tensor->integer("type") != 5 && !random.once_in(16))) return false;
  std::string bytes = contents(subject, *tensor);
  if (bytes.size() < 8 || random.once_in(4)) {
    const std::vector<int32_t> header = {2, 16, 17, 20};
    bytes.assign(reinterpret_cast<const char*>(header.data()), 16);
    bytes += "abcd";
  }
  const size_t words = bytes.size() / 4;
  const size_t at = 4 * random.below(std::min<size_t>(words, 8));
  int32_t now = 0;
  std::memcpy(&now, bytes.data() + at, 4);
  const auto value = static_cast<int32_t>(odd_integer(random, now));
  std::memcpy(bytes.data() + at, &value, 4);
  tensor->set("type", 5);
  set_contents(subject, *tensor, std::move(bytes));
  return true;
}

bool share_buffer(Subject& subject, Random& random) {
  const TablePtr to = pick_tensor(subject.subgraph(random), random);
  if (to == nullptr || subject.buffers().empty()) return false;
  if (random.once_in(4)) {
    to->set("buffer", odd_integer(random, to->integer("buffer")));
  } else {
    to->set("buffer", static_cast<int64_t>(random.below(subject.buffers().size())));
  }
  return true;
}

/// The bytes move behind the flatbuffer, as in files beyond 2 GiB.
bool move_behind(Subject& subject, Random& random) {
  const TablePtr tensor = pick_constant(subject, random, false);
  if (tensor == nullptr) return false;
  const TablePtr buffer = new_table("Buffer");
  Tail tail{.bytes = contents(subject, *tensor)};
  if (random.once_in(2)) tail.offset_delta = static_cast<uint64_t>(odd_integer(random, 0));
  if (random.once_in(3)) tail.size_delta = static_cast<uint64_t>(odd_integer(random, 0));
  if (random.once_in(8)) (*buffer)["data"] = tail.bytes;
  buffer->tail = std::move(tail);
  buffer->set("offset", 2);
  buffer->set("size", 0);
  tensor->set("buffer", static_cast<int64_t>(subject.buffers().size()));
  subject.buffers().push_back(buffer);
  return true;
}

bool change_buffer(Subject& subject, Random& random) {
  if (subject.buffers().empty()) return false;
  const TablePtr buffer = random.pick(subject.buffers());
  buffer->tail.reset();
  buffer->set("offset", random.once_in(2) ? odd_integer(random, 4) : static_cast<int64_t>(random.below(512)));
  buffer->set("size", random.once_in(2) ? odd_integer(random, 16) : static_cast<int64_t>(random.below(512)));
  if (random.once_in(2)) buffer->clear("data");
  return true;
}

/// A constant in compressed form: rows of a matrix, with only what is not zero.
bool make_sparse(Subject& subject, Random& random) {
  const TablePtr tensor = pick_constant(subject, random, false);
  if (tensor == nullptr) return false;
  const auto shape = tensor->integers("shape");
  const int64_t bits = dtype_bits(static_cast<DType>(type_of(*tensor)));
  if (shape.empty() || wanted_bytes(*tensor) <= 0 || bits < 8) return false;
  const TablePtr sparsity = new_table("SparsityParameters");
  std::vector<int64_t> order;
  int64_t rows = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    order.push_back(static_cast<int64_t>(i));
    const TablePtr level = new_table("DimensionMetadata");
    level->set("format", i + 1 == shape.size() ? 1 : 0);
    level->set("dense_size", shape[i]);
    if (i + 1 < shape.size()) rows *= shape[i];
    sparsity->tables("dim_metadata").push_back(level);
  }
  const int64_t columns = shape.back();
  std::vector<int64_t> segments = {0};
  std::vector<int64_t> indices;
  for (int64_t r = 0; r < rows && r < 1 << 16; ++r) {
    for (int64_t c = 0; c < columns && indices.size() < 1 << 16; ++c) {
      if (random.once_in(2)) indices.push_back(c);
    }
    segments.push_back(static_cast<int64_t>(indices.size()));
  }
  if (random.once_in(4) && !indices.empty()) indices[random.below(indices.size())] = odd_integer(random, 1);
  if (random.once_in(4)) segments[random.below(segments.size())] = odd_integer(random, 1);
  if (random.once_in(4)) order[random.below(order.size())] = odd_integer(random, 0);
  const TablePtr& last = sparsity->tables("dim_metadata").back();
  const auto add = [&](const char* type_field, const char* field, const std::vector<int64_t>& values) {
    const int64_t member = random.pick<int64_t>({1, 1, 2, 3});
    last->set(type_field, member);
    const TablePtr vector = new_table(member == 1 ? "Int32Vector" : member == 2 ? "Uint16Vector" : "Uint8Vector");
    vector->set_integers("values", values);
    (*last)[field] = vector;
  };
  add("array_segments_type", "array_segments", segments);
  add("array_indices_type", "array_indices", indices);
  sparsity->set_integers("traversal_order", order);
  if (random.once_in(4)) sparsity->set_integers("block_map", {odd_integer(random, 1)});
  const std::string& dense = contents(subject, *tensor);
  std::string bytes(indices.size() * static_cast<size_t>(bits) / 8, '\1');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = dense[i % dense.size()];
  (*tensor)["sparsity"] = sparsity;
  set_contents(subject, *tensor, std::move(bytes));
  return true;
}

}  // namespace

std::vector<Mutation> constant_mutations() {
  return {{"change_small_constant", 16, change_small_constant},
          {"change_constant", 5, change_constant},
          {"change_length", 1, change_length},
          {"change_strings", 4, change_strings},
          {"share_buffer", 2, share_buffer},
          {"move_behind", 2, move_behind},
          {"change_buffer", 2, change_buffer},
          {"make_sparse", 3, make_sparse}};
}

}  // namespace leadline::fuzz
