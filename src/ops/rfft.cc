// SPDX-License-Identifier: Apache-2.0
// RFFT2D: the Fourier transform of the two innermost axes of a real tensor, cut or padded with zeros to the lengths of
// input 1. Computed in double precision, as TFLite does; lengths that are not a power of two, which TFLite refuses, run
// too.
#include <algorithm>

#include "ops/contraction.h"
#include "ops/families.h"
#include "ops/loops/fft.h"
#include "ops/loops/split.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace rfft {
namespace {

constexpr int kInput = 0;
constexpr int kLengths = 1;
constexpr int64_t kComplexBytes = sizeof(Complex);

void infer(InferContext& c) {
  c.require_input_type(kInput, {DType::kFloat32});
  c.require_input_type(kLengths, {DType::kInt32});
  c.require_output_type(0, {DType::kComplex64});
  Shape shape = c.input(kInput).shape;
  const int rank = shape.rank();
  c.require(rank >= 2, "the input has shape {}, expected two axes or more", shape.to_string());
  c.require(c.input(kLengths).shape == Shape{2}, "the lengths have shape {}, expected [2]",
            c.input(kLengths).shape.to_string());
  if (!c.known(kLengths)) return c.defer();
  const auto lengths = c.input(kLengths).values<int32_t>();
  c.require(lengths[0] > 0 && lengths[1] > 0, "the lengths are {} and {}, expected 1 or more", lengths[0], lengths[1]);
  shape.set(rank - 2, lengths[0]);
  shape.set(rank - 1, lengths[1] / 2 + 1);
  c.set_output_shape(0, shape);
}

class Rfft2dKernel final : public Kernel {
 public:
  Rfft2dKernel(PrepareContext& c, int64_t height, int64_t width, int64_t slices)
      : rows_(width), columns_(height), slices_(slices), slots_(std::min<int64_t>(c.threads(), slices)) {
    BlockLayout packed;
    row_table_at_ = packed.take(rows_.table_size() * kComplexBytes);
    column_table_at_ = packed.take(columns_.table_size() * kComplexBytes);
    c.request_packed(packed.size(), fmt::format("rfft2d.{}x{}", height, width));

    BlockLayout slot;
    slice_at_ = slot.take(checked_multiply(c, checked_multiply(c, height, rows_.bins()), kComplexBytes));
    samples_at_ = slot.take(width * static_cast<int64_t>(sizeof(double)));
    column_at_ = slot.take(height * kComplexBytes);
    workspace_at_ = slot.take(std::max(rows_.workspace_size(), columns_.workspace_size()) * kComplexBytes);
    slot_bytes_ = slot.size();
    c.request_scratch(checked_multiply(c, slots_, slot_bytes_));
  }

  void pack(std::byte* packed) override {
    rows_.fill_table(reinterpret_cast<Complex*>(packed + row_table_at_));
    columns_.fill_table(reinterpret_cast<Complex*>(packed + column_table_at_));
  }

  void run(RunContext& c) override {
    const double cost = 128 * static_cast<double>(columns_.length()) * static_cast<double>(rows_.length());
    for_slots(c.pool(), slots_, slices_, cost, [&](int64_t slot, int64_t begin, int64_t end) {
      for (int64_t slice = begin; slice < end; ++slice) transform(c, slice, c.scratch() + slot * slot_bytes_);
    });
  }

 private:
  void transform(const RunContext& c, int64_t slice, std::byte* scratch) const {
    const Shape& shape = c.input(kInput).shape;
    const int64_t in_h = shape[shape.rank() - 2];
    const int64_t in_w = shape[shape.rank() - 1];
    const int64_t height = columns_.length();
    const int64_t width = rows_.length();
    const int64_t bins = rows_.bins();
    auto* spectrum = reinterpret_cast<Complex*>(scratch + slice_at_);
    auto* samples = reinterpret_cast<double*>(scratch + samples_at_);
    auto* column = reinterpret_cast<Complex*>(scratch + column_at_);
    auto* workspace = reinterpret_cast<Complex*>(scratch + workspace_at_);
    const float* input = c.input(kInput).as<float>() + slice * in_h * in_w;

    const int64_t given_h = std::min(in_h, height);
    const int64_t given_w = std::min(in_w, width);
    const auto* row_table = reinterpret_cast<const Complex*>(c.packed() + row_table_at_);
    for_items(width - given_w, 1, [&](int64_t x) { samples[given_w + x] = 0.0; });
    for_items(given_h, 64 * static_cast<double>(width), [&](int64_t y) {
      for_items(given_w, 1, [&](int64_t x) { samples[x] = input[y * in_w + x]; });
      rows_.forward(row_table, samples, spectrum + y * bins, workspace);
    });
    for_items((height - given_h) * bins, 2, [&](int64_t i) { spectrum[given_h * bins + i] = Complex(); });

    auto* output = c.output(0).mutable_as<std::complex<float>>() + slice * height * bins;
    const auto* column_table = reinterpret_cast<const Complex*>(c.packed() + column_table_at_);
    for_items(bins, 64 * static_cast<double>(height), [&](int64_t x) {
      for_items(height, 4, [&](int64_t y) { column[y] = spectrum[y * bins + x]; });
      columns_.forward(column_table, column, workspace);
      for_items(height, 4, [&](int64_t y) { output[y * bins + x] = std::complex<float>(column[y]); });
    });
  }

  RealFft rows_;
  Fft columns_;
  int64_t slices_;
  int64_t slots_;  // parts that run at the same time, each with scratch of its own
  int64_t slot_bytes_ = 0;
  int64_t row_table_at_ = 0, column_table_at_ = 0;                            // packed
  int64_t slice_at_ = 0, samples_at_ = 0, column_at_ = 0, workspace_at_ = 0;  // inside a slot
};

std::unique_ptr<Kernel> prepare(PrepareContext& c) {
  const Shape& output = c.output(0).shape;
  if (output.elements() == 0) return make_kernel([](RunContext&) {});
  const auto lengths = c.input(kLengths).values<int32_t>();
  int64_t slices = 1;
  for (int i = 0; i < output.rank() - 2; ++i) slices *= output[i];
  return std::make_unique<Rfft2dKernel>(c, lengths[0], lengths[1], slices);
}

}  // namespace
}  // namespace rfft

void register_rfft(Registry& registry) {
  using namespace rfft;
  registry.add({.id = op::kRfft2D,
                .max_version = 1,
                .min_inputs = 2,
                .max_inputs = 2,
                .required_inputs = 2,
                .options = builtin_options(105),
                .infer = infer,
                .prepare = prepare,
                .types = "f32"});
}

}  // namespace leadline::ops
