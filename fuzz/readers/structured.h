// SPDX-License-Identifier: Apache-2.0
// Changes of meaning that keep a document readable: one value of a JSON text or of a protocol buffer becomes another.
#pragma once

#include <random>
#include <string>

namespace leadline::fuzz {

using Random = std::mt19937_64;

/// False, and nothing is changed, when the text is not JSON.
bool mutate_json(std::string& text, Random& random);

/// False, and nothing is changed, when the bytes are not a message.
bool mutate_message(std::string& bytes, Random& random);

/// A number at which readers go wrong: the ends of types, powers of two and their neighbours, or a small one.
uint64_t odd_number(Random& random);

}  // namespace leadline::fuzz
