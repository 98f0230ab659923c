// SPDX-License-Identifier: Apache-2.0
#include "mutant.h"

#include <algorithm>

#include "mutation.h"

namespace leadline::fuzz {
namespace {

/// The bytes of one constant become the last of the file, so that reading past them leaves its memory. Means the same.
void move_to_end(Subject& subject, Random& random) {
  const TablePtr tensor = pick_tensor(subject.subgraph(random), random);
  if (tensor == nullptr || !is_constant(subject, *tensor)) return;
  const TablePtr buffer = new_table("Buffer");
  buffer->tail = Tail{.bytes = contents(subject, *tensor)};
  buffer->set("offset", 2);
  buffer->set("size", 0);
  tensor->set("buffer", static_cast<int64_t>(subject.buffers().size()));
  subject.buffers().push_back(buffer);
}

}  // namespace

Mutant make_mutant(const Bases& bases, uint64_t seed, uint64_t number, unsigned kept) {
  Random random(seed, number);
  const Base& base = bases.pick(random);
  Subject subject{.root = base.read(), .donors = &bases};
  Mutant mutant{.base = base.name, .mutations = {}, .root = subject.root, .exercise_seed = random.next()};
  // Fewer are more likely: the file should be wrong in one point and right in all others.
  const int count = 1 + static_cast<int>(std::min(random.below(kMostMutations), random.below(kMostMutations)));
  for (int k = 0; k < count; ++k) {
    // Each has numbers of its own, so that leaving one out does not change the others.
    Random own(random.next());
    if ((kept >> k & 1U) == 0) continue;
    const std::string name = mutate(subject, own);
    if (!name.empty()) mutant.mutations.push_back(name);
  }
  if (random.once_in(2)) move_to_end(subject, random);
  return mutant;
}

}  // namespace leadline::fuzz
