// SPDX-License-Identifier: Apache-2.0
#include "io/npy.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <set>
#include <utility>

#include "io/utf8.h"
#include "io/zip.h"
#include "leadline/error.h"

namespace leadline {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr int64_t kMaxHeader = 1 << 20;
constexpr int64_t kMaxStringBytes = 256 << 20;
constexpr size_t kMaxArrays = 1024;  // of a file: each has a stream open, whose buffers are larger than small arrays
constexpr size_t kNpyChunk = 64 << 10;

[[noreturn]] void bad_array(const std::string& where, const std::string& problem) {
  throw Error(ErrorCode::kIo, fmt::format("{}: {}", where, problem));
}

/// Reads the Python literal of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
class Literal {
 public:
  Literal(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  bool accept(char c) {
    skip_space();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail();
  }
  std::string_view quoted() {
    skip_space();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) fail();
    const size_t end = text_.find(text_[0], 1);
    if (end == std::string_view::npos) fail();
    const std::string_view result = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return result;
  }
  bool boolean() {
    skip_space();
    for (const std::string_view word : {"True", "False"}) {
      if (!text_.starts_with(word)) continue;
      text_.remove_prefix(word.size());
      return word == "True";
    }
    fail();
  }
  int64_t integer() {
    skip_space();
    int64_t value = 0;
    const auto [end, problem] = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (problem != std::errc() || value < 0) fail();
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    if (text_.starts_with('L')) text_.remove_prefix(1);  // written by Python 2
    return value;
  }
  bool at(char c) {
    skip_space();
    return text_.starts_with(c);
  }
  bool done() {
    skip_space();
    return text_.empty();
  }
  [[noreturn]] void fail() const { bad_array(where_, "the header of the array is damaged"); }

 private:
  void skip_space() {
    const size_t start = text_.find_first_not_of(" \t\r\n");
    text_.remove_prefix(start == std::string_view::npos ? text_.size() : start);
  }

  std::string_view text_;
  const std::string& where_;
};

ArrayType parse_type(std::string_view text, const std::string& where) {
  ArrayType type;
  type.text = text;
  std::string_view rest = text;
  if (!rest.empty() && std::string_view("<>|=").find(rest[0]) != std::string_view::npos) {
    type.order = rest[0] == '=' ? '<' : rest[0];
    rest.remove_prefix(1);
  }
  const bool object = !rest.empty() && rest[0] == 'O';
  if (object)
    bad_array(where, "holds Python objects (pickled), which are never loaded; save an array of a plain dtype");
  if (rest.empty() || std::string_view("biufcSUV").find(rest[0]) == std::string_view::npos) {
    bad_array(where, fmt::format("dtype '{}' is not supported", printable(text)));
  }
  type.kind = rest[0];
  rest.remove_prefix(1);
  const auto [end, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), type.item_bytes);
  if (problem != std::errc() || end != rest.data() + rest.size() || type.item_bytes < 0 ||
      type.item_bytes > kMaxHeader) {
    bad_array(where, fmt::format("dtype '{}' is not supported", printable(text)));
  }
  if (type.kind == 'U') type.item_bytes *= 4;  // numpy counts characters, of 4 bytes each
  if (type.order == '>' && (type.item_bytes > 1 && type.kind != 'S')) {
    bad_array(where, fmt::format("dtype '{}' is big-endian; save it as '<{}'", text, text.substr(1)));
  }
  return type;
}

Shape parse_shape(Literal& literal, const std::string& where) {
  Shape shape;
  literal.expect('(');
  while (!literal.accept(')')) {
    if (shape.rank() == kMaxRank) bad_array(where, fmt::format("the array has more than {} dimensions", kMaxRank));
    shape.push_back(literal.integer());
    if (!literal.accept(',') && !literal.at(')')) literal.fail();
  }
  return shape;
}

/// Walks over the elements in Fortran order and returns the place of each in C order.
class FortranWalk {
 public:
  explicit FortranWalk(const Shape& shape) : shape_(shape) {
    int64_t stride = 1;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      strides_[static_cast<size_t>(axis)] = stride;
      stride *= shape[axis];
    }
  }
  int64_t position() const { return position_; }
  void next() {
    for (int axis = 0; axis < shape_.rank(); ++axis) {
      const auto a = static_cast<size_t>(axis);
      position_ += strides_[a];
      if (++index_[a] < shape_[axis]) return;
      position_ -= strides_[a] * shape_[axis];
      index_[a] = 0;
    }
  }

 private:
  const Shape& shape_;
  std::array<int64_t, kMaxRank> strides_{};
  std::array<int64_t, kMaxRank> index_{};
  int64_t position_ = 0;
};

}  // namespace

