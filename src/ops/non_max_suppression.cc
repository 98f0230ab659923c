// SPDX-License-Identifier: Apache-2.0
// NON_MAX_SUPPRESSION_V4 and V5: the best boxes of one class that do not overlap much. V5 (sigma given) lowers the
// scores of overlapping boxes instead of dropping them at once, and returns the scores. The selected boxes come first
// in the outputs, which have room for max_output_size; zeros follow.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/common.h"
#include "ops/families.h"
#include "ops/movement.h"

namespace leadline::ops {
namespace non_max_suppression {
namespace {

enum Input { kBoxes = 0, kScores = 1, kMaxOutput = 2, kIouThreshold = 3, kScoreThreshold = 4, kSigma = 5 };

bool soft(const OpContext& c) { return c.input_count() > kSigma; }

void require_scalar(const InferContext& c, int i, DType type) {
  c.require_input_type(i, {type});
  c.require(c.input(i).shape.rank() == 0, "input {} '{}' has shape {}, expected a scalar", i, c.input(i).value->name,
            c.input(i).shape.to_string());
}

void infer(InferContext& c) {
  const Shape& boxes = c.input(kBoxes).shape;
  const Shape& scores = c.input(kScores).shape;
  c.require_input_type(kBoxes, {DType::kFloat32});
  c.require_input_type(kScores, {DType::kFloat32});
  c.require(boxes.rank() == 2 && boxes[1] == 4, "the boxes have shape {}, expected [count, 4]", boxes.to_string());
  c.require(scores.rank() == 1 && scores[0] == boxes[0], "the scores have shape {}, expected [{}]", scores.to_string(),
            boxes[0]);
  c.require(boxes[0] <= std::numeric_limits<int32_t>::max(), "{} boxes are too many", boxes[0]);
  require_scalar(c, kMaxOutput, DType::kInt32);
  for (int i = kIouThreshold; i < c.input_count(); ++i) require_scalar(c, i, DType::kFloat32);
  const int outputs = soft(c) ? 3 : 2;
  c.require(c.output_count() == outputs, "{} outputs with {} inputs, expected {}", c.output_count(), c.input_count(),
            outputs);
  c.require_output_type(0, {DType::kInt32});
  if (soft(c)) c.require_output_type(1, {DType::kFloat32});
  c.require_output_type(outputs - 1, {DType::kInt32});
  if (!c.known(kMaxOutput)) return c.defer();
  const int64_t room = known_ints(c, kMaxOutput)[0];
  c.require(room >= 0, "max_output_size is {}, expected 0 or more", room);
  c.set_output_shape(0, {room});
  if (soft(c)) c.set_output_shape(1, {room});
  c.set_output_shape(outputs - 1, {});
}

struct Candidate {
  int32_t box;
  float score;
  int32_t compared;  // selected boxes before this one have lowered the score already
};

bool worse(const Candidate& a, const Candidate& b) { return a.score < b.score; }

struct Box {
  float top, left, bottom, right;
  Box(const float* boxes, int64_t i)
      : top(std::min(boxes[4 * i], boxes[4 * i + 2])),
        left(std::min(boxes[4 * i + 1], boxes[4 * i + 3])),
        bottom(std::max(boxes[4 * i], boxes[4 * i + 2])),
        right(std::max(boxes[4 * i + 1], boxes[4 * i + 3])) {}
  float area() const { return (bottom - top) * (right - left); }
};

/// Intersection over union; boxes without area overlap nothing.
float overlap(const Box& a, const Box& b) {
  if (a.area() <= 0 || b.area() <= 0) return 0.0F;
  const float height = std::max(std::min(a.bottom, b.bottom) - std::max(a.top, b.top), 0.0F);
  const float width = std::max(std::min(a.right, b.right) - std::max(a.left, b.left), 0.0F);
  const float common = height * width;
  return common / (a.area() + b.area() - common);
}

class Suppression {
 public:
  explicit Suppression(const RunContext& c)
      : boxes_(c.input(kBoxes).as<float>()),
        iou_threshold_(c.input(kIouThreshold).as<float>()[0]),
        score_threshold_(c.input(kScoreThreshold).as<float>()[0]),
        sigma_(c.has_input(kSigma) ? c.input(kSigma).as<float>()[0] : 0.0F),
        heap_(c.scratch_as<Candidate>()),
        selected_(c.output(0).mutable_as<int32_t>()),
        scores_(c.has_input(kSigma) ? c.output(1).mutable_as<float>() : nullptr),
        room_(c.output(0).elements()) {
    c.require(!(sigma_ < 0), "sigma is {}, expected 0 or more", sigma_);
    if (sigma_ > 0) factor_ = static_cast<float>(-0.5 / static_cast<double>(sigma_));
    const auto* scores = c.input(kScores).as<float>();
    for_items(c.input(kScores).elements(), 16, [&](int64_t i) {
      if (scores[i] > score_threshold_) push({static_cast<int32_t>(i), scores[i], 0});
    });
  }

