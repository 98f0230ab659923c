// SPDX-License-Identifier: Apache-2.0
#include "guard/pep440.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "guard/trim.h"

namespace leadline::guard {
namespace {

constexpr size_t kLongestVersion = 200;
constexpr size_t kMostParts = 100;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Reads from the front of a text.
class VersionReader {
 public:
  explicit VersionReader(std::string_view text) : rest_(text) {}

  bool done() const { return rest_.empty(); }
  char peek() const { return rest_.empty() ? '\0' : rest_.front(); }
  std::string_view rest() const { return rest_; }
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void take_separator() {
    if (peek() == '.' || peek() == '-' || peek() == '_') rest_.remove_prefix(1);
  }
  /// A number that fits; 0 for none where `optional`.
  std::optional<int64_t> number(bool optional = false) {
    if (optional && !is_digit(peek())) return 0;
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || !is_digit(peek())) return std::nullopt;
    rest_.remove_prefix(static_cast<size_t>(stop - rest_.data()));
    return value;
  }

 private:
  std::string_view rest_;
};

struct Word {
  std::string_view text;
  int rank;
};
constexpr std::array<Word, 8> kPreWords{
    {{"alpha", 0}, {"beta", 1}, {"preview", 2}, {"pre", 2}, {"rc", 2}, {"a", 0}, {"b", 1}, {"c", 2}}};

int compare_numbers(int64_t a, int64_t b) { return a < b ? -1 : a > b ? 1 : 0; }

/// Numeric parts compare as numbers and above others, as PEP 440 orders local versions.
int compare_local(std::string_view a, std::string_view b) {
  while (!a.empty() || !b.empty()) {
    const auto next = [](std::string_view& text) {
      const size_t size = std::min(text.find('.'), text.size());
      const std::string_view part = text.substr(0, size);
      text.remove_prefix(std::min(size + 1, text.size()));
      return part;
    };
    if (a.empty() || b.empty()) return a.empty() ? -1 : 1;
    const std::string_view x = next(a);
    const std::string_view y = next(b);
    const bool x_number = !x.empty() && std::all_of(x.begin(), x.end(), is_digit);
    const bool y_number = !y.empty() && std::all_of(y.begin(), y.end(), is_digit);
    if (x_number != y_number) return x_number ? 1 : -1;
    if (x_number && x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
    if (x != y) return x < y ? -1 : 1;
  }
  return 0;
}

}  // namespace

std::optional<Version> Version::parse(std::string_view input) {
  input = trim(input);
  if (input.empty() || input.size() > kLongestVersion) return std::nullopt;
  std::string text(input);
  std::transform(text.begin(), text.end(), text.begin(), lower);
  VersionReader reader(text);
  Version version;
  reader.take("v");
  std::optional<int64_t> number = reader.number();
  if (!number) return std::nullopt;
  if (reader.take("!")) {
    version.epoch_ = *number;
    if (!(number = reader.number())) return std::nullopt;
  }
  version.release_.push_back(*number);
  while (reader.peek() == '.' && reader.rest().size() > 1 && is_digit(reader.rest()[1])) {
    reader.take(".");
    if (!(number = reader.number()) || version.release_.size() >= kMostParts) return std::nullopt;
    version.release_.push_back(*number);
  }
  const auto read_part = [&](auto matches, auto store) {
    const VersionReader before = reader;
    reader.take_separator();
    if (!matches()) {
      reader = before;
      return true;
    }
    reader.take_separator();
    const std::optional<int64_t> value = reader.number(true);
    if (value) store(*value);
    return value.has_value();
  };
  const auto pre = [&] {
    const auto word =
        std::find_if(kPreWords.begin(), kPreWords.end(), [&](const Word& w) { return reader.take(w.text); });
    if (word != kPreWords.end()) version.pre_ = word->rank;
    return word != kPreWords.end();
  };
  if (!read_part(pre, [&](int64_t value) { version.pre_number_ = value; })) return std::nullopt;
  if (reader.peek() == '-' && reader.rest().size() > 1 && is_digit(reader.rest()[1])) {  // "1.0-1" is 1.0.post1
    reader.take("-");
    if (!(number = reader.number())) return std::nullopt;
    version.post_ = *number;
  } else if (!read_part([&] { return reader.take("post") || reader.take("rev") || reader.take("r"); },
                        [&](int64_t value) { version.post_ = value; })) {
    return std::nullopt;
  }
  if (!read_part([&] { return reader.take("dev"); }, [&](int64_t value) { version.dev_ = value; })) return std::nullopt;
  if (version.dev_ != kNever && version.pre_ == kFinal && version.post_ < 0) version.pre_ = -1;
  if (reader.take("+")) {
    version.local_ = reader.rest();
    std::replace_if(version.local_.begin(), version.local_.end(), [](char c) { return c == '-' || c == '_'; }, '.');
    const bool plain = std::all_of(version.local_.begin(), version.local_.end(),
                                   [](char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || c == '.'; });
    if (!plain || version.local_.empty()) return std::nullopt;
    return version;
  }
  if (!reader.done()) return std::nullopt;
  return version;
}

Version Version::without_local() const {
  Version result = *this;
  result.local_.clear();
  return result;
}

int Version::compare(const Version& other) const {
  if (const int c = compare_numbers(epoch_, other.epoch_)) return c;
  for (size_t i = 0; i < std::max(release_.size(), other.release_.size()); ++i) {
    if (const int c = compare_numbers(release(i), other.release(i))) return c;
  }
  if (const int c = compare_numbers(pre_, other.pre_)) return c;
  if (const int c = compare_numbers(pre_number_, other.pre_number_)) return c;
  if (const int c = compare_numbers(post_, other.post_)) return c;
  if (const int c = compare_numbers(dev_, other.dev_)) return c;
  return compare_local(local_, other.local_);
}

std::optional<Specifiers> Specifiers::parse(std::string_view text) {
  Specifiers result;
  text = trim(text);
  if (text.starts_with('(') && text.ends_with(')')) text = trim(text.substr(1, text.size() - 2));
  while (!text.empty()) {
    const size_t size = std::min(text.find(','), text.size());
    std::string_view part = trim(text.substr(0, size));
    text.remove_prefix(std::min(size + 1, text.size()));
    if (part.empty()) continue;
    if (result.parts_.size() >= kMostParts) return std::nullopt;
    Part read;
    for (const std::string_view op : {"===", "==", "~=", "!=", "<=", ">=", "<", ">"}) {
      if (!part.starts_with(op)) continue;
      read.op = op;
      part = trim(part.substr(op.size()));
      break;
    }
    if (read.op.empty()) return std::nullopt;
    if ((read.op == "==" || read.op == "!=") && part.ends_with(".*")) {
      read.prefix = true;
      part.remove_suffix(2);
    }
    const std::optional<Version> version = Version::parse(part);
    if (!version) return std::nullopt;
    read.version = *version;
    if (read.op == "~=" && read.version.release_size() < 2) return std::nullopt;
    result.parts_.push_back(std::move(read));
  }
  return result;
}

bool Specifiers::holds(const Part& part, const Version& version) {
  const auto same_prefix = [&](size_t size) {
    if (version.epoch_ != part.version.epoch_) return false;
    for (size_t i = 0; i < size; ++i) {
      if (version.release(i) != part.version.release(i)) return false;
    }
    return true;
  };
  const Version plain = version.without_local();
  const Version& candidate = part.version.local_.empty() ? plain : version;
  if (part.op == "==") return part.prefix ? same_prefix(part.version.release_size()) : candidate == part.version;
  if (part.op == "!=") return part.prefix ? !same_prefix(part.version.release_size()) : !(candidate == part.version);
  if (part.op == "===") return version == part.version;
  if (part.op == "~=") return plain >= part.version && same_prefix(part.version.release_size() - 1);
  if (part.op == ">=") return plain >= part.version;
  if (part.op == "<=") return part.version >= plain;
  if (part.op == "<") {
    // "<2.0" does not take 2.0rc1, as PEP 440 has it.
    if (version.prerelease() && !part.version.prerelease() && same_prefix(version.release_size()) &&
        version.release_size() >= part.version.release_size()) {
      return false;
    }
    return plain < part.version;
  }
  if (version.post_ >= 0 && part.version.post_ < 0 &&
      same_prefix(std::max(version.release_size(), part.version.release_size()))) {
    return false;
  }
  return part.version < plain;
}

bool Specifiers::wants_newer_or_exact(const Version& version) const {
  return std::any_of(parts_.begin(), parts_.end(), [&](const Part& part) {
    if (holds(part, version)) return false;
    const bool exact = (part.op == "==" || part.op == "===") && !part.prefix;
    const bool lower = part.op == ">=" || part.op == ">" || part.op == "~=" || part.op == "==";
    return exact || (lower && version < part.version);
  });
}

bool Specifiers::allows(const Version& version) const {
  return std::all_of(parts_.begin(), parts_.end(), [&](const Part& part) { return holds(part, version); });
}

std::string normalized_name(std::string_view name) {
  std::string result;
  for (const char c : name) {
    const bool separator = c == '-' || c == '_' || c == '.';
    if (separator && result.ends_with('-')) continue;
    result += separator ? '-' : lower(c);
  }
  return result;
}

bool is_package_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestVersion && std::all_of(name.begin(), name.end(), [](char c) {
    return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || c == '-' || c == '_' || c == '.';
  });
}

}  // namespace leadline::guard
