// SPDX-License-Identifier: Apache-2.0
// `leadline inspect`: what is in a model file.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/printing.h"
#include "core/join.h"
#include "leadline/model.h"

namespace leadline::cli {
namespace {

constexpr const char* kInspectExamples =
    "  leadline inspect model.tflite\n"
    "  leadline inspect model.tflite --nodes --tensors\n"
    "  leadline inspect model.tflite --json";

/// Ops by how often they are used, most first.
std::vector<std::pair<std::string, int>> count_ops(const std::vector<SubgraphInfo>& subgraphs) {
  std::map<std::string, int> counts;
  for (const SubgraphInfo& subgraph : subgraphs) {
    for (const NodeInfo& node : subgraph.nodes) ++counts[node.op];
  }
  std::vector<std::pair<std::string, int>> result(counts.begin(), counts.end());
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return result;
}

const char* missing_kind_name(MissingOp::Kind kind) {
  switch (kind) {
    case MissingOp::Kind::kBuiltin:
      return "builtin";
    case MissingOp::Kind::kCustom:
      return "custom";
    case MissingOp::Kind::kFlex:
      return "flex";
  }
  return "builtin";
}

int64_t constant_bytes(const SubgraphInfo& subgraph) {
  int64_t bytes = 0;
  for (const TensorInfo& tensor : subgraph.tensors) bytes += tensor.constant ? tensor.bytes : 0;
  return bytes;
}

std::string operand_list(const std::vector<int>& operands) {
  std::vector<std::string> texts;
  for (const int index : operands) texts.push_back(index < 0 ? "-" : std::to_string(index));
  return join(texts, " ");
}

/// "saved_model, TensorFlow 2.21.0; full_integer".
std::string record_text(const ConversionRecord& record) {
  std::string text = source_name(record.source);
  if (!record.tensorflow_version.empty()) text += ", TensorFlow " + printable(record.tensorflow_version);
  for (size_t i = 0; i < record.optimizations.size(); ++i) {
    text += (i == 0 ? "; " : ", ") + optimization_name(record.optimizations[i]);
  }
  return text;
}

class Inspect final : public Command {
 public:
  explicit Inspect(CLI::App& program)
      : Command(program, "inspect", "Show what is in a model: inputs, outputs, signatures, ops, bytes, metadata",
                kInspectExamples) {
    add_option("MODEL", path_, "The .tflite file").required().placeholder("");
    add_timeout();
    add_flag("--nodes", nodes_, "List every node");
    add_flag("--tensors", tensors_, "List every tensor");
  }

  void run() override {
    const Model model = Model::load(path_);
    std::vector<SubgraphInfo> subgraphs;
    for (int i = 0; i < model.subgraph_count(); ++i) subgraphs.push_back(model.subgraph(i));
    if (json()) {
      print_json(document(model, subgraphs));
    } else {
      print_text(model, subgraphs);
    }
  }

 private:
  Json document(const Model& model, const std::vector<SubgraphInfo>& subgraphs) const;
  void print_text(const Model& model, const std::vector<SubgraphInfo>& subgraphs) const;
  void print_subgraph(const SubgraphInfo& subgraph) const;

