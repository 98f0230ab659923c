// SPDX-License-Identifier: Apache-2.0
// Decoding happens in read(), straight into the caller's memory; making a source only checks and counts.
#include "import/saved_model/tensor_proto.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "core/error.h"
#include "core/string_tensor.h"

namespace leadline::saved_model {
namespace {

constexpr uint32_t kContentField = 4;
constexpr uint32_t kStringField = 8;

/// The field that lists values of a type one by one.
uint32_t value_field(TfType type) {
  switch (type) {
    case TfType::kFloat:
      return 5;
    case TfType::kDouble:
      return 6;
    case TfType::kString:
      return kStringField;
    case TfType::kComplex64:
      return 9;
    case TfType::kInt64:
      return 10;
    case TfType::kBool:
      return 11;
    case TfType::kComplex128:
      return 12;
    case TfType::kHalf:
    case TfType::kBFloat16:
      return 13;
    case TfType::kUInt32:
      return 16;
    case TfType::kUInt64:
      return 17;
    case TfType::kFloat8E5M2:
    case TfType::kFloat8E4M3FN:
      return 18;
    default:
      return 7;  // all other integers, as int32
  }
}

/// Bytes of one value of a field of fixed size; 0 for those written as varints.
size_t fixed_size(uint32_t field) {
  if (field == 5 || field == 9) return 4;
  return field == 6 || field == 12 ? 8 : 0;
}

class NumberSource final : public ir::ConstantSource {
 public:
  NumberSource(std::shared_ptr<WireFile> file, const TensorProto& tensor, int64_t bytes)
      : file_(std::move(file)), message_(tensor.message), type_(tensor.dtype), bytes_(bytes) {}

  int64_t bytes() const override { return bytes_; }

  void read(std::span<std::byte> out) const override {
    require(static_cast<int64_t>(out.size()) == bytes_, ErrorCode::kInternal, "a constant of {} bytes read into {}",
            bytes_, out.size());
    const auto element = static_cast<size_t>(tf_type_bytes(type_));
    const uint32_t field = value_field(type_);
    size_t written = 0;
    for (WireReader m(*file_, message_, "TensorProto"); m.next();) {
      if (m.field() == kContentField && !m.bytes().empty()) {
        const Bytes content = m.bytes();
        std::memcpy(out.data(), content.data(), std::min(content.size(), out.size()));
        file_->storage().drop_pages(content.data(), static_cast<int64_t>(content.size()));
        return;
      }
      if (m.field() == field) written = append(m, element, out, written);
    }
    // A complex number is two values.
    require(written % element == 0, ErrorCode::kInvalidModel, "{}: a tensor ends with half a complex number",
            file_->name());
    // No values at all mean zeros.
    if (written == 0) std::fill(out.begin(), out.end(), std::byte{0});
    for (; written != 0 && written < out.size(); written += element)
      std::memcpy(out.data() + written, out.data() + written - element, element);
  }

 private:
  /// Writes the values of the current field from `written` on; those beyond the end are left out.
  static size_t append(WireReader& m, size_t element, std::span<std::byte> out, size_t written) {
    const auto copy = [&](const void* data, size_t size) {
      size = std::min(size, out.size() - written);
      if (size != 0) std::memcpy(out.data() + written, data, size);
      written += size;
    };
    if (const size_t size = fixed_size(m.field())) {
      const Bytes values = m.fixed_values(size);
      copy(values.data(), values.size());
    } else if (m.field() == 18) {
      copy(m.bytes().data(), m.bytes().size());
    } else {
      // Little-endian: the low bytes come first.
      m.varints([&](uint64_t value) { copy(&value, element); });
    }
    return written;
  }

  std::shared_ptr<WireFile> file_;
  Bytes message_;
  TfType type_;
  int64_t bytes_;
};

class StringSource final : public ir::ConstantSource {
 public:
  StringSource(std::shared_ptr<WireFile> file, const TensorProto& tensor, int64_t count, const std::string& what)
      : file_(std::move(file)), message_(tensor.message), count_(count) {
    int64_t characters = 0;
    int64_t seen = 0;
    int64_t last = 0;
    for (WireReader m(*file_, message_, "TensorProto"); m.next();) {
      if (m.field() != kStringField || seen == count_) continue;
      last = static_cast<int64_t>(m.text().size());
      characters += last;
      ++seen;
    }
    const auto fits = [&] { return (count_ - seen) <= (std::numeric_limits<int32_t>::max() - characters) / last; };
    require(last == 0 || fits(), ErrorCode::kInvalidModel, "{}: the strings are too large", what);
    const auto bytes = string_tensor_bytes(count_, characters + (count_ - seen) * last);
    require(bytes.has_value(), ErrorCode::kInvalidModel, "{}: the strings are too large", what);
    bytes_ = *bytes;
  }

  int64_t bytes() const override { return bytes_; }

  void read(std::span<std::byte> out) const override {
    require(static_cast<int64_t>(out.size()) == bytes_, ErrorCode::kInternal, "a constant of {} bytes read into {}",
            bytes_, out.size());
    StringTensorWriter writer(out, count_);
    std::string_view last;
    int64_t seen = 0;
    for (WireReader m(*file_, message_, "TensorProto"); m.next();) {
      if (m.field() != kStringField || seen == count_) continue;
      writer.add(last = m.text());
      ++seen;
    }
    for (; seen < count_; ++seen) writer.add(last);
  }

 private:
  std::shared_ptr<WireFile> file_;
  Bytes message_;
  int64_t count_;
  int64_t bytes_ = 0;
};

}  // namespace

int64_t element_count(const TensorShape& shape, const std::string& what) {
  require(!shape.unknown_rank, ErrorCode::kInvalidModel, "{}: the shape is unknown", what);
  int64_t count = 1;
  for (const int64_t dim : shape.dims) {
    require(dim >= 0, ErrorCode::kInvalidModel, "{}: a dimension is unknown", what);
    require(dim == 0 || count <= std::numeric_limits<int64_t>::max() / dim, ErrorCode::kInvalidModel,
            "{}: the shape is too large", what);
    count *= dim;
  }
  return count;
}

int64_t tensor_bytes(TfType type, const TensorShape& shape, const std::string& what) {
  const int64_t count = element_count(shape, what);
  if (type == TfType::kString) return 0;
  const auto dtype = to_dtype(type);
  const int64_t element = tf_type_bytes(type);
  require(dtype && element > 0 && dtype_bits(*dtype) >= 8, ErrorCode::kUnsupported,
          "{}: values of type {} cannot be read", what, tf_type_name(type));
  require(count <= std::numeric_limits<int64_t>::max() / element, ErrorCode::kInvalidModel,
          "{}: the shape is too large", what);
  return count * element;
}

std::shared_ptr<const ir::ConstantSource> make_tensor_source(std::shared_ptr<WireFile> file, const TensorProto& tensor,
                                                             const std::string& what) {
  const int64_t bytes = tensor_bytes(tensor.dtype, tensor.shape, what);
  if (tensor.dtype == TfType::kString)
    return std::make_shared<StringSource>(std::move(file), tensor, element_count(tensor.shape, what), what);
  for (WireReader m(*file, tensor.message, "TensorProto"); m.next();) {
    if (m.field() != kContentField || m.bytes().empty()) continue;
    require(static_cast<int64_t>(m.bytes().size()) == bytes, ErrorCode::kInvalidModel,
            "{}: the values take {} bytes, the shape and type {} need {}", what, m.bytes().size(),
            tf_type_name(tensor.dtype), bytes);
  }
  return std::make_shared<NumberSource>(std::move(file), tensor, bytes);
}

}  // namespace leadline::saved_model
