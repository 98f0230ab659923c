// SPDX-License-Identifier: Apache-2.0
// .npy and .npz: what numpy writes is read, what is written is read back, damaged files are refused.
#include "io/npy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "io/zip_writer.h"
#include "leadline/error.h"

namespace leadline {
namespace {

class Npy : public testing::Test {
 protected:
  Npy() : path_(testing::TempDir() + "leadline_npy_" + std::to_string(::getpid()) + ".bin") {}
  ~Npy() override { std::remove(path_.c_str()); }

  void save(const std::string& contents) const { std::ofstream(path_, std::ios::binary) << contents; }
  std::string load() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// The message of the Error(kIo) of opening and reading everything; empty when there is none.
  std::string problem() const {
    try {
      for (NamedArray& a : open_arrays(path_)) {
        std::vector<std::byte> data(static_cast<size_t>(a.array->header().bytes));
        a.array->read(data);
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kIo) << error.what();
      return error.what();
    }
    return {};
  }

  std::string path_;
};

std::string npy(const std::string& dictionary, const std::string& data, int version = 1) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(version);
  text += '\0';
  const auto size = static_cast<uint32_t>(dictionary.size());
  text.append(reinterpret_cast<const char*>(&size), version == 1 ? 2 : 4);
  return text + dictionary + data;
}

template <typename T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <typename T>
std::vector<T> read_all(ArrayReader& array) {
  std::vector<T> values(static_cast<size_t>(array.header().elements));
  array.read(std::as_writable_bytes(std::span(values)));
  return values;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(Npy, ReadsAllVersions) {
  for (int version = 1; version <= 3; ++version) {
    save(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }\n", raw<float>({1, 2, 3, 4}), version));
    auto arrays = open_arrays(path_);
    ASSERT_EQ(arrays.size(), 1U);
    EXPECT_EQ(arrays[0].name, "");
    EXPECT_EQ(arrays[0].array->header().shape, Shape({2, 2}));
    EXPECT_EQ(type_name(arrays[0].array->header().type), "float32");
    EXPECT_EQ(read_all<float>(*arrays[0].array), (std::vector<float>{1, 2, 3, 4}));
  }
}

TEST_F(Npy, TransposesFortranOrder) {
  save(npy("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3)}", raw<int16_t>({1, 4, 2, 5, 3, 6})));
  auto arrays = open_arrays(path_);
  EXPECT_EQ(read_all<int16_t>(*arrays[0].array), (std::vector<int16_t>{1, 2, 3, 4, 5, 6}));
}

TEST_F(Npy, ReadsScalarsAndEmptyArrays) {
  save(npy("{'shape': (), 'fortran_order': False, 'descr': '|u1'}", "\x07"));
  auto scalar = open_arrays(path_);
  EXPECT_EQ(scalar[0].array->header().shape.rank(), 0);
  EXPECT_EQ(read_all<uint8_t>(*scalar[0].array), (std::vector<uint8_t>{7}));
  save(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (0, 3)}", ""));
  EXPECT_EQ(problem(), "");
}

TEST_F(Npy, ReadsStrings) {
  save(npy("{'descr': '|S3', 'fortran_order': False, 'shape': (2,)}", std::string("ab\0xyz", 6)));
  EXPECT_EQ(open_arrays(path_)[0].array->read_strings(), (std::vector<std::string>{"ab", "xyz"}));
  save(npy("{'descr': '<U2', 'fortran_order': False, 'shape': (2,)}", raw<uint32_t>({'a', 0, 0xE9, 0x1F6A2})));
  EXPECT_EQ(open_arrays(path_)[0].array->read_strings(), (std::vector<std::string>{"a", "\xC3\xA9\xF0\x9F\x9A\xA2"}));
}

/// Nine megabytes of single characters would be 300 megabytes of strings.
TEST_F(Npy, RefusesStringsThatTakeFarMoreMemoryThanTheFile) {
  save(npy(
      "{'descr': '|S1', 'fortran_order': False, 'shape': (9000000,)}",  // NOLINTNEXTLINE(bugprone-string-constructor)
      std::string(9000000, 'a')));
  EXPECT_THROW(open_arrays(path_)[0].array->read_strings(), Error);
}

TEST_F(Npy, RefusesDamagedHeaders) {
  for (const char* text : {"", "{", "{}", "{'descr': '<f4', 'fortran_order': False}",
                           "{'descr': '<f4', 'fortran_order': 1, 'shape': (1,)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
                           "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x",
                           "{'descr': '<q4', 'fortran_order': False, 'shape': ()}",
                           "{'descr': '<f', 'fortran_order': False, 'shape': ()}", "{'descr': '<f4"}) {
    save(npy(text, "12345678"));
    EXPECT_NE(problem(), "") << text;
  }
}

TEST_F(Npy, RefusesSizesThatOverflowOrAreCutOff) {
  save(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 2)}", ""));
  EXPECT_TRUE(contains(problem(), "does not fit")) << problem();
  save(npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}", "12345678"));
  EXPECT_TRUE(contains(problem(), "16 bytes of data expected, 8 present")) << problem();
  save(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", "1234"));
  EXPECT_TRUE(contains(problem(), "dimensions")) << problem();
}

TEST_F(Npy, NamesWhatItDoesNotTake) {
  save(npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "12345678"));
  EXPECT_TRUE(contains(problem(), "pickled")) << problem();
  save(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", "1234"));
  EXPECT_TRUE(contains(problem(), "big-endian; save it as '<f4'")) << problem();
  save(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "1234"));
  EXPECT_TRUE(contains(problem(), "structured")) << problem();
  save("hello, this is text");
  EXPECT_TRUE(contains(problem(), "not a .npy array")) << problem();
}

TEST_F(Npy, EveryCutOfAFileIsRefused) {
  const std::string whole = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "12345678");
  for (size_t size = 0; size < whole.size(); ++size) {
    save(whole.substr(0, size));
    EXPECT_NE(problem(), "") << size;
  }
}

