// SPDX-License-Identifier: Apache-2.0
// Why a layer loses more than rounding must cost, in a sentence, and what to try. Reasons are looked for from the most
// particular to the most general; the numbers that decide are beside each rule.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "debug/result.h"

namespace leadline::debug {
namespace {

/// Less lost signal than this (-30 dB) in a layer is the price of 8 bits, not a fault.
constexpr double kNoticeable = 0.001;
/// Largest over median channel beyond which one scale cannot serve all.
constexpr double kOutlierSpread = 16.0;
constexpr double kSaturation = 0.01;
constexpr double kFewLevels = 4.0;  // steps per root mean square of the values
constexpr double kWeightLoss = 0.02;
constexpr double kPeak = 40.0;  // the median weight then has 3 levels or fewer

struct Reason {
  std::string_view kind;
  std::string why;
  std::string try_this;
};

std::string percent(double share) { return fmt::format("{:.3g} %", 100.0 * share); }

const WeightError* main_weight(const LayerDebug& layer) {
  const WeightError* main = nullptr;
  for (const WeightError& weight : layer.weights) {
    if (weight.shape.rank() >= 2 && (main == nullptr || weight.shape.elements() > main->shape.elements()))
      main = &weight;
  }
  return main;
}

std::string keep_advice(const LayerDebug& layer) {
  if (layer.float_name.empty()) return "quantize it less";
  return fmt::format("keep it in float (denylisted_nodes=['{}'], --keep-float)", layer.float_name);
}

bool not_finite(const LayerDebug& layer, Reason& reason) {
  // Where the float model computes NaN or infinity too, as in rows that a mask drops later, there is nothing to mend.
  const int64_t count = layer.accumulated ? layer.accumulated->broken : layer.own ? layer.own->broken : 0;
  if (count == 0) return false;
  reason = {"not_finite", fmt::format("{} values are NaN or infinite, and numbers in the float model", count),
            "look for divisions, logarithms and overflows in front of it; float16 ends at 65504"};
  return true;
}

bool weight_outlier(const LayerDebug& layer, Reason& reason) {
  const WeightError* weight = main_weight(layer);
  if (weight == nullptr || weight->channels < 2 || weight->channel_spread < kOutlierSpread) return false;
  if (weight->scales == 1) {
    reason = {"weight_outlier",
              fmt::format("channel {} of its weights is {:.3g} times as large as the median channel, and all share one "
                          "scale: the others keep few levels",
                          weight->largest_channel, weight->channel_spread),
              "quantize weights per channel, equalize the layers (equalize=True), or " + keep_advice(layer)};
  } else {
    reason = {"weight_outlier",
              fmt::format("channel {} of its weights is {:.3g} times as large as the median channel; its results "
                          "stretch the range ({:.4g} to {:.4g}) that all channels share",
                          weight->largest_channel, weight->channel_spread, static_cast<double>(layer.seen_min),
                          static_cast<double>(layer.seen_max)),
              "equalize the layers (equalize=True), retrain with weight decay, or " + keep_advice(layer)};
  }
  return true;
}

bool saturation(const LayerDebug& layer, Reason& reason) {
  if (layer.saturated < kSaturation) return false;
  reason = {
      "saturation",
      fmt::format("{} of its values lie outside what its integers can hold ({:.4g} to {:.4g}; seen {:.4g} to "
                  "{:.4g})",
                  percent(layer.saturated), static_cast<double>(layer.range_min), static_cast<double>(layer.range_max),
                  static_cast<double>(layer.seen_min), static_cast<double>(layer.seen_max)),
      "calibrate with samples like these, or with method min_max"};
  return true;
}

/// Channels of the output whose ranges differ widely.
bool channel_outlier(const LayerDebug& layer, Reason& reason) {
  if (layer.channels < 4 || layer.scales.size() != 1 || layer.worst_channels.empty()) return false;
  const ChannelError& worst = layer.worst_channels.front();
  const double size = static_cast<double>(std::max(std::fabs(worst.min), std::fabs(worst.max)));
  const double whole = static_cast<double>(std::max(std::fabs(layer.seen_min), std::fabs(layer.seen_max)));
  if (worst.lost_signal < 0.05 || size <= 0.0 || whole / size < kOutlierSpread) return false;
  reason = {"channel_outlier",
            fmt::format("its channels differ widely: channel {} reaches {:.3g}, the largest {:.3g}, and all share the "
                        "step {:.3g}; channel {} loses {} of its signal",
                        worst.channel, size, whole, static_cast<double>(layer.scales[0]), worst.channel,
                        percent(worst.lost_signal)),
            "equalize the layers (equalize=True), or " + keep_advice(layer)};
  return true;
}

/// What a layer loses by itself. Of results with a fixed range the small ones count as little as they are: nothing
/// misses the digits of a probability near 0.
double score_of(const LayerDebug& layer) {
  if (!layer.own) return 0.0;
  if (!layer.fixed_range) return layer.own->lost_signal;
  return std::min(1.0, std::pow(10.0, -layer.own->snr_db / 10.0));
}

bool fixed_range(const LayerDebug& layer, Reason& reason) {
  if (!layer.fixed_range) return false;
  reason = {"fixed_range",
            fmt::format("the range of {} is fixed, with a step of {:.3g}; values below half of it vanish", layer.op,
                        static_cast<double>(layer.scales[0])),
            "take the values in front of it, keep it in float, or use int16 activations"};
  return true;
}

bool few_levels(const LayerDebug& layer, Reason& reason) {
  if (layer.scales.size() != 1 || !layer.own || layer.own->lost_signal <= 0.0) return false;
  // From snr = signal / noise: the root mean square of the values in steps.
  const double steps = layer.own->rmse_over_scale * std::pow(10.0, layer.own->snr_db / 20.0);
  if (steps >= kFewLevels || steps <= 0.0) return false;
  reason = {"wide_range",
            fmt::format("a few large values set its range ({:.4g} to {:.4g}): typical values are only {:.2g} steps of "
                        "{:.3g} large",
                        static_cast<double>(layer.range_min), static_cast<double>(layer.range_max), steps,
                        static_cast<double>(layer.scales[0])),
            "calibrate with method percentile, mse or kl, or " + keep_advice(layer)};
  if (layer.levels_used > 0 && layer.levels_used < 32) {
    reason.kind = "few_levels";
    reason.why += fmt::format("; only {} of 256 levels occur", layer.levels_used);
  }
  return true;
}

std::string weight_advice(const LayerDebug& layer, const WeightError& weight) {
  return (weight.scales == 1 ? "quantize weights per channel, or " : "") + keep_advice(layer);
}

bool weight_peak(const LayerDebug& layer, Reason& reason) {
  const WeightError* weight = main_weight(layer);
  if (weight == nullptr || weight->peak < kPeak) return false;
  reason = {"weight_peak",
            fmt::format("single weights of channel {} are {:.3g} times as large as the median weight and set the scale "
                        "of all others",
                        weight->peak_channel, weight->peak),
            weight_advice(layer, *weight)};
  return true;
}

bool weights(const LayerDebug& layer, Reason& reason) {
  const WeightError* weight = main_weight(layer);
  if (weight == nullptr || weight->worst_lost_signal < kWeightLoss) return false;
  reason = {"weights",
            fmt::format("its weights lose {} of channel {} ({:.3g} dB over all)", percent(weight->worst_lost_signal),
                        weight->worst_channel, weight->snr_db),
            weight_advice(layer, *weight)};
  return true;
}

bool by_nature(const LayerDebug& layer, Reason& reason) {
  if (layer.weakness.empty()) return false;
  reason = {"by_nature", fmt::format("{} quantizes badly by nature: {}", layer.op, layer.weakness),
            keep_advice(layer) + ", with the nodes around it"};
  return true;
}

Reason rounding(const LayerDebug& layer) {
  const ErrorStatistics& own = *layer.own;
  if (own.rmse_over_scale > 2.0 * kRoundingYardstick) {
    return {
        "rounding",
        fmt::format("its error is {:.3g} steps where rounding alone costs {:.3g} (1/sqrt(12)): the error comes from "
                    "inside the node",
                    own.rmse_over_scale, kRoundingYardstick),
        keep_advice(layer)};
  }
  return {"rounding",
          fmt::format("it loses {} of its signal, {:.3g} dB signal to noise", percent(own.lost_signal), own.snr_db),
          keep_advice(layer)};
}

}  // namespace

namespace {

/// The most particular reason that holds.
Reason reason_of(const LayerDebug& layer) {
  Reason reason;
  const bool found = not_finite(layer, reason) || weight_outlier(layer, reason) || saturation(layer, reason) ||
                     by_nature(layer, reason) || fixed_range(layer, reason) || weight_peak(layer, reason) ||
                     channel_outlier(layer, reason) || few_levels(layer, reason) || weights(layer, reason);
  if (found) return reason;
  return layer.own ? rounding(layer) : Reason{"rounding", "it is rounded", keep_advice(layer)};
}

std::string called(const LayerDebug& layer) {
  return fmt::format("{} '{}'", layer.op, layer.layer.empty() ? layer.name : layer.layer);
}

}  // namespace

std::vector<DebugSuspect> find_suspects(const std::vector<LayerDebug>& layers) {
  std::vector<DebugSuspect> suspects;
  for (const LayerDebug& layer : layers) {
    Reason reason;
    const bool broken = not_finite(layer, reason);
    if (!broken && score_of(layer) < kNoticeable) continue;
    reason = reason_of(layer);
    DebugSuspect suspect;
    suspect.layer = layer.index;
    suspect.score = broken ? 1.0 : score_of(layer);
    suspect.kind = reason.kind;
    suspect.why = fmt::format("{}: {}.", called(layer), reason.why);
    suspect.try_this = reason.try_this;
    suspects.push_back(std::move(suspect));
  }
  std::stable_sort(suspects.begin(), suspects.end(), [](const auto& a, const auto& b) { return a.score > b.score; });
  return suspects;
}

namespace {

/// Where error that was small becomes large: an op such as LOG or DIV makes much of the last digits of what it reads.
struct Growth {
  const LayerDebug* layer = nullptr;
  double before = 0.0;  // dB of signal to noise of what it reads
  double after = 0.0;
};

Growth largest_growth(const DebugRegion& region, const std::vector<LayerDebug>& layers) {
  constexpr double kGrowth = 10.0;  // dB: ten times the power
  Growth found;
  for (const int l : region.layers) {
    const LayerDebug& layer = layers[static_cast<size_t>(l)];
    if (!layer.accumulated || layer.inputs.empty()) continue;
    double before = kBestSnrDb;
    for (const int input : layer.inputs) {
      const LayerDebug& source = layers[static_cast<size_t>(input)];
      if (source.accumulated) before = std::min(before, source.accumulated->snr_db);
    }
    const double after = layer.accumulated->snr_db;
    if (before >= kBestSnrDb || before - after < kGrowth) continue;
    if (found.layer == nullptr || before - after > found.before - found.after) found = {&layer, before, after};
  }
  return found;
}

}  // namespace

std::optional<DebugSuspect> suspect_of(const DebugRegion& region, const std::vector<LayerDebug>& layers) {
  const LayerDebug* worst = nullptr;
  for (const int l : region.layers) {
    const LayerDebug& layer = layers[static_cast<size_t>(l)];
    if (worst == nullptr || score_of(layer) > score_of(*worst)) worst = &layer;
  }
  if (worst == nullptr) return std::nullopt;
  Reason reason = reason_of(*worst);
  // What is known of an op by name, or else what nothing more particular explains.
  const Growth growth = largest_growth(region, layers);
  if (growth.layer != nullptr && reason.kind != "not_finite" &&
      (!growth.layer->weakness.empty() || reason.kind == "rounding")) {
    worst = growth.layer;
    reason = reason_of(*worst);
    reason.why = fmt::format("the error grows there from {:.3g} to {:.3g} dB signal to noise; {}", growth.before,
                             growth.after, reason.why);
  }
  DebugSuspect suspect;
  suspect.layer = worst->index;
  suspect.score = region.effect;
  suspect.kind = reason.kind;
  std::string costs = fmt::format("{} of the outputs' error goes when it computes in float", percent(region.effect));
  if (region.weights_effect && region.values_effect) {
    costs += fmt::format(" ({} when only its weights are, {} when only its values are not rounded)",
                         percent(std::max(*region.weights_effect, 0.0)), percent(std::max(*region.values_effect, 0.0)));
  }
  if (region.nodes == 1) {
    suspect.why = fmt::format("{}: {}; {}.", called(*worst), costs, reason.why);
    suspect.try_this = reason.try_this;
  } else {
    suspect.why = fmt::format("{}, {} layers: {}. Its worst layer is {}: {}.", region.name, region.nodes, costs,
                              called(*worst), reason.why);
    suspect.try_this = fmt::format("keep {} in float", region.name);
  }
  return suspect;
}

}  // namespace leadline::debug