  std::string path_;
  bool nodes_ = false;
  bool tensors_ = false;
};

Json Inspect::document(const Model& model, const std::vector<SubgraphInfo>& subgraphs) const {
  Json json = {{"model", path_}, {"file_bytes", model.file_bytes()}, {"description", model.description()}};
  json["ops"] = Json::object();
  for (const auto& [op, count] : count_ops(subgraphs)) json["ops"][op] = count;
  json["missing_ops"] = Json::array();
  for (const MissingOp& op : model.missing_ops()) {
    json["missing_ops"].push_back(
        {{"name", op.name}, {"nodes", op.nodes}, {"kind", missing_kind_name(op.kind)}, {"reason", op.reason}});
  }
  json["signatures"] = Json::array();
  for (const SignatureInfo& s : model.signatures()) {
    Json signature = {
        {"key", s.key}, {"subgraph", s.subgraph}, {"inputs", Json::object()}, {"outputs", Json::object()}};
    for (const auto& [name, index] : s.inputs) signature["inputs"][name] = index;
    for (const auto& [name, index] : s.outputs) signature["outputs"][name] = index;
    json["signatures"].push_back(std::move(signature));
  }
  json["metadata"] = Json::array();
  for (const auto& [name, bytes] : model.metadata()) json["metadata"].push_back({{"name", name}, {"bytes", bytes}});
  if (const auto record = model.conversion_record()) {
    Json optimizations = Json::array();
    for (const ModelOptimization done : record->optimizations) optimizations.push_back(optimization_name(done));
    json["conversion"] = {{"source", source_name(record->source)},
                          {"tensorflow_version", record->tensorflow_version},
                          {"optimizations", optimizations}};
  }
  json["subgraphs"] = Json::array();
  for (const SubgraphInfo& subgraph : subgraphs) {
    Json part = {{"name", subgraph.name},
                 {"node_count", subgraph.nodes.size()},
                 {"tensor_count", subgraph.tensors.size()},
                 {"constant_bytes", constant_bytes(subgraph)},
                 {"inputs", Json::array()},
                 {"outputs", Json::array()}};
    for (const int i : subgraph.inputs) part["inputs"].push_back(tensor_json(subgraph.tensors[static_cast<size_t>(i)]));
    for (const int i : subgraph.outputs)
      part["outputs"].push_back(tensor_json(subgraph.tensors[static_cast<size_t>(i)]));
    if (nodes_) {
      part["nodes"] = Json::array();
      for (const NodeInfo& node : subgraph.nodes) {
        part["nodes"].push_back({{"index", node.index},
                                 {"op", node.op},
                                 {"version", node.version},
                                 {"inputs", node.inputs},
                                 {"outputs", node.outputs},
                                 {"attributes", node.attributes}});
      }
    }
    if (tensors_) {
      part["tensors"] = Json::array();
      for (const TensorInfo& tensor : subgraph.tensors) part["tensors"].push_back(tensor_json(tensor));
    }
    json["subgraphs"].push_back(std::move(part));
  }
  return json;
}

void Inspect::print_text(const Model& model, const std::vector<SubgraphInfo>& subgraphs) const {
  size_t nodes = 0;
  size_t tensors = 0;
  int64_t constants = 0;
  for (const SubgraphInfo& s : subgraphs) {
    nodes += s.nodes.size();
    tensors += s.tensors.size();
    constants += constant_bytes(s);
  }
  fmt::print("{}\n", printable(path_));
  Table summary("ll");
  summary.add({"file", fmt::format("{} ({} bytes)", model.budget()->format(model.file_bytes()), model.file_bytes())});
  summary.add({"constants", model.budget()->format(constants)});
  summary.add({"nodes", std::to_string(nodes)});
  summary.add({"tensors", std::to_string(tensors)});
  summary.add({"subgraphs", std::to_string(subgraphs.size())});
  if (!model.description().empty()) summary.add({"description", model.description()});
  if (const auto record = model.conversion_record()) summary.add({"made from", record_text(*record)});
  fmt::print("{}", summary.text());

  for (const SubgraphInfo& subgraph : subgraphs) {
    const auto number = &subgraph - subgraphs.data();
    if (subgraphs.size() > 1) fmt::print("\nSubgraph {} '{}'\n", number, printable(subgraph.name));
    print_subgraph(subgraph);
  }
  const std::vector<SignatureInfo> signatures = model.signatures();
  if (!signatures.empty()) fmt::print("\nSignatures\n");
  for (const SignatureInfo& s : signatures) {
    fmt::print("  '{}', subgraph {}\n", printable(s.key), s.subgraph);
    Table table("lrl");
    for (const auto& [name, index] : s.inputs) table.add({"input", std::to_string(index), name});
    for (const auto& [name, index] : s.outputs) table.add({"output", std::to_string(index), name});
    fmt::print("{}", table.text(4));
  }
  Table ops("rl");
  for (const auto& [op, count] : count_ops(subgraphs)) ops.add({std::to_string(count), op});
  fmt::print("\nOps\n{}", ops.text());
  if (const std::vector<MissingOp> missing = model.missing_ops(); !missing.empty()) {
    Table table("ll");
    for (const MissingOp& op : missing) table.add({op.name, op.reason});
    fmt::print("\nOps that the leadline program cannot run\n{}", table.text());
  }
  const auto metadata = model.metadata();
  if (metadata.empty()) return;
  Table entries("rl");
  for (const auto& [name, bytes] : metadata) entries.add({model.budget()->format(bytes), name});
  fmt::print("\nMetadata\n{}", entries.text());
}

void Inspect::print_subgraph(const SubgraphInfo& subgraph) const {
  const auto print_tensors = [&](const char* title, const std::vector<int>& indices) {
    Table table("rllll");
    for (const int i : indices) {
      const TensorInfo& t = subgraph.tensors[static_cast<size_t>(i)];
      table.add({std::to_string(i), dtype_name(t.dtype), shape_text(t), t.name, quantization_text(t)});
    }
    fmt::print("\n{}\n{}", title, table.text());
  };
  print_tensors("Inputs", subgraph.inputs);
  print_tensors("Outputs", subgraph.outputs);
  if (nodes_) {
    Table table("rlllll");
    table.add({"#", "op", "version", "inputs", "outputs", "attributes"});
    for (const NodeInfo& n : subgraph.nodes) {
      table.add({std::to_string(n.index), n.op, std::to_string(n.version), operand_list(n.inputs),
                 operand_list(n.outputs), n.attributes});
    }
    fmt::print("\nNodes\n{}", table.text());
  }
  if (tensors_) {
    Table table("rllrlll");
    table.add({"#", "type", "shape", "bytes", "kind", "name", "quantization"});
    for (const TensorInfo& t : subgraph.tensors) {
      const char* kind = t.constant ? "constant" : t.variable ? "variable" : "";
      table.add({std::to_string(t.index), dtype_name(t.dtype), shape_text(t), std::to_string(t.bytes), kind, t.name,
                 quantization_text(t)});
    }
    fmt::print("\nTensors\n{}", table.text());
  }
}

}  // namespace

std::unique_ptr<Command> inspect_command(CLI::App& program) { return std::make_unique<Inspect>(program); }

}  // namespace leadline::cli
