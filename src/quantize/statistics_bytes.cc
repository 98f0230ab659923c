// SPDX-License-Identifier: Apache-2.0
// Layout, all numbers little-endian or varints (7 bits a byte, lowest first):
//   "LLCALIB2", fingerprint (8 bytes), histograms (1 byte), Gram matrices (1 byte), samples, tensors,
//   per tensor: subgraph, tensor, length of the name, name, finite values, others, and if there are finite values:
//     minimum, maximum (float32), recent ranges, their minima and maxima (float32),
//     with histograms: first bin, bins, their counts, as bins are stored; the width follows from the range
//   with Gram matrices their number, and per matrix: subgraph, node, groups, columns, whether a sample reached it (1
//   byte),
//     and if so its sums (16 bytes each)
//   FNV-1a of all before (8 bytes)
#include "quantize/statistics_bytes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>

#include "core/cancel.h"
#include "core/error.h"

namespace leadline::quantize {
namespace {

constexpr std::string_view kMagic = "LLCALIB2";
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

class Fnv {
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte b : bytes) state_ = (state_ ^ static_cast<uint64_t>(b)) * 0x100000001B3U;
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text))); }
  void add(int64_t number) { add(std::as_bytes(std::span(&number, 1))); }
  uint64_t value() const { return state_; }

 private:
  uint64_t state_ = 0xCBF29CE484222325U;
};

uint32_t largest_magnitude(const Range& range) {
  return std::bit_cast<uint32_t>(std::max(std::fabs(range.min), std::fabs(range.max)));
}

class Writer {
 public:
  void raw(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void text(std::string_view text) { raw(std::as_bytes(std::span(text))); }
  void fixed(uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_.push_back(static_cast<std::byte>(value >> (8 * i) & 0xFFU));
  }
  void number(int64_t value) {
    auto left = static_cast<uint64_t>(value);
    for (; left >= 0x80U; left >>= 7) bytes_.push_back(static_cast<std::byte>((left & 0x7FU) | 0x80U));
    bytes_.push_back(static_cast<std::byte>(left));
  }
  void range(const Range& range) {
    fixed(std::bit_cast<uint32_t>(range.min), 4);
    fixed(std::bit_cast<uint32_t>(range.max), 4);
  }
  void histogram(const Histogram& histogram) {
    const auto counts = histogram.counts();
    const auto filled = [](int64_t count) { return count != 0; };
    const auto begin = std::find_if(counts.begin(), counts.end(), filled);
    const auto end = std::find_if(counts.rbegin(), counts.rend(), filled).base();
    number(begin - counts.begin());
    number(end - begin);
    std::for_each(begin, end, [this](int64_t count) { number(count); });
  }
  void gram(const GramMatrix& gram) {
    number(gram.subgraph);
    number(gram.node);
    number(gram.groups);
    number(gram.columns);
    const bool reached = std::any_of(gram.sums.begin(), gram.sums.end(), [](GramMatrix::Sum sum) { return sum != 0; });
    fixed(reached ? 1 : 0, 1);
    if (!reached) return;
    for (const GramMatrix::Sum sum : gram.sums) {
      fixed(static_cast<uint64_t>(sum), 8);
      fixed(static_cast<uint64_t>(sum >> 64), 8);
    }
  }
  std::vector<std::byte> finish() {
    Fnv sum;
    sum.add(bytes_);
    fixed(sum.value(), 8);
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : left_(bytes) {}

  static void check(bool ok) {
    require(ok, ErrorCode::kInvalidArgument,
            "these bytes are not a calibration of this version of Leadline, or are damaged");
  }
  std::span<const std::byte> raw(int64_t size) {
    check(size >= 0 && size <= static_cast<int64_t>(left_.size()));
    const auto result = left_.first(static_cast<size_t>(size));
    left_ = left_.subspan(static_cast<size_t>(size));
    return result;
  }
  uint64_t fixed(int size) {
    uint64_t value = 0;
    int shift = 0;
    for (const std::byte b : raw(size)) {
      value |= static_cast<uint64_t>(b) << shift;
      shift += 8;
    }
    return value;
  }
  /// From 0 to `most`, in its shortest form.
  int64_t number(int64_t most) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      check(shift < 63);
      const auto b = static_cast<uint64_t>(raw(1)[0]);
      value |= (b & 0x7FU) << shift;
      if (b < 0x80U) {
        check(b != 0 || shift == 0);
        break;
      }
    }
    check(value <= static_cast<uint64_t>(most));
    return static_cast<int64_t>(value);
  }
  Range range() {
    const auto end = [this] { return std::bit_cast<float>(static_cast<uint32_t>(fixed(4))); };
    Range result;
    result.min = end();
    result.max = end();
    check(std::isfinite(result.min) && std::isfinite(result.max) && result.min <= result.max);
    return result;
  }
  int64_t left() const { return static_cast<int64_t>(left_.size()); }

