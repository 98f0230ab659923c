// SPDX-License-Identifier: Apache-2.0
#include "leadline/names.h"

#include <gtest/gtest.h>

#include <string>

namespace leadline {
namespace {

std::string message_of(auto&& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Names, EveryValueIsFoundByItsName) {
  for (int i = 0; i <= static_cast<int>(QuantizationMode::kDynamicInt2); ++i) {
    const auto mode = static_cast<QuantizationMode>(i);
    EXPECT_EQ(parse_quantization_mode(quantization_mode_name(mode)), mode);
  }
  for (int i = 0; i <= static_cast<int>(CalibrationMethod::kKl); ++i) {
    const auto method = static_cast<CalibrationMethod>(i);
    EXPECT_EQ(parse_calibration_method(calibration_method_name(method)), method);
  }
  EXPECT_EQ(parse_tune_metric("same-top"), TuneMetric::kSameTop);
  EXPECT_STREQ(tune_metric_name(TuneMetric::kCosine), "cosine");
  for (int i = 0; i < static_cast<int>(ErrorCode::kTimeout); ++i) {
    EXPECT_STRNE(error_code_name(static_cast<ErrorCode>(i)), error_code_name(static_cast<ErrorCode>(i + 1)));
  }
  EXPECT_EQ(parse_io_type("uint8", "input_type"), DType::kUInt8);
}

TEST(Names, DashesAndUnderscoresAreTheSame) {
  EXPECT_EQ(parse_calibration_method("min-max"), CalibrationMethod::kMinMax);
  EXPECT_EQ(parse_quantization_mode("weight-only-int8"), QuantizationMode::kWeightOnlyInt8);
}

TEST(Names, OtherTextsAreRefusedWithTheNames) {
  EXPECT_EQ(message_of([] { parse_calibration_method("best", "--method"); }),
            "--method is 'best', expected one of: min_max, moving_average, percentile, mse, kl");
  EXPECT_EQ(message_of([] { parse_io_type("int64", "input_type"); }),
            "input_type is 'int64', expected one of: float32, int8, uint8, int16");
  EXPECT_EQ(message_of([] { require_io_type(DType::kInt64, "input_type"); }),
            "input_type is int64, expected one of: float32, int8, uint8, int16");
  EXPECT_EQ(quantization_mode_names(),
            "int8, int16x8, dynamic, float16, weight_only_int8, weight_only_int4, dynamic_int4 or dynamic_int2");
  EXPECT_EQ(weight_rounding_names(), "nearest, mse or comq");
}

}  // namespace
}  // namespace leadline