void write_npz(const std::string& path) {
  const std::vector<float> a = {1, 2, 3};
  const std::vector<int64_t> b = {-5};
  OutputFile file(path);
  ZipWriter zip(file);
  zip.add("a.npy", npy_header("<f4", Shape({3})), std::as_bytes(std::span(a)));
  zip.add("scope/b:0.npy", npy_header("<i8", Shape{}), std::as_bytes(std::span(b)));
  zip.finish();
  file.finish();
}

/// Ten megabytes with 60,000 arrays took two gigabytes.
TEST_F(Npy, RefusesArchivesOfVeryManyArrays) {
  {
    OutputFile file(path_);
    ZipWriter zip(file);
    for (int i = 0; i < 1025; ++i) zip.add(std::to_string(i) + ".npy", npy_header("<f4", Shape({0})), {});
    zip.finish();
    file.finish();
  }
  EXPECT_NE(problem().find("more than 1024 arrays"), std::string::npos) << problem();
}

TEST_F(Npy, EmptyArraysOfAnArchiveAreReadBack) {
  {
    OutputFile file(path_);
    ZipWriter zip(file);
    zip.add("none.npy", npy_header("<f4", Shape({0, 3})), {});
    zip.finish();
    file.finish();
  }
  EXPECT_EQ(problem(), "");
}

TEST_F(Npy, WrittenArchiveIsReadBack) {
  write_npz(path_);
  auto arrays = open_arrays(path_);
  ASSERT_EQ(arrays.size(), 2U);
  EXPECT_EQ(arrays[0].name, "a");
  EXPECT_EQ(read_all<float>(*arrays[0].array), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(arrays[1].name, "scope/b:0");
  EXPECT_EQ(arrays[1].array->header().shape.rank(), 0);
  EXPECT_EQ(read_all<int64_t>(*arrays[1].array), (std::vector<int64_t>{-5}));
}

TEST_F(Npy, EveryCutAndEveryChangedByteOfAnArchiveIsHarmless) {
  write_npz(path_);
  const std::string whole = load();
  for (size_t size = 0; size < whole.size(); ++size) {
    save(whole.substr(0, size));
    EXPECT_NE(problem(), "") << size;
  }
  for (size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {0x01, 0xFF}) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      save(damaged);
      problem();  // an error or not, but nothing worse
    }
  }
}

TEST_F(Npy, ChangedDataFailsTheChecksum) {
  write_npz(path_);
  std::string damaged = load();
  damaged[damaged.find(raw<float>({1, 2, 3}))] ^= 1;
  save(damaged);
  EXPECT_TRUE(contains(problem(), "checksum")) << problem();
}

TEST_F(Npy, FileThatIsNotFinishedIsNotLeftBehind) {
  save("old");
  {
    OutputFile file(path_);
    file.write("new");
  }
  EXPECT_EQ(load(), "old");
}

TEST_F(Npy, MissingFileIsAnIoError) { EXPECT_TRUE(contains(problem(), "cannot open")) << problem(); }

TEST(NpyHeader, DataStartAtAMultipleOf64AndShapesAreTuples) {
  for (const Shape& shape : {Shape{}, Shape({3}), Shape({3, 4}), Shape({100000, 200000, 300000, 4, 5, 6, 7, 8})}) {
    EXPECT_EQ(npy_header("<f4", shape).size() % 64, 0U);
  }
  EXPECT_TRUE(contains(npy_header("<f4", Shape({3})), "'shape': (3,),"));
  EXPECT_TRUE(contains(npy_header("<f4", Shape({3, 4})), "'shape': (3, 4),"));
  EXPECT_TRUE(contains(npy_header("<f4", Shape{}), "'shape': (),"));
}

TEST(NpyDescr, IsNumpysNameOfEveryType) {
  EXPECT_EQ(npy_descr(DType::kFloat32), "<f4");
  EXPECT_EQ(npy_descr(DType::kBool), "|b1");
  EXPECT_EQ(npy_descr(DType::kUInt8), "|u1");
  EXPECT_EQ(npy_descr(DType::kComplex128), "<c16");
  EXPECT_EQ(npy_descr(DType::kBFloat16), "<V2");
  EXPECT_EQ(npy_descr(DType::kInt4), std::nullopt);
  EXPECT_EQ(npy_descr(DType::kString), std::nullopt);
}

}  // namespace
}  // namespace leadline