  /// Fills the outputs and returns the number of selected boxes.
  int32_t run() {
    int32_t count = 0;
    const int64_t limit = std::min(size_, room_);
    repeat_while(64 + kOverlapCost * static_cast<double>(limit), [&] {
      if (count == limit || size_ == 0) return false;
      Candidate next = pop();
      const float before = next.score;
      if (!lower_score(next, count)) return true;
      next.compared = count;
      if (next.score == before) {
        selected_[count] = next.box;
        if (scores_ != nullptr) scores_[count] = next.score;
        ++count;
      }
      // A selected box comes back too and then overlaps itself; one without area is selected again, as in TFLite.
      if (next.score > score_threshold_) push(next);
      return true;
    });
    for_items(room_ - count, 1, [&](int64_t i) { selected_[count + i] = 0; });
    if (scores_ != nullptr) for_items(room_ - count, 1, [&](int64_t i) { scores_[count + i] = 0.0F; });
    return count;
  }

 private:
  /// Compares with the boxes selected since the last time, latest first. False when one overlaps too much.
  bool lower_score(Candidate& candidate, int32_t count) {
    const Box box(boxes_, candidate.box);
    bool passes = true;
    for_items(count - candidate.compared, kOverlapCost, [&](int64_t k) {
      const float iou = overlap(box, Box(boxes_, selected_[count - 1 - k]));
      passes = !(iou >= iou_threshold_);
      if (passes && sigma_ > 0) candidate.score *= std::exp(factor_ * iou * iou);
      return passes && !(candidate.score <= score_threshold_);
    });
    return passes;
  }

  static constexpr double kOverlapCost = 16;

  // A heap whose order among equal scores is that of the standard library's, which TFLite uses.
  void push(const Candidate& candidate) {
    heap_[size_++] = candidate;
    std::push_heap(heap_, heap_ + size_, worse);
  }
  Candidate pop() {
    std::pop_heap(heap_, heap_ + size_, worse);
    return heap_[--size_];
  }

  const float* boxes_;
  float iou_threshold_;
  float score_threshold_;
  float sigma_;
  float factor_ = 0;
  Candidate* heap_;
  int64_t size_ = 0;
  int32_t* selected_;
  float* scores_;
  int64_t room_;
};

std::unique_ptr<Kernel> prepare(PrepareContext& c) {
  c.request_scratch(c.input(kBoxes).shape[0] * static_cast<int64_t>(sizeof(Candidate)));
  return make_kernel([](RunContext& run) {
    Suppression suppression(run);
    *run.output(run.output_count() - 1).mutable_as<int32_t>() = suppression.run();
  });
}

void add(Registry& registry, const ir::OpId& id, OptionsTable options, int inputs) {
  registry.add({.id = id,
                .min_inputs = inputs,
                .max_inputs = inputs,
                .required_inputs = inputs,
                .min_outputs = inputs - 3,
                .max_outputs = inputs - 3,
                .options = options,
                .infer = infer,
                .prepare = prepare,
                .types = "f32"});
}

}  // namespace
}  // namespace non_max_suppression

void register_non_max_suppression(Registry& registry) {
  using namespace non_max_suppression;
  add(registry, op::kNonMaxSuppressionV4, builtin_options(95), 5);
  add(registry, op::kNonMaxSuppressionV5, builtin_options(96), 6);
}

}  // namespace leadline::ops
