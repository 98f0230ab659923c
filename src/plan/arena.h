// SPDX-License-Identifier: Apache-2.0
// Arena placement: finds an offset in one block of memory for every buffer of a plan, so that two buffers that are
// alive at the same step never share a byte. A pure function of its arguments: no clock, no randomness, no global
// state.
//
// How it works, in plain words:
//  1. Sizes are rounded up to the alignment. Time is compressed to the "sections" that matter: the steps at which the
//     set of live buffers is maximal. The largest live sum over the sections is a lower bound for any layout.
//  2. Buffers fall into components that share no step; each is placed on its own, from offset 0.
//  3. Greedy: several fixed orders (size, size x lifetime, lifetime, start, pressure, breadth), each buffer going to
//     the lowest or the tightest gap. The first layout that meets the bound ends the work. Most networks end here.
//  4. Search: is there a layout of at most C bytes? Buffers are stacked from the bottom up. Each has a floor, the least
//     offset it can still have. Take a buffer that nothing unplaced can slide beneath; either it lies at its floor, or
//     it rests on some other unplaced buffer, which raises its floor. Both answers are tried, the first one first.
//     A branch ends when, in some section, the lowest floor plus the bytes still to be placed exceeds C; when a raised
//     buffer has nothing left to rest on; or when nothing could occupy the gap it left (it would fall back into it).
//     When the unplaced buffers fall into parts that share no step, the parts are solved one by one, and a failure in
//     one is never answered by re-arranging another. Identical buffers are stacked in one order only.
//  5. The search is restarted with different rules for the next section and buffer, with perturbed priorities and with
//     more weight on sections that failed, each attempt with a longer leash. It first descends without a limit, then
//     asks in turn for the bound (or the target) itself and for a capacity between it and the best layout so far.
//     When a capacity is proven impossible, the bound that the search works with rises.
//
// Honest limits: the problem is NP-hard. With the effort used up the result is the best layout found, which may be
// above the optimum; `bytes - lower_bound` is the most it can be off, and the optimum itself can be above the bound.
// A component whose lists of overlapping buffers would exceed 8 million entries (2,800 buffers alive at once, for
// example) is only stacked in order of size, without looking for gaps, to keep memory and time in hand.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace leadline::plan {

/// One buffer: alive from step `first` to step `last`, both included.
struct Interval {
  int64_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct PlaceOptions {
  /// Offsets are multiples of this, sizes are rounded up to it. At least 1; need not be a power of two.
  int64_t alignment = 64;
  /// Bound on the work, in visits of one buffer or section (a few nanoseconds each); the default is 20 to 40 ms. The
  /// first greedy order always runs to its end. 0 means greedy with that order alone.
  int64_t effort = 10'000'000;
  /// Stop as soon as a layout needs at most this many bytes. 0: stop at the lower bound.
  int64_t target = 0;
};

struct Layout {
  std::vector<int64_t> offsets;  ///< one for each interval, in the same order; 0 for empty ones
  int64_t bytes = 0;             ///< size of the arena
  int64_t lower_bound = 0;       ///< largest sum of rounded sizes alive at one step: no layout needs less
  int64_t steps = 0;             ///< effort spent
};

/// Places the intervals. Throws std::invalid_argument when a size is negative, `last < first`, the alignment is below 1
/// or the rounded sizes do not sum to an int64_t.
Layout place(std::span<const Interval> intervals, const PlaceOptions& options = {});

}  // namespace leadline::plan