ArrayReader::ArrayReader(std::unique_ptr<ByteSource> source, std::string where)
    : source_(std::move(source)), where_(std::move(where)) {
  std::array<std::byte, 8> start;
  const auto* text = reinterpret_cast<const char*>(start.data());
  if (source_->remaining() < static_cast<int64_t>(start.size())) bad_array(where_, "not a .npy array: too short");
  source_->read(start);
  if (std::string_view(text, kMagic.size()) != kMagic) bad_array(where_, "not a .npy array");
  const int version = static_cast<int>(start[6]);
  if (version < 1 || version > 3) bad_array(where_, fmt::format(".npy version {} is not known (1 to 3 are)", version));
  std::array<std::byte, 4> size_bytes{};
  const size_t size_length = version == 1 ? 2 : 4;
  if (source_->remaining() < static_cast<int64_t>(size_length)) bad_array(where_, "the header is cut off");
  source_->read(std::span(size_bytes).first(size_length));
  uint32_t size = 0;
  std::memcpy(&size, size_bytes.data(), sizeof(size));
  if (size > kMaxHeader || size > source_->remaining()) bad_array(where_, "the header of the array is cut off");
  std::string header(size, '\0');
  source_->read(std::as_writable_bytes(std::span(header)));
  parse(header);
}

void ArrayReader::parse(std::string_view text) {
  Literal literal(text, where_);
  std::set<std::string, std::less<>> seen;
  literal.expect('{');
  while (!literal.accept('}')) {
    const std::string key(literal.quoted());
    literal.expect(':');
    if (key == "descr") {
      if (literal.at('[')) bad_array(where_, "structured arrays (records) are not supported");
      header_.type = parse_type(literal.quoted(), where_);
    } else if (key == "fortran_order") {
      header_.fortran_order = literal.boolean();
    } else if (key == "shape") {
      header_.shape = parse_shape(literal, where_);
    } else {
      literal.fail();
    }
    seen.insert(key);
    if (!literal.accept(',') && !literal.at('}')) literal.fail();
  }
  if (seen.size() != 3 || !literal.done()) literal.fail();
  const std::optional<int64_t> elements = header_.shape.checked_elements();
  if (!elements || __builtin_mul_overflow(*elements, header_.type.item_bytes, &header_.bytes)) {
    bad_array(where_, fmt::format("shape {} does not fit into memory", header_.shape.to_string()));
  }
  header_.elements = *elements;
  if (header_.bytes > source_->remaining()) {
    bad_array(where_, fmt::format("the array is cut off: {} bytes of data expected, {} present", header_.bytes,
                                  source_->remaining()));
  }
}

void ArrayReader::read(std::span<std::byte> out) {
  if (static_cast<int64_t>(out.size()) != header_.bytes) {
    throw Error(ErrorCode::kInternal,
                fmt::format("{}: {} bytes for an array of {}", where_, out.size(), header_.bytes));
  }
  if (!header_.fortran_order || header_.shape.rank() <= 1) return source_->read(out);
  const auto item = static_cast<size_t>(header_.type.item_bytes);
  if (item == 0 || out.empty()) return;
  std::vector<std::byte> chunk(std::max<size_t>(1, kNpyChunk / item) * item);
  FortranWalk walk(header_.shape);
  for (size_t done = 0; done < out.size();) {
    const size_t part = std::min(chunk.size(), out.size() - done);
    source_->read(std::span(chunk).first(part));
    for (size_t at = 0; at < part; at += item, walk.next()) {
      std::memcpy(out.data() + static_cast<size_t>(walk.position()) * item, chunk.data() + at, item);
    }
    done += part;
  }
}

void ArrayReader::read_next(std::span<std::byte> out) {
  const auto bytes = static_cast<int64_t>(out.size());
  if (done_ == 0 && bytes == header_.bytes) {
    done_ = bytes;
    return read(out);
  }
  if (header_.fortran_order && header_.shape.rank() > 1) {
    throw Error(
        ErrorCode::kInvalidArgument,
        fmt::format("{} is in Fortran order and cannot be read in parts; save numpy.ascontiguousarray of it", where_));
  }
  if (bytes > header_.bytes - done_) {
    throw Error(ErrorCode::kInvalidArgument, fmt::format("{} ends before {} more bytes", where_, bytes));
  }
  done_ += bytes;
  source_->read(out);
}

