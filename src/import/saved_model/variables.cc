// SPDX-License-Identifier: Apache-2.0
// Restoring ops: RestoreV2(file, names, parts) -> Assign, in the main graph (TF1) or in a function it calls (TF2).
// Objects: a function's last arguments are bound to objects; an object has the same path from the root in the graph of
// saved objects and in the checkpoint's own graph, which knows its key.
#include "import/saved_model/variables.h"

#include <charconv>

#include "core/error.h"
#include "core/string_tensor.h"
#include "import/saved_model/resolver.h"
#include "import/saved_model/tensor_proto.h"

namespace leadline::saved_model {
namespace {

using Places = std::unordered_map<std::string, VariablePlace>;

constexpr std::string_view kObjectGraphKey = "_CHECKPOINTABLE_OBJECT_GRAPH";
constexpr std::string_view kValueAttribute = "VARIABLE_VALUE";
constexpr int64_t kMaxStringBytes = 1 << 28;

std::vector<std::string> strings_of(const ir::ConstantSource& source, const std::string& what) {
  require(source.bytes() <= kMaxStringBytes, ErrorCode::kInvalidModel, "{}: too large", what);
  std::vector<std::byte> bytes(static_cast<size_t>(source.bytes()));
  source.read(bytes);
  const StringTensorReader reader(bytes);
  std::vector<std::string> strings;
  for (int64_t i = 0; i < reader.size(); ++i) strings.emplace_back(reader[i]);
  return strings;
}

/// "4 6 0,2:-": the whole shape, then start and length of each dimension, "-" for all of it.
Bundle::Slice parse_slice(std::string_view text, const std::string& what) {
  Bundle::Slice slice;
  const auto space = text.rfind(' ');
  std::string_view rest = space == std::string_view::npos ? text : text.substr(space + 1);
  while (true) {
    const auto colon = rest.find(':');
    const std::string_view dim = rest.substr(0, colon);
    auto& extent = slice.emplace_back();
    if (dim != "-") {
      const char* const end = dim.data() + dim.size();
      const auto start = std::from_chars(dim.data(), end, extent.start);
      const bool comma = start.ec == std::errc() && start.ptr != end && *start.ptr == ',';
      const auto length = comma ? std::from_chars(start.ptr + 1, end, extent.length) : start;
      require(comma && length.ec == std::errc() && length.ptr == end, ErrorCode::kInvalidModel,
              "{}: '{}' is not part of a tensor", what, printable(text));
    }
    if (colon == std::string_view::npos) return slice;
    rest.remove_prefix(colon + 1);
  }
}

class RestoreOps {
 public:
  RestoreOps(Program& program, Places& places) : program_(program), resolver_(program, {}), places_(places) {}

  void run() {
    scan(Resolver::kMain);
    const auto restore = program_.main().node_index.find(program_.meta().restore_op);
    if (restore == program_.main().node_index.end()) return;
    if (resolver_.is_call(program_.meta().nodes[static_cast<size_t>(restore->second)]))
      scan(resolver_.callee(Resolver::kMain, restore->second));
  }

 private:
  struct Names {
    std::vector<std::string> keys;
    std::vector<std::string> slices;
  };

  void scan(int frame) {
    const Body& body = *resolver_.frame(frame).body;
    for (size_t i = 0; i < body.nodes->size(); ++i) {
      const NodeDef& node = (*body.nodes)[i];
      if (node.op != "AssignVariableOp" && node.op != "Assign") continue;
      const std::vector<Ref> inputs = resolver_.inputs(frame, static_cast<int>(i));
      if (inputs.size() < 2 || !resolver_.is_variable(inputs[0]) || inputs[1].node == Operand::kArgument) continue;
      if (resolver_.node(inputs[1]).op != "RestoreV2") continue;
      const Names& names = names_of(inputs[1]);
      const auto number = static_cast<size_t>(inputs[1].output);
      if (number >= names.keys.size()) program_.fail_node(node, ErrorCode::kInvalidModel, "it restores nothing");
      VariablePlace place{names.keys[number], std::nullopt};
      if (number < names.slices.size() && !names.slices[number].empty())
        place.slice = parse_slice(names.slices[number], std::string(node.name));
      places_.emplace(resolver_.variable_name(inputs[0]), std::move(place));
    }
  }

  const Names& names_of(const Ref& restore) {
    const NodeDef* const node = &resolver_.node(restore);
    const auto known = names_.find(node);
    if (known != names_.end()) return known->second;
    const std::vector<Ref> inputs = resolver_.inputs(restore.frame, restore.node);
    if (inputs.size() != 3) program_.fail_node(*node, ErrorCode::kInvalidModel, "it must have three inputs");
    return names_.emplace(node, Names{strings(inputs[1]), strings(inputs[2])}).first->second;
  }

