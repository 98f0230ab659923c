// SPDX-License-Identifier: Apache-2.0
// numpy's files, as the program reads them: arrays alone, as inputs of a model, and as samples.
#include "io/npy.h"

#include <map>

#include "cli/tensor_io.h"
#include "leadline/error.h"
#include "leadline/sample_reader.h"
#include "leadline/samples.h"
#include "readers/archive.h"
#include "readers/models.h"
#include "readers/readers.h"

namespace leadline::fuzz {
namespace {

void read_arrays(const std::string& path) {
  for (NamedArray& named : open_arrays(path)) {
    const ArrayHeader& header = named.array->header();
    use(type_name(header.type));
    if (header.type.kind == 'S' || header.type.kind == 'U') {
      for (const std::string& text : named.array->read_strings()) use(text);
    } else if (header.bytes <= kBudget) {
      std::vector<std::byte> data(static_cast<size_t>(header.bytes));
      named.array->read(data);
      use(as_text(data));
    }
  }
}

/// As `leadline run --input` does it.
void read_inputs(const std::string& path, Interpreter& interpreter) {
  for (NamedArray& named : open_arrays(path)) {
    for (const int index : interpreter.inputs()) {
      const TensorInfo info = interpreter.tensor_info(index);
      if (!named.name.empty() && named.name != info.name) continue;
      try {
        cli::check_type({index, info.name, info.name}, info, *named.array);
      } catch (const Error&) {
        continue;
      }
      if (named.array->header().shape != info.shape) continue;
      cli::load_input(interpreter, index, *named.array);
      break;
    }
  }
}

void run(Bytes bytes) {
  static MemoryFile file;
  static const Model model = input_model();
  static Interpreter interpreter(model);
  file.set(bytes);
  interpreter.allocate();
  read_arrays(file.path());
  read_inputs(file.path(), interpreter);
  static const Model one_input = float_model();
  static Interpreter calibrated(one_input);
  const auto source = open_samples(file.path(), one_input);
  SampleReader samples(one_input, *source, {.limit = 20});
  while (const Sample* sample = samples.next()) {
    set_inputs(calibrated, *sample);
    calibrated.invoke();
  }
}

std::string npy(const std::string& dictionary, const std::string& data, int version = 1) {
  std::string text = "\x93NUMPY";
  text += static_cast<char>(version);
  text += '\0';
  const auto size = static_cast<uint32_t>(dictionary.size());
  text.append(reinterpret_cast<const char*>(&size), version == 1 ? 2 : 4);
  return text + dictionary + data;
}

std::vector<std::string> seeds() {
  const std::string x = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 4), }", std::string(16, '\0'));
  const std::string ids = npy("{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }", std::string(8, '\1'));
  const std::string words = npy("{'descr': '<U2', 'fortran_order': False, 'shape': (2,), }",
                                std::string("a\0\0\0b\0\0\0c\0\0\0\0\0\0\0", 16));
  const std::string many =
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 6, 6, 2), }", std::string(864, '\0'), 2);
  return {x,
          many,
          ids,
          words,
          npy("{'descr': '|S3', 'fortran_order': True, 'shape': (2,), }", "abcdef"),
          npy("{'descr': '<f8', 'fortran_order': True, 'shape': (2, 3), }", std::string(48, '\2'), 3),
          zip({{"x.npy", x}, {"ids.npy", ids}, {"words.npy", words}}),
          zip({{"images.npy", many}}, true)};
}

std::vector<std::string> words() {
  return {"'descr': ",  "'fortran_order': True",
          "'shape': (", "'<f4'",
          "'|O'",       "'<U1'",
          "'|S1'",      "(0,)",
          "()",         "1L",
          "PK\3\4",     "PK\1\2",
          "x.npy",      "\x93NUMPY"};
}

}  // namespace

Reader npy_reader() {
  return {.name = "npy", .run = run, .seeds = seeds, .words = words, .repair = repair_zip, .most_bytes = 2048};
}

}  // namespace leadline::fuzz