std::vector<std::string> ArrayReader::read_strings() {
  // A string takes more memory than one short element of the file, which may be compressed besides.
  if (header_.bytes > kMaxStringBytes || header_.elements > kMaxStringBytes / static_cast<int64_t>(sizeof(std::string)))
    bad_array(where_, "the array of strings is too large");
  std::vector<std::byte> raw(static_cast<size_t>(header_.bytes));
  read(raw);
  const auto item = static_cast<size_t>(header_.type.item_bytes);
  std::vector<std::string> result(static_cast<size_t>(header_.bytes > 0 ? header_.elements : 0));
  for (size_t i = 0; i < result.size(); ++i) {
    const std::byte* at = raw.data() + i * item;
    if (header_.type.kind == 'S') {
      result[i].assign(reinterpret_cast<const char*>(at), item);
      result[i].resize(result[i].find_last_not_of('\0') + 1);
      continue;
    }
    std::vector<uint32_t> characters(item / 4);
    std::memcpy(characters.data(), at, item);
    while (!characters.empty() && characters.back() == 0) characters.pop_back();
    for (const uint32_t c : characters) append_utf8(result[i], c);
  }
  return result;
}

std::vector<NamedArray> open_arrays(const std::string& path) {
  const auto file = std::make_shared<const InputFile>(path);
  std::vector<NamedArray> arrays;
  if (!is_zip(*file)) {
    arrays.push_back({"", std::make_unique<ArrayReader>(file_source(file, 0, file->size()), path)});
    return arrays;
  }
  constexpr std::string_view kSuffix = ".npy";
  std::set<std::string> seen;
  for (const ZipEntry& entry : zip_entries(*file)) {
    if (!entry.name.ends_with(kSuffix)) continue;
    const std::string name = entry.name.substr(0, entry.name.size() - kSuffix.size());
    if (!seen.insert(name).second) bad_array(path, fmt::format("array '{}' is there twice", name));
    if (arrays.size() == kMaxArrays) bad_array(path, fmt::format("more than {} arrays", kMaxArrays));
    arrays.push_back(
        {name, std::make_unique<ArrayReader>(open_entry(file, entry), fmt::format("{}['{}']", path, name))});
  }
  return arrays;
}

std::optional<std::string> npy_descr(DType type) {
  const int bits = dtype_bits(type);
  if (bits < 8) return std::nullopt;
  const std::string_view name = dtype_name(type);
  char kind = 'V';
  if (name.starts_with("float8") || name.starts_with("bfloat")) {
    kind = 'V';
  } else if (name.starts_with("float")) {
    kind = 'f';
  } else if (name.starts_with("int")) {
    kind = 'i';
  } else if (name.starts_with("uint")) {
    kind = 'u';
  } else if (name.starts_with("complex")) {
    kind = 'c';
  } else if (name == "bool") {
    kind = 'b';
  } else {
    return std::nullopt;  // resources
  }
  return fmt::format("{}{}{}", bits == 8 ? '|' : '<', kind, bits / 8);
}

std::optional<DType> array_dtype(const ArrayType& type) {
  if (type.kind == 'V') return std::nullopt;
  const std::string wanted = fmt::format("{}{}", type.kind, type.item_bytes);
  for (int i = 0; i < kDTypeCount; ++i) {
    const std::optional<std::string> descr = npy_descr(static_cast<DType>(i));
    if (descr && std::string_view(*descr).substr(1) == wanted) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::string type_name(const ArrayType& type) {
  if (type.kind == 'S' || type.kind == 'U') return "string";
  const std::optional<DType> dtype = array_dtype(type);
  return dtype ? dtype_name(*dtype) : fmt::format("'{}'", printable(type.text));
}

std::string npy_header(std::string_view descr, const Shape& shape) {
  std::string dims;
  for (const int64_t size : shape) dims += fmt::format("{}, ", size);
  if (shape.rank() > 1) dims.resize(dims.size() - 2);
  if (shape.rank() == 1) dims.resize(dims.size() - 1);
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, dims);
  const size_t start = kMagic.size() + 4;
  text.append(63 - (start + text.size()) % 64, ' ');  // data start at a multiple of 64
  text += '\n';
  std::string header(kMagic);
  header += '\x01';
  header += '\0';
  header += static_cast<char>(text.size() & 0xFFU);
  header += static_cast<char>(text.size() >> 8U);
  return header + text;
}

}  // namespace leadline
