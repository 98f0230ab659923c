// SPDX-License-Identifier: Apache-2.0
// Tables are filled by functions that run once when the model is loaded; only functions that fill tables, or call such,
// are looked into.
#include "import/saved_model/tables.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <unordered_set>

#include "core/error.h"
#include "core/string_tensor.h"
#include "io/mapped_file.h"

namespace leadline::saved_model {
namespace {

constexpr int64_t kWholeLine = -2;  // TextFileIndex of TensorFlow's; from 0 on: the column
constexpr int64_t kLineNumber = -1;

bool fills_from_tensors(std::string_view op) {
  return op == "LookupTableImportV2" || op == "LookupTableImport" || op == "InitializeTableV2" ||
         op == "InitializeTable";
}
bool fills_from_file(std::string_view op) {
  return op == "InitializeTableFromTextFileV2" || op == "InitializeTableFromTextFile";
}

std::string_view called_function(const NodeDef& node) {
  const AttrValue* const function = find_attr(node.attrs, "f");
  return function != nullptr && function->kind == AttrValue::Kind::kFunction ? function->s : node.op;
}

class Finder {
 public:
  explicit Finder(Program& program) : program_(program), resolver_(program, {}) {}

  std::unordered_map<std::string, TableContents> run() {
    find_functions();
    scan(Resolver::kMain);
    return std::move(tables_);
  }

 private:
  /// Functions that fill tables, themselves or through others.
  void find_functions() {
    bool more = true;
    while (more) {
      more = false;
      for (const FunctionDef& function : program_.meta().functions) {
        if (filling_.contains(function.signature.name)) continue;
        const bool fills = std::any_of(function.nodes.begin(), function.nodes.end(), [&](const NodeDef& node) {
          return fills_from_tensors(node.op) || fills_from_file(node.op) || filling_.contains(called_function(node));
        });
        if (!fills) continue;
        filling_.insert(function.signature.name);
        more = true;
      }
    }
  }

  void scan(int frame) {
    const auto count = resolver_.frame(frame).body->nodes->size();
    for (size_t i = 0; i < count; ++i) {
      const NodeDef& node = (*resolver_.frame(frame).body->nodes)[i];
      if (fills_from_tensors(node.op) || fills_from_file(node.op)) {
        add(frame, static_cast<int>(i), node);
      } else if (resolver_.is_call(node) && filling_.contains(called_function(node))) {
        scan(resolver_.callee(frame, static_cast<int>(i)));  // how deep calls go is limited there
      }
    }
  }

  void add(int frame, int index, const NodeDef& node) {
    const std::vector<Ref> inputs = resolver_.inputs(frame, index);
    const bool from_file = fills_from_file(node.op);
    if (inputs.size() != (from_file ? 2U : 3U))
      program_.fail_node(node, kBad, fmt::format("it has {} inputs, expected {}", inputs.size(), from_file ? 2 : 3));
    for (size_t i = 1; i < inputs.size(); ++i)
      if (!resolver_.is_constant(inputs[i]) && !(from_file && resolver_.is_variable(inputs[i]))) return;
    if (!resolver_.is_table(inputs[0])) return;
    TableContents contents;
    if (from_file) {
      contents.file = asset(resolver_.node(inputs[1]));
      contents.initializer = &node;
      if (contents.file.empty()) return;
    } else {
      contents.keys = &resolver_.node(inputs[1]);
      contents.values = &resolver_.node(inputs[2]);
    }
    tables_.emplace(resolver_.variable_name(inputs[0]), std::move(contents));
  }

  /// The tensor that names a file: a constant, or what is put into a variable when the model is loaded.
  std::string_view asset_tensor(const NodeDef& holder) const {
    if (holder.op == "Const") return holder.name;
    for (const NodeDef& node : program_.meta().nodes) {
      if (node.op == "AssignVariableOp" && node.inputs.size() >= 2 && node.inputs[0] == holder.name)
        return node.inputs[1];
    }
    return {};
  }

  std::string asset(const NodeDef& constant) const {
    const std::string_view name = asset_tensor(constant);
    for (const auto& [tensor, file] : program_.meta().assets) {
      if (tensor.substr(0, tensor.find(':')) != name) continue;
      const bool outside = file.empty() || file.starts_with('/') || file.find("..") != std::string_view::npos;
      if (outside)
        program_.fail_node(constant, kBad, fmt::format("'{}' is not an asset of the model", printable(file)));
      return fmt::format("assets/{}", file);
    }
    return "";
  }