 private:
  std::span<const std::byte> left_;
};

void read_histogram(Reader& in, Observation& seen) {
  Histogram& histogram = seen.histogram;
  histogram.clear();
  histogram.widen_for(largest_magnitude(seen.range));
  const int64_t first = in.number(kBins - 1);
  const int64_t count = in.number(kBins - first);
  int64_t left = seen.elements;
  for (int64_t bin = first; bin < first + count; ++bin) {
    const int64_t here = in.number(left);
    left -= here;
    histogram.add(static_cast<int>(bin), here);
  }
  Reader::check(left == 0);
  // Where the extremes are, there are values.
  const double per_unit = 1.0 / histogram.width();
  for (const float end : {seen.range.min, seen.range.max}) {
    const auto bin = static_cast<int>(std::fabs(end) * per_unit) + (end < 0.0F ? kBinsPerSide : 0);
    Reader::check(histogram.count(bin) > 0);
  }
}

void read_statistics(Reader& in, bool histograms, TensorStatistics& statistics) {
  Observation& seen = statistics.all;
  seen.elements = in.number(kMost);
  seen.not_finite = in.number(kMost);
  if (seen.elements == 0) return;
  seen.range = in.range();
  const int64_t recent = in.number(static_cast<int64_t>(TensorStatistics::kRecent));
  Reader::check(recent > 0);
  for (int64_t i = 0; i < recent; ++i) {
    statistics.recent.push_back(in.range());
    Reader::check(statistics.recent.back().min >= seen.range.min && statistics.recent.back().max <= seen.range.max);
  }
  if (histograms) read_histogram(in, seen);
}

/// Sizes are checked against the bytes that are left before memory is taken.
void read_gram(Reader& in, GramMatrix& gram, Charge& charge) {
  constexpr int64_t kMostIndex = std::numeric_limits<int32_t>::max();
  gram.subgraph = static_cast<int>(in.number(kMostIndex));
  gram.node = static_cast<int>(in.number(kMostIndex));
  gram.groups = in.number(kMostIndex);
  gram.columns = in.number(kMostIndex);
  Reader::check(gram.groups > 0 && gram.columns > 0);
  // As if a sample had reached it, like every memory of statistics.
  Reader::check(gram.group_sums() <= std::numeric_limits<int64_t>::max() / 32 / gram.groups);
  charge.resize(charge.bytes() + gram.bytes());
  const uint64_t reached = in.fixed(1);
  Reader::check(reached <= 1);
  if (reached == 0) return;
  Reader::check(gram.bytes() <= in.left());
  gram.sums.resize(static_cast<size_t>(gram.groups * gram.group_sums()));
  bool any = false;
  for (GramMatrix::Sum& sum : gram.sums) {
    const uint64_t low = in.fixed(8);
    const uint64_t high = in.fixed(8);
    sum = static_cast<GramMatrix::Sum>(static_cast<unsigned __int128>(high) << 64 | low);
    any = any || sum != 0;
  }
  Reader::check(any);
}

}  // namespace

std::vector<std::byte> to_bytes(const ModelStatistics& statistics) {
  Writer out;
  out.text(kMagic);
  out.fixed(statistics.model, 8);
  out.fixed(statistics.histograms ? 1 : 0, 1);
  out.fixed(statistics.keeps_grams ? 1 : 0, 1);
  out.number(statistics.samples);
  out.number(static_cast<int64_t>(statistics.tensors.size()));
  PacedCheck check;
  for (const WatchedTensor& tensor : statistics.tensors) {
    check.count(statistics.histograms ? kBins : 64);
    out.number(tensor.subgraph);
    out.number(tensor.tensor);
    out.number(static_cast<int64_t>(tensor.name.size()));
    out.text(tensor.name);
    const Observation& seen = tensor.statistics.all;
    out.number(seen.elements);
    out.number(seen.not_finite);
    if (seen.elements == 0) continue;
    out.range(seen.range);
    out.number(static_cast<int64_t>(tensor.statistics.recent.size()));
    for (const Range& range : tensor.statistics.recent) out.range(range);
    if (statistics.histograms) out.histogram(seen.histogram);
  }
  if (statistics.keeps_grams) out.number(static_cast<int64_t>(statistics.grams.size()));
  for (const GramMatrix& gram : statistics.grams) {
    check.count(static_cast<int64_t>(gram.sums.size()) * 8);
    out.gram(gram);
  }
  return out.finish();
}

