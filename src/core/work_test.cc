// SPDX-License-Identifier: Apache-2.0
#include "core/work.h"

#include <gtest/gtest.h>

#include <array>
#include <utility>
#include <vector>

#include "core/error.h"

namespace leadline {
namespace {

struct Enough {};
using Pieces = std::vector<std::pair<int64_t, int64_t>>;

Pieces pieces_of(int64_t count, double cost) {
  Pieces pieces;
  for_pieces(count, cost, [&](int64_t begin, int64_t end) { pieces.emplace_back(begin, end); });
  return pieces;
}

TEST(ForPieces, WithoutALimitThereIsOnePiece) {
  EXPECT_EQ(pieces_of(1'000'000'000, 1000), (Pieces{{0, 1'000'000'000}}));
  EXPECT_EQ(pieces_of(3, kWholePiece), (Pieces{{0, 3}}));
  EXPECT_TRUE(pieces_of(0, 1).empty());
  EXPECT_TRUE(pieces_of(-1, 1).empty());
}

TEST(ForPieces, AreCutByCostAndAskedBetween) {
  int asked = 0;
  const WorkLimit limit([&] { ++asked; });
  const double half = kPieceCost / 2;
  EXPECT_EQ(pieces_of(5, half), (Pieces{{0, 2}, {2, 4}, {4, 5}}));
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(pieces_of(3, kWholePiece), (Pieces{{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_EQ(asked, 4);
  EXPECT_EQ(pieces_of(2, half), (Pieces{{0, 2}})) << "a piece in all";
  EXPECT_EQ(pieces_of(5, 0), (Pieces{{0, 5}}));
  EXPECT_EQ(asked, 4) << "no limit is asked before the first piece or after the last";
}

TEST(ForPieces, EndWhenALimitThrows) {
  const WorkLimit limit([] { throw Enough{}; });
  int64_t done = 0;
  EXPECT_THROW(for_items(10, kWholePiece, [&](int64_t) { ++done; }), Enough);
  EXPECT_EQ(done, 1);
}

TEST(ForPieces, EndWhenTheBodyIsDone) {
  const WorkLimit limit([] {});
  int64_t calls = 0;
  for_items(1'000'000, kPieceCost / 3, [&](int64_t i) { return ++calls < 5 && i < 100; });
  EXPECT_EQ(calls, 5);
  repeat_while(1, [&] { return ++calls < 100; });
  EXPECT_EQ(calls, 100);
}

TEST(ForPieces, TellProgressOfEveryPiece) {
  const WorkLimit limit([] {});
  std::vector<int64_t> seen;
  const Progress progress = [&](int64_t done, int64_t total) {
    EXPECT_EQ(total, 5);
    seen.push_back(done);
    return done < 4;
  };
  ProgressCounter counter(progress, 5);
  try {
    for_pieces(5, kPieceCost / 2, counter, [](int64_t, int64_t) {});
    FAIL() << "progress asked to stop";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCancelled);
  }
  EXPECT_EQ(seen, (std::vector<int64_t>{2, 4}));
}

/// Every cell is visited once, in row-major order of boxes, and cuts are at multiples of the units.
void check_boxes(const std::array<BoxAxis, 3>& axes, double cost, size_t least, size_t most) {
  const int64_t sizes[] = {axes[0].range.size(), axes[1].range.size(), axes[2].range.size()};
  std::vector<int> visits(static_cast<size_t>(sizes[0] * sizes[1] * sizes[2]));
  size_t boxes = 0;
  for_boxes<3>(axes, cost, [&](const std::array<IndexRange, 3>& box) {
    ++boxes;
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ((box[i].begin - axes[i].range.begin) % axes[i].unit, 0);
      EXPECT_GE(box[i].begin, axes[i].range.begin);
      EXPECT_LE(box[i].end, axes[i].range.end);
    }
    for (int64_t x = box[0].begin; x < box[0].end; ++x) {
      for (int64_t y = box[1].begin; y < box[1].end; ++y) {
        for (int64_t z = box[2].begin; z < box[2].end; ++z) {
          const int64_t cell =
              ((x - axes[0].range.begin) * sizes[1] + y - axes[1].range.begin) * sizes[2] + z - axes[2].range.begin;
          ++visits[static_cast<size_t>(cell)];
        }
      }
    }
  });
  for (const int count : visits) ASSERT_EQ(count, 1);
  EXPECT_GE(boxes, least);
  EXPECT_LE(boxes, most);
}

TEST(ForBoxes, CutTheFirstAxisAndTheNextOnlyWhereOneUnitIsTooLong) {
  int asked = 0;
  const WorkLimit limit([&] { ++asked; });
  const std::array<BoxAxis, 3> axes{{{{2, 12}, 2}, {{5, 10}, 3}, {{0, 9}, 4}}};
  check_boxes(axes, 1, 1, 1);
  EXPECT_EQ(asked, 0);
  check_boxes(axes, kPieceCost / 90, 5, 5);  // a unit of the first axis is a piece
  EXPECT_EQ(asked, 4);
  check_boxes(axes, kLongPieceCost / 80, 10, 10);  // too long: the second axis too
  asked = 0;
  check_boxes({{{{0, 64}, 64}, {{0, 4000}}, {{0, 1}}}}, kPieceCost / 640, 400, 400);  // a unit is 64 cells wide
  EXPECT_EQ(asked, 399);
  check_boxes(axes, kLongPieceCost, 5 * 2 * 3, 5 * 2 * 3);  // the third as well
  check_boxes(axes, kWholePiece, 5 * 2 * 3, 5 * 2 * 3);
}

TEST(ForBoxes, EmptyAxesAreSafe) {
  const WorkLimit limit([] {});
  int calls = 0;
  const auto count = [&](const auto&) { ++calls; };
  for_boxes<2>({{{{0, 0}}, {{0, 5}}}}, kWholePiece, count);
  EXPECT_EQ(calls, 0) << "nothing along the first";
  for_boxes<2>({{{{0, 3}}, {{0, 0}}}}, 1, count);
  EXPECT_EQ(calls, 1) << "once for an empty one";
}

TEST(CopyBytes, CopiesAndFillsEverything) {
  const WorkLimit limit([] {});
  const auto size = static_cast<size_t>(2 * kPieceCost / kByteCost) + 3;
  std::vector<std::byte> from(size, std::byte{7});
  std::vector<std::byte> to(size + 1, std::byte{1});
  copy_bytes(to.data(), from.data(), static_cast<int64_t>(size));
  from.push_back(std::byte{1});
  EXPECT_TRUE(to == from);
  fill_bytes(to.data(), std::byte{9}, static_cast<int64_t>(size));
  EXPECT_EQ(to[0], std::byte{9});
  EXPECT_EQ(to[size - 1], std::byte{9});
  EXPECT_EQ(to[size], std::byte{1});
}

}  // namespace
}  // namespace leadline
