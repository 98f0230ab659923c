// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "core/buffer.h"
#include "core/error.h"
#include "io/npy.h"
#include "jobs/sample_files.h"

namespace leadline::jobs {
namespace {}  // namespace

struct TargetArray::State {
  void open() {
    const size_t colon = where.rfind(".npz:");
    const std::string path = colon == std::string::npos ? where : where.substr(0, colon + 4);
    const std::string name = colon == std::string::npos ? "" : where.substr(colon + 5);
    std::vector<NamedArray> arrays = open_arrays(path);
    const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const NamedArray& candidate) {
      return name.empty() ? arrays.size() == 1 : candidate.name == name;
    });
    if (found == arrays.end()) {
      std::string names;
      for (const NamedArray& candidate : arrays) names += (names.empty() ? "" : ", ") + candidate.name;
      fail(kBadArgument, "{} has {} arrays ({}): say which one holds the labels, as in {}:{}", path, arrays.size(),
           names, path, arrays.empty() ? "labels" : arrays[0].name);
    }
    array = std::move(found->array);
    const ArrayHeader& header = array->header();
    const std::optional<DType> type = array_dtype(header.type);
    require(type.has_value(), kBadArgument, "{}: labels of type {}, expected numbers", array->where(),
            type_name(header.type));
    dtype = *type;
    require(header.shape.rank() >= 1, kBadArgument, "{}: one number, expected one label for each sample",
            array->where());
    rows = header.shape[0];
    shape = Shape(header.shape.dims().subspan(1));
    row_bytes = rows == 0 ? 0 : header.bytes / rows;
    row = 0;
  }

  std::string where;
  std::shared_ptr<Budget> budget;
  std::unique_ptr<ArrayReader> array;
  DType dtype = DType::kInt64;
  Shape shape;  // of one row
  int64_t rows = 0;
  int64_t row_bytes = 0;
  int64_t row = 0;
  Buffer buffer;
};

TargetArray::TargetArray(std::string where, std::shared_ptr<Budget> budget) : state_(std::make_unique<State>()) {
  state_->where = std::move(where);
  state_->budget = std::move(budget);
  state_->open();
}
TargetArray::~TargetArray() = default;

int64_t TargetArray::rows() const { return state_->rows; }
int64_t TargetArray::row_bytes() const { return state_->row_bytes; }
void TargetArray::rewind() { state_->open(); }

SampleTensor TargetArray::next() {
  State& s = *state_;
  require(s.row < s.rows, kBadArgument, "{} has labels for {} samples, and there are more", s.array->where(), s.rows);
  if (s.buffer.bytes() < s.row_bytes) s.buffer = Buffer(s.budget, s.row_bytes, MemoryCategory::kInputsOutputs);
  const std::span<std::byte> bytes(s.buffer.data(), static_cast<size_t>(s.row_bytes));
  s.array->read_next(bytes);
  ++s.row;
  return {"", s.dtype, s.shape, bytes, {}};
}

}  // namespace leadline::jobs
