// SPDX-License-Identifier: Apache-2.0
// Stands for libhwy.a: one object file with the run-time dispatch, as Highway's own, and something that only it has.
// Debian has the shared library alone, which would not show the clash.
#include <hwy/targets.h>

namespace hwy {

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

int64_t SupportedTargets() { return HWY_STATIC_TARGET | HWY_EMU128 | HWY_SCALAR; }

void SetSupportedTargetsForTest(int64_t) {}

}  // namespace hwy

const char* other_highway() { return "other"; }