  Program& program_;
  Resolver resolver_;
  std::unordered_set<std::string_view> filling_;
  std::unordered_map<std::string, TableContents> tables_;
};

ir::Source bytes_of(const std::vector<int64_t>& numbers) {
  std::vector<std::byte> bytes(numbers.size() * sizeof(int64_t));
  if (!bytes.empty()) std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return ir::owned_source(std::move(bytes));
}

ir::Source bytes_of(const std::vector<std::string_view>& texts, const std::string& path) {
  int64_t characters = 0;
  for (const std::string_view text : texts) characters += static_cast<int64_t>(text.size());
  const auto size = string_tensor_bytes(static_cast<int64_t>(texts.size()), characters);
  require(size.has_value(), kBad, "{}: too large for a table", path);
  std::vector<std::byte> bytes(static_cast<size_t>(*size));
  StringTensorWriter writer(bytes, static_cast<int64_t>(texts.size()));
  for (const std::string_view text : texts) writer.add(text);
  return ir::owned_source(std::move(bytes));
}

std::string_view column_of(std::string_view line, int64_t column, char delimiter) {
  for (int64_t i = 0; i < column; ++i) {
    const size_t end = line.find(delimiter);
    require(end != std::string_view::npos, kBad, "a line has fewer than {} columns", column + 1);
    line.remove_prefix(end + 1);
  }
  return line.substr(0, line.find(delimiter));
}

TableColumn read_column(const std::vector<std::string_view>& lines, int64_t index, char delimiter, TfType type,
                        const std::string& path) {
  require(index >= kWholeLine, kBad, "{}: there is no column {}", path, index);
  require(type == TfType::kInt64 || type == TfType::kString, ErrorCode::kUnsupported,
          "{}: a table of {} from a file is not converted, only int64 and string", path, tf_type_name(type));
  std::vector<std::string_view> texts;
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view text = index >= 0 ? column_of(lines[i], index, delimiter) : lines[i];
    if (type == TfType::kString) {
      texts.push_back(text);
      continue;
    }
    int64_t number = static_cast<int64_t>(i);
    if (index != kLineNumber) {
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      require(error == std::errc() && end == text.data() + text.size(), kBad, "{}, line {}: '{}' is not a number", path,
              i + 1, printable(text));
    }
    numbers.push_back(number);
  }
  require(type == TfType::kInt64 || index != kLineNumber, kBad, "{}: numbers of lines are int64, the table has {}",
          path, tf_type_name(type));
  return {type == TfType::kString ? bytes_of(texts, path) : bytes_of(numbers), static_cast<int64_t>(lines.size())};
}

}  // namespace

std::unordered_map<std::string, TableContents> find_tables(Program& program) { return Finder(program).run(); }

std::pair<TableColumn, TableColumn> read_table(const std::string& path, const Program& program,
                                               const NodeDef& initializer, TfType key, TfType value) {
  const auto number = [&](std::string_view name, int64_t otherwise) {
    const AttrValue* const found = program.attr(initializer, name);
    return found != nullptr && found->kind == AttrValue::Kind::kInt ? found->i : otherwise;
  };
  const AttrValue* const delimiter = program.attr(initializer, "delimiter");
  const char between = delimiter != nullptr && delimiter->s.size() == 1 ? delimiter->s[0] : '\t';
  const auto file = ModelBytes::map_file(path);
  std::string_view rest(reinterpret_cast<const char*>(file->span().data()), file->span().size());
  std::vector<std::string_view> lines;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const int64_t offset = number("offset", 0);
  const int64_t most = number("vocab_size", -1);
  require(offset >= 0, kBad, "{}: it is read from line {} on", path, offset);
  lines.erase(lines.begin(), lines.begin() + std::min<ptrdiff_t>(offset, static_cast<ptrdiff_t>(lines.size())));
  if (most >= 0 && static_cast<size_t>(most) < lines.size()) lines.resize(static_cast<size_t>(most));
  return {read_column(lines, number("key_index", kWholeLine), between, key, path),
          read_column(lines, number("value_index", kLineNumber), between, value, path)};
}

}  // namespace leadline::saved_model
