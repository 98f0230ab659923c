// SPDX-License-Identifier: Apache-2.0
#include "import/saved_model/tensor_proto.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "core/error.h"
#include "core/string_tensor.h"
#include "import/saved_model/files_testing.h"

namespace leadline::saved_model {
namespace {

using testing::Proto;

std::vector<std::byte> decode(const Proto& proto) {
  const auto file = testing::wire_file(proto.bytes);
  const TensorProto tensor = read_tensor(WireReader(*file, "TensorProto"));
  const auto source = make_tensor_source(file, tensor, "the tensor");
  std::vector<std::byte> bytes(static_cast<size_t>(source->bytes()));
  source->read(bytes);
  return bytes;
}

template <typename T>
std::vector<T> decode_as(const Proto& proto) {
  const auto bytes = decode(proto);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

Proto tensor(TfType type, std::initializer_list<int64_t> dims) {
  return Proto().number(1, static_cast<uint64_t>(type)).add(2, testing::shape(dims));
}

uint32_t bits(float value) { return std::bit_cast<uint32_t>(value); }

TEST(TensorProto, RawBytesAreTaken) {
  EXPECT_EQ(decode_as<int32_t>(tensor(TfType::kInt32, {2}).text(4, std::string("\1\0\0\0\2\0\0\0", 8))),
            (std::vector<int32_t>{1, 2}));
}

TEST(TensorProto, RawBytesMustFitTheShape) {
  EXPECT_THROW(decode(tensor(TfType::kInt32, {3}).text(4, std::string(8, 'x'))), Error);
}

TEST(TensorProto, TheLastValueRepeats) {
  EXPECT_EQ(decode_as<float>(tensor(TfType::kFloat, {2, 2}).fixed32(5, bits(1.5F)).fixed32(5, bits(-2))),
            (std::vector<float>{1.5F, -2, -2, -2}));
  EXPECT_EQ(decode_as<int64_t>(tensor(TfType::kInt64, {3}).number(10, ~0ULL)), (std::vector<int64_t>{-1, -1, -1}));
}

TEST(TensorProto, NoValuesAreZeros) {
  EXPECT_EQ(decode_as<uint8_t>(tensor(TfType::kUInt8, {3})), (std::vector<uint8_t>{0, 0, 0}));
  EXPECT_TRUE(decode(tensor(TfType::kFloat, {0, 5}).fixed32(5, bits(1))).empty());
}

TEST(TensorProto, SmallTypesComeFromWiderFields) {
  EXPECT_EQ(decode_as<int8_t>(tensor(TfType::kInt8, {2}).number(7, ~0ULL).number(7, 5)), (std::vector<int8_t>{-1, 5}));
  EXPECT_EQ(decode_as<uint8_t>(tensor(TfType::kBool, {2}).number(11, 1).number(11, 0)), (std::vector<uint8_t>{1, 0}));
  EXPECT_EQ(decode_as<uint16_t>(tensor(TfType::kHalf, {1}).number(13, 0x3C00)), (std::vector<uint16_t>{0x3C00}));
  EXPECT_EQ(decode_as<uint16_t>(tensor(TfType::kBFloat16, {2}).number(13, 0x3F80)),
            (std::vector<uint16_t>{0x3F80, 0x3F80}));
  EXPECT_EQ(decode_as<uint64_t>(tensor(TfType::kUInt64, {1}).number(17, ~0ULL)), (std::vector<uint64_t>{~0ULL}));
}

TEST(TensorProto, ComplexNumbersArePairs) {
  const auto one = tensor(TfType::kComplex64, {2}).fixed32(9, bits(1)).fixed32(9, bits(2));
  // Two values in one packed field make one number, which repeats.
  const auto packed =
      tensor(TfType::kComplex64, {2}).text(9, testing::little_endian(bits(1), 4) + testing::little_endian(bits(2), 4));
  EXPECT_EQ(decode_as<float>(packed), (std::vector<float>{1, 2, 1, 2}));
  EXPECT_EQ(decode_as<float>(one), (std::vector<float>{1, 2, 1, 2}));
  EXPECT_THROW(decode(tensor(TfType::kComplex64, {2}).fixed32(9, bits(1))), Error);
}

TEST(TensorProto, StringsUseTheLayoutOfStringTensors) {
  const auto bytes = decode(tensor(TfType::kString, {3}).text(8, "ab").text(8, ""));
  ASSERT_EQ(string_tensor_problem(bytes, 3), "");
  const StringTensorReader reader(bytes);
  EXPECT_EQ(reader[0], "ab");
  EXPECT_EQ(reader[1], "");
  EXPECT_EQ(reader[2], "");
}

TEST(TensorProto, ImpossibleShapesAreRefused) {
  EXPECT_THROW(decode(tensor(TfType::kFloat, {-1})), Error);
  EXPECT_THROW(decode(tensor(TfType::kFloat, {1LL << 40, 1LL << 40})), Error);
  EXPECT_THROW(decode(tensor(TfType::kDouble, {1LL << 61})), Error);
  EXPECT_THROW(decode(tensor(TfType::kString, {1LL << 40}).text(8, "abc")), Error);
  EXPECT_THROW(decode(tensor(TfType::kVariant, {1})), Error);
}

}  // namespace
}  // namespace leadline::saved_model
