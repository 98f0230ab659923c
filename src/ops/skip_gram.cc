// SPDX-License-Identifier: Apache-2.0
// SKIP_GRAM: all sequences of n words of a text that leave out at most this many words between two neighbours.
#include "ops/skip_gram.h"

#include <algorithm>
#include <memory>
#include <string_view>

#include "ops/families.h"
#include "ops/movement.h"
#include "ops/resources.h"

namespace leadline::ops {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// Calls use(word) for the words of a text, split as TFLite does: white space at the very start swallows what follows
/// it up to the next white space, and a text of one character is a word.
template <typename Use>
void for_each_word(std::string_view text, const Use& use) {
  size_t begin = 0;
  for (size_t i = 1; i < text.size(); ++i) {
    if (!is_space(text[i])) continue;
    if (i > begin && !is_space(text[begin])) use(text.substr(begin, i - begin));
    begin = i + 1;
  }
  if (text.size() > begin) use(text.substr(begin));
}

/// What the walk over a text needs, in one block: its words, the numbers of a gram's words, and room to join them. No
/// gram is longer than the text.
struct Space {
  int64_t words = 0;
  int64_t gram = 0;
  int64_t text = 0;

  Space(std::string_view source, const SkipGramAttributes& a) : text(static_cast<int64_t>(source.size())) {
    for_each_word(source, [&](std::string_view) { ++words; });
    gram = std::clamp<int64_t>(a.ngram_size, 0, words);
  }
  int64_t gram_offset() const { return words * static_cast<int64_t>(sizeof(std::string_view)); }
  int64_t text_offset() const { return gram_offset() + gram * static_cast<int64_t>(sizeof(size_t)); }
  int64_t bytes() const { return text_offset() + text; }
};

/// Walks the sequences depth first, longer ones before the shorter one they begin with.
class GramWalk {
 public:
  GramWalk(std::string_view text, const SkipGramAttributes& attributes, const Space& space, std::byte* memory)
      : words_(reinterpret_cast<std::string_view*>(memory)),
        gram_(reinterpret_cast<size_t*>(memory + space.gram_offset())),
        size_(static_cast<size_t>(std::max(0, attributes.ngram_size))),
        reach_(attributes.max_skip_size < 0 ? 0 : static_cast<size_t>(attributes.max_skip_size) + 1),
        all_(attributes.include_all_ngrams) {
    for_each_word(text, [&](std::string_view word) { std::construct_at(words_ + word_count_++, word); });
  }

  /// Calls use(words of the gram) until it returns false.
  template <typename Use>
  void for_each(const Use& use) {
    if (size_ == 0 || word_count_ < size_) return;
    push(0);
    const double cost = 16 + static_cast<double>(std::min(size_, word_count_));
    bool wanted = true;
    repeat_while(cost, [&] {
      // Go on to a longer gram while there is a word for it, and enough of them for a whole one where only those count.
      while (depth_ < size_ && reach_ > 0 && fits(last() + 1)) push(last() + 1);
      // Use this one, and shorter ones whose last word cannot move on.
      bool moved = false;
      repeat_while(cost, [&] {
        wanted = !(all_ || depth_ == size_) || use(std::span<const size_t>(gram_, depth_));
        if (wanted) moved = advance();
        return wanted && !moved && depth_ > 0;
      });
      return wanted && depth_ > 0;
    });
  }

  std::string_view word(size_t i) const { return words_[i]; }

 private:
  size_t last() const { return gram_[depth_ - 1]; }
  void push(size_t word) { gram_[depth_++] = word; }

  /// Whether `word` may come next.
  bool fits(size_t word) const { return word < word_count_ && (all_ || word_count_ - word >= size_ - depth_); }

  /// Moves the last word on by one; removes it and returns false when it cannot.
  bool advance() {
    const size_t next = last() + 1;
    --depth_;
    if (!fits(next) || (depth_ > 0 && next - last() > reach_)) return false;
    push(next);
    return true;
  }

  std::string_view* words_;
  size_t word_count_ = 0;
  size_t* gram_;  // numbers of its words
  size_t depth_ = 0;
  size_t size_;
  size_t reach_;  // distance of two neighbours at most
  bool all_;
};

void infer_skip_gram(InferContext& c) {
  c.require_input_type(0, {DType::kString});
  c.require_output_type(0, {DType::kString});
  if (!c.known(0)) return c.defer();
  const StringTensorReader strings = known_strings(c, 0);
  c.require(strings.size() >= 1, "there is no text");
  const auto& attributes = c.attributes<SkipGramAttributes>();
  const Space space(strings[0], attributes);
  const Workspace workspace(c.host().resources(), space.bytes());
  GramWalk walk(strings[0], attributes, space, workspace.data());
  int64_t count = 0;
  int64_t characters = 0;
  walk.for_each([&](std::span<const size_t> gram) {
    ++count;
    for (const size_t word : gram) characters += static_cast<int64_t>(walk.word(word).size());
    characters += static_cast<int64_t>(gram.size()) - 1;
    return string_tensor_bytes(count, characters).has_value();
  });
  c.set_output_shape(0, {count});
  set_string_bytes(c, 0, count, characters);
}

void run_skip_gram(const RunContext& run, const SkipGramAttributes& attributes, const Space& space) {
  const TensorView& out = run.output(0);
  GramWalk walk(run_strings(run, run.input(0))[0], attributes, space, run.scratch());
  StringTensorWriter writer({out.data, static_cast<size_t>(out.bytes)}, out.elements());
  char* const text = reinterpret_cast<char*>(run.scratch() + space.text_offset());
  walk.for_each([&](std::span<const size_t> gram) {
    char* end = text;
    for (const size_t word : gram) {
      if (end != text) *end++ = ' ';
      end = std::copy(walk.word(word).begin(), walk.word(word).end(), end);
    }
    writer.add({text, static_cast<size_t>(end - text)});
    return true;
  });
}

std::unique_ptr<Kernel> prepare_skip_gram(PrepareContext& c) {
  const auto& attributes = c.attributes<SkipGramAttributes>();  // the graph outlives its kernels
  const Space space(known_strings(c, 0)[0], attributes);
  c.request_scratch(space.bytes());
  return make_kernel([&attributes, space](RunContext& run) { run_skip_gram(run, attributes, space); });
}

}  // namespace

void register_skip_gram(Registry& registry) {
  registry.add({.id = op::kSkipGram,
                .min_inputs = 1,
                .max_inputs = 1,
                .required_inputs = 1,
                .options = builtin_options(18),
                .make_attributes = make_attributes<SkipGramAttributes>,
                .infer = infer_skip_gram,
                .prepare = prepare_skip_gram,
                .types = "string"});
}

}  // namespace leadline::ops
