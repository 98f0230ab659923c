// SPDX-License-Identifier: Apache-2.0
#include "jobs/sample_parts.h"

#include <utility>

#include "core/error.h"

namespace leadline::jobs {

struct SampleParts::Shared {
  SampleSource* source = nullptr;
  const SampleSource* reader = nullptr;  // the part that read last
  int64_t place = 0;                     // of the sample that comes next
};

class SampleParts::Part final : public SampleSource {
 public:
  Part(std::shared_ptr<Shared> shared, int64_t stride, bool last)
      : shared_(std::move(shared)), stride_(stride), last_(last) {}

  bool next(Sample& sample) override {
    if (shared_->reader != this) {
      require(begin_again(), ErrorCode::kInvalidArgument, "samples that are read in two parts can be read only once");
    }
    while (shared_->source->next(sample)) {
      if ((shared_->place++ % stride_ == stride_ - 1) == last_) return true;
    }
    return false;
  }
  std::optional<int64_t> size() const override {
    const std::optional<int64_t> all = shared_->source->size();
    if (!all) return std::nullopt;
    const int64_t held_out = *all / stride_;
    return last_ ? held_out : *all - held_out;
  }
  bool rewind() override { return begin_again(); }
  int64_t peak_bytes() const override { return shared_->source->peak_bytes(); }
  Sample sizes() const override { return shared_->source->sizes(); }

 private:
  bool begin_again() {
    // The very first reading needs no rewinding.
    if ((shared_->reader != nullptr || shared_->place > 0) && !shared_->source->rewind()) return false;
    shared_->reader = this;
    shared_->place = 0;
    return true;
  }

  std::shared_ptr<Shared> shared_;
  int64_t stride_;
  bool last_;
};

SampleParts::SampleParts(SampleSource& source, int64_t stride) : shared_(std::make_shared<Shared>()) {
  shared_->source = &source;
  searched_ = std::make_unique<Part>(shared_, stride, false);
  held_out_ = std::make_unique<Part>(shared_, stride, true);
}

std::optional<int64_t> count_samples(SampleSource& source) {
  if (const auto known = source.size()) return known;
  int64_t count = 0;
  Sample sample;
  while (source.next(sample)) ++count;
  return source.rewind() ? std::optional(count) : std::nullopt;
}

}  // namespace leadline::jobs
