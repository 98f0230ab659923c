// SPDX-License-Identifier: Apache-2.0
// Field numbers are those of TensorFlow's message definitions, which never change once released.
#include "import/saved_model/protos.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/error.h"

namespace leadline::saved_model {
namespace {

constexpr int32_t kReferenceMark = 100;  // TF1: a type + 100 is a reference to such a tensor
constexpr size_t kMaxTensorRank = 254;   // TensorFlow's own limit

/// Appends after charging what the element takes itself.
template <typename T>
T& add(WireFile& file, std::vector<T>& list, T value) {
  file.charge(sizeof(T));
  return list.emplace_back(std::move(value));
}

/// A map entry: calls read(reader) for the value, returns the key.
template <typename Read>
std::string_view read_entry(WireReader m, Read read) {
  std::string_view key;
  while (m.next()) {
    if (m.field() == 1) key = m.text();
    if (m.field() == 2) read(m);
  }
  return key;
}

/// Attributes of TensorFlow's own machinery ("_output_shapes", "_class") are left out: they are hints, and large. The
/// former is kept as written.
void add_attr(const WireReader& m, Attrs& attrs, Bytes* output_shapes = nullptr) {
  WireFile& file = m.file();
  Attr attr;
  attr.name = read_entry(m, [](WireReader&) {});
  if (output_shapes != nullptr && attr.name == "_output_shapes")
    read_entry(m, [&](WireReader& value) { *output_shapes = value.bytes(); });
  if (attr.name.starts_with('_')) return;
  read_entry(m, [&](WireReader& value) { attr.value = read_attr_value(value.message("AttrValue")); });
  add(file, attrs, std::move(attr));
}

std::string_view read_function_name(WireReader m) {
  std::string_view name;
  while (m.next())
    if (m.field() == 1) name = m.text();
  return name;
}

std::shared_ptr<AttrParts> new_parts(WireFile& file) {
  file.charge(sizeof(AttrParts));
  return std::make_shared<AttrParts>();
}

std::shared_ptr<AttrParts> read_list(WireReader m) {
  WireFile& file = m.file();
  auto parts = new_parts(file);
  const auto add_int = [&](uint64_t v) { add(file, parts->ints, static_cast<int64_t>(v)); };
  while (m.next()) {
    switch (m.field()) {
      case 2:
        add(file, parts->strings, m.text());
        break;
      case 3:
      case 5:
      case 6:
        m.varints(add_int);
        break;
      case 4: {
        const Bytes values = m.fixed_values(4);
        file.charge(values.size());
        for (size_t i = 0; i < values.size(); i += 4) {
          uint32_t bits = 0;
          std::memcpy(&bits, values.data() + i, 4);
          parts->floats.push_back(std::bit_cast<float>(bits));
        }
        break;
      }
      case 7:
        add(file, parts->shapes, read_shape(m.message("TensorShapeProto")));
        break;
      case 8:
        add(file, parts->tensors, read_tensor(m.message("TensorProto")));
        break;
      case 9:
        add(file, parts->functions, read_function_name(m.message("NameAttrList")));
        break;
      default:
        break;
    }
  }
  return parts;
}

NodeDef read_node(WireReader m) {
  NodeDef node;
  node.place = m.place();
  WireFile& file = m.file();
  while (m.next()) {
    switch (m.field()) {
      case 1:
        node.name = m.text();
        break;
      case 2:
        node.op = m.text();
        break;
      case 3:
        add(file, node.inputs, m.text());
        break;
      case 5:
        add_attr(m.message("AttrEntry"), node.attrs, &node.output_shapes);
        break;
      default:
        break;
    }
  }
  return node;
}

ArgDef read_arg(WireReader m) {
  ArgDef arg;
  while (m.next()) {
    switch (m.field()) {
      case 1:
        arg.name = m.text();
        break;
      case 3:
        arg.type = tf_type(m.int32());
        break;
      case 4:
        arg.type_attr = m.text();
        break;
      case 5:
        arg.number_attr = m.text();
        break;
      case 6:
        arg.type_list_attr = m.text();
        break;
      default:
        break;
    }
  }
  return arg;
}

OpSignature read_op(WireReader m) {
  OpSignature op;
  WireFile& file = m.file();
  while (m.next()) {
    switch (m.field()) {
      case 1:
        op.name = m.text();
        break;
      case 2:
        add(file, op.inputs, read_arg(m.message("ArgDef")));
        break;
      case 3:
        add(file, op.outputs, read_arg(m.message("ArgDef")));
        break;
      case 4: {
        Attr attr;
        bool has_default = false;
        for (WireReader a = m.message("AttrDef"); a.next();) {
          if (a.field() == 1) attr.name = a.text();
          if (a.field() != 3) continue;
          attr.value = read_attr_value(a.message("AttrValue"));
          has_default = true;
        }
        if (has_default) add(file, op.defaults, std::move(attr));
        break;
      }
      default:
        break;
    }
  }
  return op;
}

FunctionDef read_function(WireReader m) {
  FunctionDef function;
  WireFile& file = m.file();
  while (m.next()) {
    switch (m.field()) {
      case 1:
        function.signature = read_op(m.message("OpDef"));
        break;
      case 3:
        add(file, function.nodes, read_node(m.message("NodeDef")));
        break;
      case 4: {
        std::string_view value;
        const auto key = read_entry(m.message("RetEntry"), [&](WireReader& v) { value = v.text(); });
        add(file, function.returns, {key, value});
        break;
      }
      default:
        break;
    }
  }
  return function;
}

void read_graph(WireReader m, MetaGraph& meta) {
  WireFile& file = m.file();
  while (m.next()) {
    if (m.field() == 1) add(file, meta.nodes, read_node(m.message("NodeDef")));
    if (m.field() != 2) continue;
    for (WireReader library = m.message("FunctionDefLibrary"); library.next();)
      if (library.field() == 1) add(file, meta.functions, read_function(library.message("FunctionDef")));
  }
}

TensorInfo read_tensor_info(WireReader m) {
  TensorInfo info;
  while (m.next()) {
    switch (m.field()) {
      case 1:
        info.name = m.text();
        break;
      case 2:
        info.dtype = tf_type(m.int32());
        break;
      case 3:
        info.shape = read_shape(m.message("TensorShapeProto"));
        break;
      case 4:
      case 5:
        info.composite = true;
        break;
      default:
        break;
    }
  }
  return info;
}

/// Sorts the entries of a map, which have no order in the file, by key(entry). The last one with a key counts.
template <typename Entry, typename Key>
void sort_map(std::vector<Entry>& entries, Key key) {
  std::reverse(entries.begin(), entries.end());
  std::stable_sort(entries.begin(), entries.end(), [&](auto& a, auto& b) { return key(a) < key(b); });
  const auto same = [&](auto& a, auto& b) { return key(a) == key(b); };
  entries.erase(std::unique(entries.begin(), entries.end(), same), entries.end());
}

SignatureDef read_signature(WireReader m) {
  SignatureDef signature;
  WireFile& file = m.file();
  while (m.next()) {
    if (m.field() != 1 && m.field() != 2) continue;
    auto& list = m.field() == 1 ? signature.inputs : signature.outputs;
    TensorInfo info;
    const auto read = [&](WireReader& v) { info = read_tensor_info(v.message("TensorInfo")); };
    const auto key = read_entry(m.message("SignatureDef entry"), read);
    add(file, list, {key, std::move(info)});
  }
  for (auto* list : {&signature.inputs, &signature.outputs})
    sort_map(*list, [](const auto& entry) { return entry.first; });
  // Inputs are in the order of their tensors' names, which is that of their keys in SavedModels of TensorFlow 2.
  const auto node_name = [](const auto& entry) { return entry.second.name.substr(0, entry.second.name.find(':')); };
  std::stable_sort(signature.inputs.begin(), signature.inputs.end(),
                   [&](auto& a, auto& b) { return node_name(a) < node_name(b); });
  return signature;
}

std::pair<std::string_view, int32_t> read_child(WireReader m) {
  std::pair<std::string_view, int32_t> child{"", 0};
  while (m.next()) {
    if (m.field() == 1) child.second = m.int32();
    if (m.field() == 2) child.first = m.text();
  }
  return child;
}

void read_objects(WireReader m, SavedObjectGraph& graph) {
  WireFile& file = m.file();
  while (m.next()) {
    if (m.field() == 1) {
      auto& object = add(file, graph.objects, {});
      for (WireReader o = m.message("SavedObject"); o.next();) {
        if (o.field() == 1) add(file, object.children, read_child(o.message("ObjectReference")));
        if (o.field() == 7) object.variable = true;
      }
    } else if (m.field() == 2) {
      std::vector<int32_t> bound;
      const auto read = [&](WireReader& value) {
        for (WireReader f = value.message("SavedConcreteFunction"); f.next();)
          if (f.field() == 2) f.varints([&](uint64_t v) { add(file, bound, static_cast<int32_t>(v)); });
      };
      const auto name = read_entry(m.message("ConcreteFunctionsEntry"), read);
      add(file, graph.concrete_functions, {name, std::move(bound)});
    }
  }
}

void read_meta_info(WireReader m, MetaGraph& meta, bool with_ops) {
  WireFile& file = m.file();
  while (m.next()) {
    if (m.field() == 4) add(file, meta.tags, m.text());
    if (m.field() == 5) meta.tensorflow_version = m.text();
    if (m.field() != 2 || !with_ops) continue;
    for (WireReader list = m.message("OpList"); list.next();)
      if (list.field() == 1) add(file, meta.ops, read_op(list.message("OpDef")));
  }
}

MetaGraph read_whole(WireReader m) {
  MetaGraph meta;
  WireFile& file = m.file();
  while (m.next()) {
    switch (m.field()) {
      case 1:
        read_meta_info(m.message("MetaInfoDef"), meta, true);
        break;
      case 2:
        read_graph(m.message("GraphDef"), meta);
        break;
      case 3:
        for (WireReader saver = m.message("SaverDef"); saver.next();)
          if (saver.field() == 3) meta.restore_op = saver.text();
        break;
      case 5: {
        SignatureDef signature;
        const auto read = [&](WireReader& v) { signature = read_signature(v.message("SignatureDef")); };
        signature.key = read_entry(m.message("SignatureDefEntry"), read);
        add(file, meta.signatures, std::move(signature));
        break;
      }
      case 6: {
        std::pair<std::string_view, std::string_view> asset;
        for (WireReader a = m.message("AssetFileDef"); a.next();) {
          if (a.field() == 2) asset.second = a.text();
          if (a.field() != 1) continue;
          for (WireReader info = a.message("TensorInfo"); info.next();)
            if (info.field() == 1) asset.first = info.text();
        }
        add(file, meta.assets, asset);
        break;
      }
      case 7:
        read_objects(m.message("SavedObjectGraph"), meta.objects);
        break;
      default:
        break;
    }
  }
  sort_map(meta.signatures, [](const auto& signature) { return signature.key; });
  return meta;
}

std::string tag_list(const std::vector<std::string_view>& tags) {
  std::string text;
  for (const auto tag : tags) text += fmt::format("{}'{}'", text.empty() ? "" : ", ", printable(tag));
  return "{" + text + "}";
}

}  // namespace

TfType tf_type(int32_t number) {
  return static_cast<TfType>(number > kReferenceMark ? number - kReferenceMark : number);
}

std::optional<DType> to_dtype(TfType type) {
  switch (type) {
    case TfType::kFloat:
      return DType::kFloat32;
    case TfType::kDouble:
      return DType::kFloat64;
    case TfType::kInt32:
    case TfType::kQInt32:
      return DType::kInt32;
    case TfType::kUInt8:
    case TfType::kQUInt8:
      return DType::kUInt8;
    case TfType::kInt16:
    case TfType::kQInt16:
      return DType::kInt16;
    case TfType::kInt8:
    case TfType::kQInt8:
      return DType::kInt8;
    case TfType::kString:
      return DType::kString;
    case TfType::kComplex64:
      return DType::kComplex64;
    case TfType::kInt64:
      return DType::kInt64;
    case TfType::kBool:
      return DType::kBool;
    case TfType::kBFloat16:
      return DType::kBFloat16;
    case TfType::kUInt16:
    case TfType::kQUInt16:
      return DType::kUInt16;
    case TfType::kComplex128:
      return DType::kComplex128;
    case TfType::kHalf:
      return DType::kFloat16;
    case TfType::kResource:
      return DType::kResource;
    case TfType::kVariant:
      return DType::kVariant;
    case TfType::kUInt32:
      return DType::kUInt32;
    case TfType::kUInt64:
      return DType::kUInt64;
    case TfType::kFloat8E5M2:
      return DType::kFloat8E5M2;
    case TfType::kFloat8E4M3FN:
      return DType::kFloat8E4M3FN;
    case TfType::kInt4:
      return DType::kInt4;
    case TfType::kUInt4:
      return DType::kUInt4;
    case TfType::kInt2:
      return DType::kInt2;
    default:
      return std::nullopt;
  }
}

std::string tf_type_name(TfType type) {
  const auto known = to_dtype(type);
  return known ? dtype_name(*known) : fmt::format("type {}", static_cast<int32_t>(type));
}

int tf_type_bytes(TfType type) {
  const auto known = to_dtype(type);
  if (!known || *known == DType::kResource) return 0;
  return (dtype_bits(*known) + 7) / 8;
}

const TensorShape& AttrValue::shape() const {
  static const TensorShape none{true, {}};
  return kind == Kind::kShape && parts ? parts->shape : none;
}

const TensorProto& AttrValue::tensor() const {
  static const TensorProto none;
  return kind == Kind::kTensor && parts ? parts->tensor : none;
}

const AttrValue* find_attr(const Attrs& attrs, std::string_view name) {
  // From the back: of repeated keys the last one holds.
  const auto at = std::find_if(attrs.rbegin(), attrs.rend(), [&](const Attr& attr) { return attr.name == name; });
  return at == attrs.rend() ? nullptr : &at->value;
}

TensorShape read_shape(WireReader m) {
  TensorShape shape;
  WireFile& file = m.file();
  while (m.next()) {
    if (m.field() == 3) shape.unknown_rank = m.boolean();
    if (m.field() != 2) continue;
    int64_t size = 0;
    for (WireReader dim = m.message("Dim"); dim.next();)
      if (dim.field() == 1) size = dim.int64();
    if (size < -1) m.fail_here(fmt::format("a dimension is {}, expected -1 or more", size));
    if (shape.dims.size() == kMaxTensorRank) m.fail_here(fmt::format("more than {} dimensions", kMaxTensorRank));
    add(file, shape.dims, size);
  }
  return shape;
}

TensorProto read_tensor(WireReader m) {
  TensorProto tensor;
  tensor.message = m.rest();
  while (m.next()) {
    if (m.field() == 1) tensor.dtype = tf_type(m.int32());
    if (m.field() == 2) tensor.shape = read_shape(m.message("TensorShapeProto"));
  }
  return tensor;
}

AttrValue read_attr_value(WireReader m) {
  using Kind = AttrValue::Kind;
  AttrValue value;
  value.message = m.rest();
  WireFile& file = m.file();
  const auto parts = [&](auto member, auto read) {
    auto made = new_parts(file);
    (*made).*member = std::move(read);
    value.parts = std::move(made);
  };
  while (m.next()) {
    switch (m.field()) {
      case 1:
        value.kind = Kind::kList, value.parts = read_list(m.message("ListValue"));
        break;
      case 2:
        value.kind = Kind::kString, value.s = m.text();
        break;
      case 3:
        value.kind = Kind::kInt, value.i = m.int64();
        break;
      case 4:
        value.kind = Kind::kFloat, value.f = m.float32();
        break;
      case 5:
        value.kind = Kind::kBool, value.b = m.boolean();
        break;
      case 6:
        value.kind = Kind::kType, value.i = static_cast<int64_t>(tf_type(m.int32()));
        break;
      case 7:
        value.kind = Kind::kShape, parts(&AttrParts::shape, read_shape(m.message("TensorShapeProto")));
        break;
      case 8:
        value.kind = Kind::kTensor, parts(&AttrParts::tensor, read_tensor(m.message("TensorProto")));
        break;
      case 9:
        value.kind = Kind::kPlaceholder, value.s = m.text();
        break;
      case 10:
        value.kind = Kind::kFunction, value.s = read_function_name(m.message("NameAttrList"));
        break;
      default:
        break;
    }
  }
  return value;
}

TrackableObjectGraph read_trackable_graph(WireReader m) {
  TrackableObjectGraph graph;
  WireFile& file = m.file();
  while (m.next()) {
    if (m.field() != 1) continue;
    auto& object = add(file, graph.objects, {});
    for (WireReader o = m.message("TrackableObject"); o.next();) {
      if (o.field() == 1) add(file, object.children, read_child(o.message("ObjectReference")));
      if (o.field() != 2) continue;
      auto& attribute = add(file, object.attributes, {});
      for (WireReader a = o.message("SerializedTensor"); a.next();) {
        if (a.field() == 1) attribute.first = a.text();
        if (a.field() == 3) attribute.second = a.text();
      }
    }
  }
  return graph;
}

MetaGraph read_meta_graph(WireFile& saved_model, const std::vector<std::string>& tags) {
  std::vector<std::string> wanted = tags;
  std::sort(wanted.begin(), wanted.end());
  std::string found;
  for (WireReader m(saved_model, "SavedModel"); m.next();) {
    if (m.field() == 1 && m.int64() != 1) m.fail_here(fmt::format("schema version {} is not known", m.int64()));
    if (m.field() != 2) continue;
    MetaGraph info;
    for (WireReader g = m.message("MetaGraphDef"); g.next();)
      if (g.field() == 1) read_meta_info(g.message("MetaInfoDef"), info, false);
    std::sort(info.tags.begin(), info.tags.end());
    if (std::equal(info.tags.begin(), info.tags.end(), wanted.begin(), wanted.end()))
      return read_whole(m.message("MetaGraphDef"));
    found += (found.empty() ? "" : ", ") + tag_list(info.tags);
  }
  fail(ErrorCode::kInvalidArgument, "{}: no graph has the tags {}; expected one of: {}", saved_model.name(),
       tag_list({wanted.begin(), wanted.end()}), found.empty() ? "none" : found);
}

}  // namespace leadline::saved_model
