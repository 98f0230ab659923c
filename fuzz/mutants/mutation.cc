// SPDX-License-Identifier: Apache-2.0
#include "mutation.h"

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>

#include "leadline/types.h"

namespace leadline::fuzz {

std::string mutate(Subject& subject, Random& random) {
  static const std::vector<Mutation> all = [] {
    std::vector<Mutation> list;
    for (const auto& part : {tensor_mutations(), constant_mutations(), quantization_mutations(), node_mutations(),
                             graph_mutations(), file_mutations()}) {
      list.insert(list.end(), part.begin(), part.end());
    }
    return list;
  }();
  static const int total = [] {
    int sum = 0;
    for (const Mutation& mutation : all) sum += mutation.weight;
    return sum;
  }();
  constexpr int kTries = 8;
  for (int i = 0; i < kTries; ++i) {
    auto left = static_cast<int>(random.below(static_cast<size_t>(total)));
    for (const Mutation& mutation : all) {
      left -= mutation.weight;
      if (left >= 0) continue;
      if (mutation.apply(subject, random)) return mutation.name;
      break;
    }
  }
  return {};
}

int64_t odd_integer(Random& random, int64_t now) {
  const auto bits = static_cast<uint64_t>(now);  // which may wrap around
  switch (random.below(8)) {
    case 0:
      return static_cast<int64_t>(bits + 1);
    case 1:
      return static_cast<int64_t>(bits - 1);
    case 2:
      return now == 0 ? 2
                      : random.pick<int64_t>({static_cast<int64_t>(2 * bits), static_cast<int64_t>(-bits), now / 2});
    case 3:
    case 4:
      return random.between(-2, 9);
    case 5:
      return random.pick<int64_t>({15, 16, 17, 31, 32, 33, 63, 64, 100, 127, 128, 129, 255, 256, 257, 1000, 1024});
    default:
      return random.pick<int64_t>({-128,
                                   -32768,
                                   32767,
                                   32768,
                                   65535,
                                   65536,
                                   1 << 20,
                                   1 << 24,
                                   1 << 30,
                                   INT32_MAX,
                                   INT32_MAX - 1,
                                   INT32_MIN,
                                   INT32_MIN + 1,
                                   int64_t{1} << 31,
                                   UINT32_MAX,
                                   int64_t{1} << 32,
                                   int64_t{1} << 40,
                                   INT64_MAX,
                                   INT64_MIN,
                                   -1});
  }
}

float odd_float(Random& random) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  return random.pick<float>(
      {0.0F,           -0.0F,   1.0F,  -1.0F, 0.5F,   2.0F,          1e-45F, FLT_MIN,  FLT_MAX,  -FLT_MAX,
       1e-38F,         1e38F,   1e-6F, 1e6F,  127.0F, -128.0F,       255.5F, 32768.0F, 65504.0F, 2147483648.0F,
       -2147483648.0F, 9.3e18F, 1e20F, kInf,  -kInf,  std::nanf(""), 0.1F,   3.0F,     -7.25F,   1.0F / 256});
}

std::string odd_name(Random& random) {
  static const std::vector<std::string> names = {"",
                                                 "<script>alert(1)</script>",
                                                 "</script><img src=x onerror=y>",
                                                 "\x1b[31mred\x1b]0;title\x07",
                                                 "a\nb\rc\td",
                                                 "\xff\xfe\x80",
                                                 std::string("nul\0inside", 10),
                                                 "quote\"'\\`",
                                                 "{}",
                                                 "{0}{name}%s%n",
                                                 "\xe2\x80\xae"
                                                 "rtl",
                                                 "../../../etc/passwd",
                                                 "=1+1",
                                                 std::string(5000, 'x'),
                                                 "caf\xc3\xa9",
                                                 "\xed\xa0\x80",
                                                 "&amp;<>",
                                                 "same",
                                                 "same",
                                                 "serving_default",
                                                 "min_runtime_version",
                                                 "NumericVerify",
                                                 "__proto__",
                                                 "\xf4\x90\x80\x80",
                                                 "]]>",
                                                 "a,b;c"};
  return random.pick(names);
}

TablePtr pick_tensor(const TablePtr& subgraph, Random& random) {
  if (subgraph == nullptr || subgraph->count("tensors") == 0) return nullptr;
  return random.pick(subgraph->tables("tensors"));
}

TablePtr pick_operator(const TablePtr& subgraph, Random& random) {
  if (subgraph == nullptr || subgraph->count("operators") == 0) return nullptr;
  return random.pick(subgraph->tables("operators"));
}

const std::string& contents(Subject& subject, const Table& tensor) {
  static const std::string none;
  const auto index = static_cast<uint64_t>(tensor.integer("buffer"));
  if (index >= subject.buffers().size()) return none;
  const TablePtr& buffer = subject.buffers()[index];
  return buffer->tail ? buffer->tail->bytes : buffer->bytes("data");
}

bool is_constant(Subject& subject, const Table& tensor) { return !contents(subject, tensor).empty(); }

void set_contents(Subject& subject, Table& tensor, std::string bytes) {
  const TablePtr buffer = new_table("Buffer");
  (*buffer)["data"] = std::move(bytes);
  if (subject.buffers().empty()) subject.buffers().push_back(new_table("Buffer"));
  tensor.set("buffer", static_cast<int64_t>(subject.buffers().size()));
  subject.buffers().push_back(buffer);
}

int64_t wanted_bytes(const Table& tensor) {
  constexpr int64_t kMost = 1 << 20;
  const int64_t type = tensor.integer("type");
  if (type < 0 || type >= kDTypeCount) return -1;
  int64_t bits = dtype_bits(static_cast<DType>(type));
  if (bits == 0) return -1;
  for (const int64_t size : tensor.integers("shape")) {
    if (size < 0 || size > kMost) return -1;
    bits *= size;
    if (bits > 8 * kMost) return -1;
  }
  return (bits + 7) / 8;
}

void refit(Subject& subject, Table& tensor, Random& random) {
  const std::string& now = contents(subject, tensor);
  const int64_t wanted = wanted_bytes(tensor);
  if (now.empty() || wanted < 0 || wanted == static_cast<int64_t>(now.size())) return;
  std::string bytes(static_cast<size_t>(wanted), '\0');
  const bool noise = random.once_in(4);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = noise ? static_cast<char>(random.next()) : now[i % now.size()];
  }
  set_contents(subject, tensor, std::move(bytes));
}

int64_t add_tensor(const TablePtr& subgraph, const TablePtr& tensor) {
  auto& tensors = subgraph->tables("tensors");
  tensors.push_back(tensor);
  return static_cast<int64_t>(tensors.size()) - 1;
}

void set_per_tensor(Table& tensor, float scale, int64_t zero_point) {
  const TablePtr quantization = new_table("QuantizationParameters");
  quantization->set_floats("scale", {scale});
  quantization->set_integers("zero_point", {zero_point});
  tensor["quantization"] = quantization;
}

int64_t operator_code(Subject& subject, int64_t builtin, int64_t version, const std::string& custom) {
  auto& codes = subject.root->tables("operator_codes");
  const TablePtr code = new_table("OperatorCode");
  code->set("deprecated_builtin_code", builtin > 127 ? 127 : builtin);
  code->set("builtin_code", builtin);
  code->set("version", version);
  if (!custom.empty()) (*code)["custom_code"] = custom;
  codes.push_back(code);
  return static_cast<int64_t>(codes.size()) - 1;
}

}  // namespace leadline::fuzz
