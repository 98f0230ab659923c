// SPDX-License-Identifier: Apache-2.0
// The directory: saved_model.pb, and variables/ when there are any.
#include "import/saved_model/saved_model.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include "core/error.h"
#include "import/saved_model/bundle.h"
#include "import/saved_model/flatten.h"

namespace leadline::saved_model {
namespace {

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

void require_saved_model(const std::string& directory) {
  if (exists(directory + "/saved_model.pb")) return;
  for (const char* const other : {"/saved_model.pbtxt", "/saved_model.cpb"}) {
    require(!exists(directory + other), ErrorCode::kUnsupported,
            "'{}' holds{}; only saved_model.pb is read: save the model again with tf.saved_model.save", directory,
            other);
  }
  fail(ErrorCode::kIo, "'{}' is not a SavedModel: it has no saved_model.pb", directory);
}

std::vector<const SignatureDef*> choose_signatures(const MetaGraph& meta, const std::vector<std::string>& keys,
                                                   const std::string& file) {
  std::vector<const SignatureDef*> all;
  for (const SignatureDef& signature : meta.signatures)
    if (!signature.key.starts_with("__saved_model_")) all.push_back(&signature);
  std::sort(all.begin(), all.end(), [](auto* a, auto* b) { return a->key < b->key; });
  const auto find = [&](std::string_view key) {
    const auto at = std::find_if(all.begin(), all.end(), [&](auto* s) { return s->key == key; });
    return at == all.end() ? nullptr : *at;
  };
  if (keys.empty()) {
    require(!all.empty(), ErrorCode::kInvalidArgument,
            "{}: Only support at least one signature key. There are none: save the model with "
            "tf.saved_model.save(model, path, signatures=...)",
            file);
    if (find("serve") != nullptr && find("serving_default") != nullptr) return {find("serving_default")};
    return all;
  }
  std::vector<const SignatureDef*> chosen;
  for (const std::string& key : keys) {
    std::string known;
    for (const auto* signature : all)
      known += fmt::format("{}'{}'", known.empty() ? "" : ", ", printable(signature->key));
    const SignatureDef* const signature = find(key);
    require(signature != nullptr, ErrorCode::kInvalidArgument, "{}: Invalid signature key '{}'; expected one of: {}",
            file, printable(key), known.empty() ? "none" : known);
    if (std::find(chosen.begin(), chosen.end(), signature) == chosen.end()) chosen.push_back(signature);
  }
  return chosen;
}

std::string shape_text(const TensorShape& shape) {
  if (shape.unknown_rank) return "?";
  std::string text;
  for (const int64_t dim : shape.dims) text += fmt::format("{}{}", text.empty() ? "" : ", ", dim);
  return "[" + text + "]";
}

}  // namespace

FlatModel read_saved_model(const std::string& directory, const ReadOptions& options) {
  require_saved_model(directory);
  const auto budget = options.budget ? options.budget : Budget::machine_default();
  const std::string path = directory + "/saved_model.pb";
  const std::string prefix = directory + "/variables/variables";
  ReadOptions with_directory = options;
  with_directory.directory = directory;
  return read_saved_model(std::make_shared<WireFile>(path, ModelBytes::map_file(path), budget),
                          exists(prefix + ".index") ? Bundle::open(prefix, budget) : nullptr, with_directory);
}

FlatModel read_saved_model(std::shared_ptr<WireFile> file, std::shared_ptr<Bundle> variables,
                           const ReadOptions& options) {
  FlatModel model;
  model.file = std::move(file);
  const auto meta = std::make_shared<MetaGraph>(read_meta_graph(*model.file, options.tags));
  model.meta = meta;
  const auto signatures = choose_signatures(*meta, options.signature_keys, model.file->name());
  Program program(*meta, *model.file);
  ChangedVariables changed;
  for (const SignatureDef* const signature : signatures) find_changed(program, *signature, changed);
  // Variables that the outputs turn out to need are not constants but state, and what is assigned to them is needed
  // too.
  std::set<std::string> kept;
  for (size_t known = 0;;) {
    ConstantPool pool(model, program, variables, options.directory);
    for (const SignatureDef* const signature : signatures)
      flatten_signature(model, program, pool, *signature, changed, kept);
    if (kept.size() == known) return model;
    known = kept.size();
    model.functions.clear();
    model.signatures.clear();
    model.constants.clear();
    model.tables.clear();
  }
}

std::string to_text(const FlatModel& model) {
  std::string text;
  const auto out = std::back_inserter(text);
  const auto value = [&](const ValueRef& ref) {
    if (ref.kind == ValueRef::Kind::kInput) return fmt::format("in{}", ref.index);
    if (ref.kind == ValueRef::Kind::kConstant) return fmt::format("c{}", ref.index);
    return fmt::format("n{}:{}", ref.index, ref.output);
  };
  for (const auto& [key, function] : model.signatures)
    fmt::format_to(out, "signature {} = f{}\n", printable(key), function);
  for (size_t i = 0; i < model.constants.size(); ++i) {
    const FlatConstant& c = model.constants[i];
    fmt::format_to(out, "c{} = {} {} {}{}\n", i, printable(c.name), tf_type_name(c.dtype), shape_text(c.shape),
                   c.variable ? " variable" : "");
  }
  for (size_t i = 0; i < model.functions.size(); ++i) {
    const FlatFunction& f = model.functions[i];
    fmt::format_to(out, "f{} {}\n", i, printable(f.name));
    for (size_t k = 0; k < f.inputs.size(); ++k) {
      fmt::format_to(out, "  in{} = {} {} {}\n", k, printable(f.inputs[k].name), tf_type_name(f.inputs[k].dtype),
                     shape_text(f.inputs[k].shape));
    }
    for (size_t k = 0; k < f.nodes.size(); ++k) {
      const FlatNode& node = f.nodes[k];
      fmt::format_to(out, "  n{} = {}(", k, printable(node.op));
      for (size_t a = 0; a < node.inputs.size(); ++a)
        fmt::format_to(out, "{}{}", a == 0 ? "" : ", ", value(node.inputs[a]));
      fmt::format_to(out, ")");
      for (const int called : node.functions) fmt::format_to(out, " f{}", called);
      fmt::format_to(out, "  {}\n", printable(node.name));
    }
    for (size_t k = 0; k < f.outputs.size(); ++k)
      fmt::format_to(out, "  out {} = {}\n", printable(f.outputs[k].name), value(f.output_values[k]));
  }
  return text;
}

}  // namespace leadline::saved_model
