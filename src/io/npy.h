// SPDX-License-Identifier: Apache-2.0
// numpy's .npy and .npz files. Files are untrusted; arrays are streamed into memory that the caller has, so that
// reading one takes no memory that grows with it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/byte_source.h"
#include "leadline/types.h"

namespace leadline {

/// Element type as numpy writes it: '<f4' is kind 'f' with 4 bytes.
struct ArrayType {
  char order = '|';  ///< '<', '>' or '|'
  char kind = 'f';   ///< b i u f c S U V
  int64_t item_bytes = 0;
  std::string text;  ///< "<f4"
};

struct ArrayHeader {
  ArrayType type;
  Shape shape;
  bool fortran_order = false;
  int64_t elements = 0;
  int64_t bytes = 0;  ///< of the data
};

/// An array of a file, with its header read and its data ahead.
class ArrayReader {
 public:
  /// `where` names the array in messages. Throws Error(kIo) when the header is not one of version 1 to 3 or the data do
  /// not reach to its end.
  ArrayReader(std::unique_ptr<ByteSource> source, std::string where);

  const ArrayHeader& header() const { return header_; }
  const std::string& where() const { return where_; }
  /// Reads all elements, in C order. `out` has header().bytes bytes. Can be called once.
  void read(std::span<std::byte> out);
  /// Reads the next elements, in C order, as many as fill `out`. Of an array in Fortran order only all at once. Throws
  /// Error(kInvalidArgument) beyond the end.
  void read_next(std::span<std::byte> out);
  /// The elements of an array of kind 'S' or 'U', as UTF-8 and without the zeros at their ends. Can be called once.
  std::vector<std::string> read_strings();

 private:
  void parse(std::string_view text);

  std::unique_ptr<ByteSource> source_;
  std::string where_;
  ArrayHeader header_;
  int64_t done_ = 0;  // bytes that read_next() returned
};

struct NamedArray {
  std::string name;  ///< empty for a .npy file
  std::unique_ptr<ArrayReader> array;
};

/// The arrays of a .npy or .npz file; which of them it is, its first bytes say. Throws Error(kIo).
std::vector<NamedArray> open_arrays(const std::string& path);

/// numpy's name of `type` ("<f4"); nothing for types that have no fixed number of whole bytes. Types that numpy does
/// not know (bfloat16, float8) are raw bytes: "<V2", "|V1".
std::optional<std::string> npy_descr(DType type);
/// The type of such an array; nothing for strings, raw bytes and what Leadline does not have.
std::optional<DType> array_dtype(const ArrayType& type);
/// The type of such a file as Leadline names it ("float32"), for messages.
std::string type_name(const ArrayType& type);

/// Header of a .npy file of version 1 for an array in C order.
std::string npy_header(std::string_view descr, const Shape& shape);

}  // namespace leadline