  std::vector<std::string> strings(const Ref& ref) {
    if (!resolver_.is_constant(ref)) return {};
    const NodeDef& node = resolver_.node(ref);
    const AttrValue* const value = find_attr(node.attrs, "value");
    if (value == nullptr || value->tensor().dtype != TfType::kString)
      program_.fail_node(node, ErrorCode::kInvalidModel, "a constant of strings is expected");
    // The file outlives this call, so the source may borrow it.
    const std::shared_ptr<WireFile> file(&program_.file(), [](WireFile*) {});
    const std::string what(node.name);
    return strings_of(*make_tensor_source(file, value->tensor(), what), what);
  }

  Program& program_;
  Resolver resolver_;
  Places& places_;
  std::unordered_map<const NodeDef*, Names> names_;
};

/// Checkpoint key of each saved object; empty where it has no value.
std::vector<std::string_view> object_keys(const SavedObjectGraph& saved, const TrackableObjectGraph& stored) {
  std::vector<std::string_view> keys(saved.objects.size());
  std::vector<bool> seen(saved.objects.size());
  std::vector<std::pair<int32_t, int32_t>> todo;
  const auto push = [&](int32_t a, int32_t b) {
    if (a < 0 || b < 0 || static_cast<size_t>(a) >= saved.objects.size() ||
        static_cast<size_t>(b) >= stored.objects.size() || seen[static_cast<size_t>(a)])
      return;
    seen[static_cast<size_t>(a)] = true;
    todo.emplace_back(a, b);
  };
  push(0, 0);
  while (!todo.empty()) {
    const auto [a, b] = todo.back();
    todo.pop_back();
    const auto& there = stored.objects[static_cast<size_t>(b)];
    for (const auto& [name, key] : there.attributes)
      if (name == kValueAttribute) keys[static_cast<size_t>(a)] = key;
    std::unordered_map<std::string_view, int32_t> children(there.children.begin(), there.children.end());
    for (const auto& [name, child] : saved.objects[static_cast<size_t>(a)].children) {
      const auto at = children.find(name);
      if (at != children.end()) push(child, at->second);
    }
  }
  return keys;
}

void add_from_objects(Program& program, Bundle& bundle, Places& places) {
  const Bundle::Entry* const entry = bundle.find(kObjectGraphKey);
  const SavedObjectGraph& saved = program.meta().objects;
  if (entry == nullptr || entry->dtype != TfType::kString || saved.objects.empty()) return;
  const std::string what = bundle.describe(*entry);
  const auto texts = strings_of(*bundle.source(*entry), what);
  if (texts.size() != 1) return;
  const auto text = std::as_bytes(std::span(texts[0]));
  WireFile file(what, ModelBytes::borrow(text, nullptr), nullptr);
  const TrackableObjectGraph stored = read_trackable_graph(WireReader(file, "TrackableObjectGraph"));
  const std::vector<std::string_view> keys = object_keys(saved, stored);

  const std::unordered_map<std::string_view, std::vector<int32_t>> bound(saved.concrete_functions.begin(),
                                                                         saved.concrete_functions.end());
  Resolver resolver(program, {});
  const auto& nodes = program.meta().nodes;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const AttrValue* const function = find_attr(nodes[i].attrs, "f");
    const auto objects = function == nullptr ? bound.end() : bound.find(function->s);
    if (objects == bound.end() || !resolver.is_call(nodes[i])) continue;
    const std::vector<Ref> inputs = resolver.inputs(Resolver::kMain, static_cast<int>(i));
    if (inputs.size() < objects->second.size()) continue;
    const size_t first = inputs.size() - objects->second.size();
    for (size_t k = 0; k < objects->second.size(); ++k) {
      const int32_t object = objects->second[k];
      if (!resolver.is_variable(inputs[first + k]) || object < 0 || static_cast<size_t>(object) >= keys.size())
        continue;
      const std::string_view key = keys[static_cast<size_t>(object)];
      if (!key.empty())
        places.emplace(resolver.variable_name(inputs[first + k]), VariablePlace{std::string(key), std::nullopt});
    }
  }
}

}  // namespace

std::unordered_map<std::string, VariablePlace> find_variables(Program& program, Bundle& bundle) {
  Places places;
  RestoreOps(program, places).run();
  add_from_objects(program, bundle, places);
  return places;
}

}  // namespace leadline::saved_model