ModelStatistics from_bytes(std::span<const std::byte> bytes, Charge& charge) {
  constexpr int64_t kLeastPerTensor = 5;
  Reader::check(bytes.size() > kMagic.size() + 8);
  Fnv sum;
  sum.add(bytes.first(bytes.size() - 8));
  Reader::check(Reader(bytes.last(8)).fixed(8) == sum.value());
  Reader in(bytes.first(bytes.size() - 8));
  const auto magic = in.raw(static_cast<int64_t>(kMagic.size()));
  Reader::check(std::memcmp(magic.data(), kMagic.data(), kMagic.size()) == 0);

  ModelStatistics result;
  result.model = in.fixed(8);
  const uint64_t histograms = in.fixed(1);
  Reader::check(histograms <= 1);
  result.histograms = histograms == 1;
  const uint64_t grams = in.fixed(1);
  Reader::check(grams <= 1);
  result.keeps_grams = grams == 1;
  result.samples = in.number(kMost);
  const int64_t count = in.number(in.left() / kLeastPerTensor);
  // The names are bytes of the input.
  const int64_t per_tensor = static_cast<int64_t>(sizeof(WatchedTensor) + TensorStatistics::kRecent * sizeof(Range)) +
                             (result.histograms ? Histogram::kBytes : 0);
  charge.resize(count * per_tensor + static_cast<int64_t>(bytes.size()));
  result.tensors.resize(static_cast<size_t>(count));
  std::pair<int, int> last(-1, -1);
  PacedCheck check;
  for (WatchedTensor& tensor : result.tensors) {
    check.count(result.histograms ? 2 * kBins : 64);
    constexpr int64_t kMostIndex = std::numeric_limits<int32_t>::max();
    tensor.subgraph = static_cast<int>(in.number(kMostIndex));
    tensor.tensor = static_cast<int>(in.number(kMostIndex));
    Reader::check(std::pair(tensor.subgraph, tensor.tensor) > last);
    last = {tensor.subgraph, tensor.tensor};
    const auto name = in.raw(in.number(in.left()));
    tensor.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
    read_statistics(in, result.histograms, tensor.statistics);
    Reader::check(static_cast<int64_t>(tensor.statistics.recent.size()) <= result.samples);
  }
  constexpr int64_t kLeastPerGram = 5;
  if (result.keeps_grams) result.grams.resize(static_cast<size_t>(in.number(in.left() / kLeastPerGram)));
  last = {-1, -1};
  charge.resize(charge.bytes() + static_cast<int64_t>(result.grams.size() * sizeof(GramMatrix)));
  for (GramMatrix& gram : result.grams) {
    read_gram(in, gram, charge);
    check.count(static_cast<int64_t>(gram.sums.size()) * 8);
    Reader::check(std::pair(gram.subgraph, gram.node) > last);
    last = {gram.subgraph, gram.node};
  }
  Reader::check(in.left() == 0);
  charge.resize(result.bytes());
  return result;
}

uint64_t fingerprint(const ir::Graph& graph) {
  constexpr size_t kSampled = 256;
  Fnv sum;
  const auto add_indices = [&](const std::vector<int>& indices) {
    sum.add(static_cast<int64_t>(indices.size()));
    for (const int index : indices) sum.add(int64_t{index});
  };
  for (const ir::Subgraph& subgraph : graph.subgraphs) {
    add_indices(subgraph.inputs);
    add_indices(subgraph.outputs);
    for (const ir::Value& value : subgraph.values) {
      sum.add(value.name);
      sum.add(static_cast<int64_t>(value.dtype));
      for (const int64_t size : value.shape) sum.add(size);
      sum.add(int64_t{value.constant} + 2 * int64_t{value.variable});
      sum.add(static_cast<int64_t>(value.data.size()));
      sum.add(value.data.first(std::min(value.data.size(), kSampled)));
      sum.add(value.data.last(std::min(value.data.size(), kSampled)));
    }
    for (const ir::Node& node : subgraph.nodes) {
      sum.add(node.op.name());
      sum.add(ir::attributes_text(*node.attributes));
      add_indices(node.inputs);
      add_indices(node.outputs);
    }
  }
  return sum.value();
}

ModelStatistics empty_statistics(const ir::Graph& graph, bool histograms, bool grams) {
  ModelStatistics result;
  result.model = fingerprint(graph);
  result.histograms = histograms;
  result.keeps_grams = grams;
  if (grams) result.grams = empty_grams(graph);
  for (size_t s = 0; s < graph.subgraphs.size(); ++s) {
    const ir::Subgraph& subgraph = graph.subgraphs[s];
    std::vector<bool> watched(subgraph.values.size());
    for (const int v : subgraph.inputs) watched[static_cast<size_t>(v)] = true;
    for (const ir::Node& node : subgraph.nodes) {
      for (const int v : node.outputs) {
        if (v != ir::kAbsent) watched[static_cast<size_t>(v)] = true;
      }
    }
    for (size_t v = 0; v < watched.size(); ++v) {
      const ir::Value& value = subgraph.values[v];
      if (!Recorder::is_recordable(value.dtype) || value.constant || !(watched[v] || value.variable)) continue;
      result.tensors.push_back({static_cast<int>(s), static_cast<int>(v), value.name, {}});
    }
  }
  return result;
}

}  // namespace leadline::quantize
