// SPDX-License-Identifier: Apache-2.0
#include "readers/mutator.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

namespace leadline::fuzz {

Mutator::Mutator(const Reader& reader, std::span<const std::string> seeds, uint64_t seed)
    : reader_(reader),
      seeds_(seeds),
      words_(reader.words == nullptr ? std::vector<std::string>() : reader.words()),
      random_(seed) {}

/// The size of the input is odd too.
uint64_t Mutator::odd_number(size_t size) { return below(4) == 0 ? size + below(5) - 2 : fuzz::odd_number(random_); }

/// Another number in place of one that is written as text.
void Mutator::change_text_number(std::string& bytes) {
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size()));
  const auto begin = std::find_if(from, bytes.end(), digit);
  const auto end = std::find_if_not(begin, bytes.end(), digit);
  if (begin == end) return;
  std::string number = std::to_string(odd_number(bytes.size()));
  if (below(3) == 0) number = "-" + number;
  if (below(8) == 0) number += below(2) == 0 ? "e99" : ".5";
  bytes.replace(begin, end, number);
}

void Mutator::change(std::string& bytes) {
  const size_t at = below(bytes.size());
  const size_t left = bytes.size() - at;
  switch (below(bytes.empty() ? 2 : 11)) {
    case 0: {  // a word of the format is put in
      const std::string word = words_.empty() ? std::string(1 + below(8), '\0') : words_[below(words_.size())];
      bytes.insert(at, word);
      break;
    }
    case 1: {  // so do random bytes
      std::string noise(1 + below(8), '\0');
      for (char& c : noise) c = static_cast<char>(random_());
      bytes.insert(at, noise);
      break;
    }
    case 2:
      bytes[at] = static_cast<char>(bytes[at] ^ static_cast<char>(1U << below(8)));
      break;
    case 3:
      bytes[at] = static_cast<char>(random_());
      break;
    case 4:
    case 5: {  // a number of 1, 2, 4 or 8 bytes
      const uint64_t number = odd_number(bytes.size());
      std::memcpy(bytes.data() + at, &number, std::min<size_t>(left, size_t{1} << below(4)));
      break;
    }
    case 6:
      change_text_number(bytes);
      break;
    case 7:
      bytes.erase(at, 1 + below(std::min<size_t>(left, below(4) == 0 ? left : 16)));
      break;
    case 8: {  // a piece twice, or many times
      const std::string piece = bytes.substr(at, 1 + below(std::min<size_t>(left, 64)));
      const size_t times = below(8) == 0 ? 1 + below(200) : 1;
      std::string all;
      for (size_t i = 0; i < times; ++i) all += piece;
      bytes.insert(below(bytes.size()), all);
      break;
    }
    case 9: {  // a word in place of what was there
      if (words_.empty()) return;
      const std::string& word = words_[below(words_.size())];
      bytes.replace(at, std::min(left, word.size()), word);
      break;
    }
    default: {  // the end of another seed
      const std::string& other = seeds_[below(seeds_.size())];
      bytes = bytes.substr(0, at) + other.substr(below(other.size() + 1));
      break;
    }
  }
}

std::string Mutator::next() {
  std::string bytes = seeds_[below(seeds_.size())];
  if (reader_.mutate == nullptr || below(4) == 0 || !reader_.mutate(bytes, random_)) {
    for (uint64_t left = 1 + below(4); left > 0; --left) change(bytes);
  }
  if (bytes.size() > reader_.most_bytes) bytes.resize(reader_.most_bytes);
  if (reader_.repair != nullptr && below(8) != 0) reader_.repair(bytes);
  return bytes;
}

}  // namespace leadline::fuzz
