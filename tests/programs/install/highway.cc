// SPDX-License-Identifier: Apache-2.0
// What the object file with the run-time dispatch of Highway's own library defines, for a program that links that
// library statically beside Leadline. Debian has only the shared one, which would not show the clash.
#include <hwy/targets.h>

namespace hwy {

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

int64_t SupportedTargets() { return HWY_STATIC_TARGET | HWY_EMU128 | HWY_SCALAR; }

void SetSupportedTargetsForTest(int64_t) {}

}  // namespace hwy
