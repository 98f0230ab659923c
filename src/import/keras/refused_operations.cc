// SPDX-License-Identifier: Apache-2.0
// Operations of keras.ops that cannot be converted, each with why.
#include <algorithm>
#include <array>
#include <span>

#include "import/keras/operations.h"

namespace leadline::keras {
namespace {

constexpr std::string_view kComplex[] = {"Angle", "Imag",  "Polar",  "ViewAsComplex", "ViewAsReal", "FFT",  "FFT2",
                                         "IFFT2", "IRFFT", "Isreal", "RFFT",          "STFT",       "ISTFT"};
constexpr std::string_view kUnknownSize[] = {"Nonzero",  "Unique", "Arange",   "Bincount", "Histogram",
                                             "Linspace", "Full",   "Logspace", "Geomspace"};
constexpr std::string_view kPython[] = {"Map",       "Scan", "AssociativeScan", "Switch",
                                        "WhileLoop", "Cond", "ForiLoop",        "VectorizedMap"};
constexpr std::string_view kMatrix[] = {
    "Cholesky", "CholeskyInverse", "Det",     "Eig",    "Eigh", "Inv",       "LuFactor", "Qr", "Solve", "SVD",
    "Lstsq",    "SolveTriangular", "Slogdet", "Logdet", "Pinv", "MatrixRank"};
constexpr std::string_view kTraining[] = {"BinaryCrossentropy",
                                          "CategoricalCrossentropy",
                                          "SparseCategoricalCrossentropy",
                                          "CTCLoss",
                                          "JVP",
                                          "PSNR",
                                          "SSIM",
                                          "InTopK"};

struct Reason {
  std::span<const std::string_view> names;
  std::string_view text;
};

const Reason kReasons[] = {
    {kComplex, "of keras.ops works on complex numbers, for which the format has hardly any ops"},
    {kUnknownSize, "of keras.ops has a result whose size depends on data, or nothing that depends on the input"},
    {kPython, "of keras.ops calls Python functions, which a file does not hold"},
    {kMatrix, "of keras.ops factors or inverts matrices, for which the format has no op"},
    {kTraining, "of keras.ops measures or trains models and has no place in a converted one"},
};

}  // namespace

std::string_view operation_refusal(std::string_view class_name) {
  for (const Reason& reason : kReasons) {
    if (std::find(reason.names.begin(), reason.names.end(), class_name) != reason.names.end()) return reason.text;
  }
  return "of keras.ops is not known to Leadline";
}

}  // namespace leadline::keras
