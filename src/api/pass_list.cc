// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "leadline/passes.h"
#include "passes/passes.h"

namespace leadline {

std::vector<PassInfo> list_passes() {
  std::vector<PassInfo> list;
  for (const passes::PassName& pass : passes::names_for_runs())
    list.push_back({pass.name, pass.description, true, false});
  for (const passes::PassName& pass : passes::names_for_converters()) {
    const auto same = std::find_if(list.begin(), list.end(), [&](const PassInfo& p) { return p.name == pass.name; });
    if (same != list.end()) {
      same->converts = true;
    } else {
      list.push_back({pass.name, pass.description, false, true});
    }
  }
  return list;
}

}  // namespace leadline
