// SPDX-License-Identifier: Apache-2.0
#include "report/debug_commands.h"

#include <gtest/gtest.h>

#include <string>

#include "core/pattern_text.h"
#include "report/debug_data.h"

namespace leadline::report {
namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(PageCommands, WordsOfAShellAreOneArgument) {
  EXPECT_EQ(shell_word("models/a-1.tflite"), "models/a-1.tflite");
  EXPECT_EQ(shell_word("my model.tflite"), "'my model.tflite'");
  EXPECT_EQ(shell_word("a'b;rm -rf $HOME"), "'a'\\''b;rm -rf $HOME'");
  EXPECT_EQ(shell_word("-o"), "'./-o'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(PageCommands, LiteralsOfPythonEndWhereTheyShould) {
  EXPECT_EQ(python_literal("a\"b\\c\nd"), "\"a\\\"b\\\\c\\x0ad\"");
}

TEST(PageCommands, PatternsMatchTheNameAlone) { EXPECT_EQ(exact_pattern("a.b[0]/c+d"), "^a\\.b\\[0\\]/c\\+d$"); }

TEST(DebugNames, BlocksThatDifferInNumbersAreEqual) {
  EXPECT_EQ(without_numbers("block_12/conv_3"), without_numbers("block_1/conv_20"));
  EXPECT_NE(without_numbers("block_12/conv"), without_numbers("block_12/dense"));
}

TEST(DebugText, TimesThatTheMachineAloneChangesAreTheSame) {
  DebugResult result;
  DebugSuggestion suggestion;
  suggestion.what = "choose other ranges";
  suggestion.before.seconds = 0.100;
  suggestion.after.seconds = 0.104;
  result.suggestions = {suggestion};
  EXPECT_TRUE(contains(result.to_text(), "same time"));
  result.suggestions[0].after.seconds = 0.120;
  EXPECT_TRUE(contains(result.to_text(), "+20 % time"));
}

TEST(PageCommands, RepeatTheRunAndKeepTheFirstSuspectsInFloat) {
  DebugResult result;
  result.layers.resize(5);
  for (int i = 0; i < 5; ++i) {
    result.layers[static_cast<size_t>(i)].name = "block/" + std::to_string(i) + "_int8";
    result.layers[static_cast<size_t>(i)].float_name = "block/" + std::to_string(i);
    result.suspects.push_back({4 - i, 0.5, "rounding", "why", "try"});
  }
  DebugRun run;
  run.float_model = "my model.tflite";
  run.quantized_model = "out/q.tflite";
  const auto commands = page_commands(result, run);
  ASSERT_EQ(commands.size(), 3U);
  EXPECT_EQ(commands[0].text, "leadline debug 'my model.tflite' out/q.tflite --data samples.npz --report report.html");
  EXPECT_TRUE(contains(commands[1].text, "leadline.debug(\"my model.tflite\", \"out/q.tflite\", dataset)"));
  EXPECT_TRUE(contains(commands[2].text, "^block/4$"));
  EXPECT_TRUE(contains(commands[2].text, "^block/2$"));
  EXPECT_FALSE(contains(commands[2].text, "^block/1$"));

  result.suspects.clear();
  EXPECT_EQ(page_commands(result, run).size(), 2U);
  result.suspects.push_back({99, 0.5, "rounding", "why", "try"});  // no such layer
  EXPECT_EQ(page_commands(result, run).size(), 2U);
}

}  // namespace
}  // namespace leadline::report
