// SPDX-License-Identifier: Apache-2.0
// Register tiles for gemm kernels: accumulators with compile-time indices and loads and stores of partial vectors.
// Compiled once per instruction set. Loops over arrays make g++ 12 keep accumulators in memory; indices that are
// constants before optimisation starts do not.
#include <hwy/highway.h>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#if defined(LEADLINE_KERNELS_GEMM_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef LEADLINE_KERNELS_GEMM_TILE_INL_H
#undef LEADLINE_KERNELS_GEMM_TILE_INL_H
#else
#define LEADLINE_KERNELS_GEMM_TILE_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace leadline::kernels {
namespace HWY_NAMESPACE {

template <typename V, int Rows, int Columns>
struct Accumulators {
  V values[static_cast<size_t>(Rows) * Columns];
  template <int Row, int Column>
  HWY_INLINE V& at() {
    return values[Row * Columns + Column];
  }
};

template <typename Body, int... Index>
HWY_INLINE void unroll_sequence(const Body& body, std::integer_sequence<int, Index...>) {
  (body(std::integral_constant<int, Index>{}), ...);
}

/// Calls body(std::integral_constant<int, i>) for i in [0, Count), without a loop.
template <int Count, typename Body>
HWY_INLINE void unroll(const Body& body) {
  unroll_sequence(body, std::make_integer_sequence<int, Count>{});
}

template <class D, typename T>
HWY_NOINLINE hwy::HWY_NAMESPACE::Vec<D> load_part(D d, const T* from, int64_t count) {
  HWY_ALIGN T values[HWY_LANES(T)] = {};
  for (int64_t i = 0; i < count; ++i) values[i] = from[i];
  return hwy::HWY_NAMESPACE::Load(d, values);
}

template <class D, typename T>
HWY_NOINLINE void store_part(hwy::HWY_NAMESPACE::Vec<D> v, D d, T* to, int64_t count) {
  HWY_ALIGN T values[HWY_LANES(T)];
  hwy::HWY_NAMESPACE::Store(v, d, values);
  for (int64_t i = 0; i < count; ++i) to[i] = values[i];
}

// Where loads and stores can leave lanes out without touching their memory.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
template <typename T>
constexpr bool kHasMasks = sizeof(T) == 4;
#else
template <typename T>
constexpr bool kHasMasks = false;
#endif

/// Loads min(count, lanes) values, the rest zero; reads nothing beyond them. count may be 0 or less.
template <class D, typename T = hwy::HWY_NAMESPACE::TFromD<D>>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_some(D d, const T* from, int64_t count) {
  if (HWY_LIKELY(count >= static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(d)))) {
    return hwy::HWY_NAMESPACE::LoadU(d, from);
  }
  if constexpr (kHasMasks<T>) {
    namespace hn = hwy::HWY_NAMESPACE;
    return hn::MaskedLoad(hn::FirstN(d, static_cast<size_t>(count < 0 ? 0 : count)), d, from);
  }
  return load_part(d, from, count);
}

/// Stores the first min(count, lanes) values; writes nothing beyond them. count may be 0 or less.
template <class D, typename T = hwy::HWY_NAMESPACE::TFromD<D>>
HWY_INLINE void store_some(hwy::HWY_NAMESPACE::Vec<D> v, D d, T* to, int64_t count) {
  if (HWY_LIKELY(count >= static_cast<int64_t>(hwy::HWY_NAMESPACE::Lanes(d)))) {
    hwy::HWY_NAMESPACE::StoreU(v, d, to);
  } else if constexpr (kHasMasks<T>) {
    namespace hn = hwy::HWY_NAMESPACE;
    hn::BlendedStore(v, hn::FirstN(d, static_cast<size_t>(count < 0 ? 0 : count)), d, to);
  } else {
    store_part(v, d, to, count);
  }
}

/// min(max(v, lo), hi) for floats, NaN staying NaN.
template <class V>
HWY_INLINE V clamp_keeping_nan(V v, V lo, V hi) {
  namespace hn = hwy::HWY_NAMESPACE;
#if HWY_TARGET == HWY_SCALAR
  v = hn::IfThenElse(hn::Lt(v, lo), lo, v);
  return hn::IfThenElse(hn::Lt(hi, v), hi, v);
#else
  return hn::Min(hi, hn::Max(lo, v));  // x86 returns the second operand when one is NaN; NEON returns NaN
#endif
}

}  // namespace HWY_NAMESPACE
}  // namespace leadline::kernels
HWY_AFTER_NAMESPACE();

#endif
