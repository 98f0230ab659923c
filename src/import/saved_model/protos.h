// SPDX-License-Identifier: Apache-2.0
// What an importer needs of the messages in saved_model.pb, as plain structs. Texts and tensor bytes point into the
// file, so the WireFile must live as long as they do. Reading checks the form only; names and references are resolved
// later.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "import/saved_model/wire.h"
#include "leadline/types.h"

namespace leadline::saved_model {

// clang-format off
/// TensorFlow's numbers for element types. Types not named here have no counterpart in .tflite files.
enum class TfType : int32_t {
  kInvalid = 0, kFloat = 1, kDouble = 2, kInt32 = 3, kUInt8 = 4, kInt16 = 5, kInt8 = 6, kString = 7, kComplex64 = 8,
  kInt64 = 9, kBool = 10, kQInt8 = 11, kQUInt8 = 12, kQInt32 = 13, kBFloat16 = 14, kQInt16 = 15, kQUInt16 = 16,
  kUInt16 = 17, kComplex128 = 18, kHalf = 19, kResource = 20, kVariant = 21, kUInt32 = 22, kUInt64 = 23,
  kFloat8E5M2 = 24, kFloat8E4M3FN = 25, kInt4 = 29, kUInt4 = 30, kInt2 = 31, kUInt2 = 32,
};
// clang-format on

/// "float32", "half", ... or "type 77".
std::string tf_type_name(TfType type);
/// Leadline's type with the same values; quantized types give their integers. Reference types (TF1) as their base.
std::optional<DType> to_dtype(TfType type);
/// Bytes one element takes in files of TensorFlow, which do not pack small types; 0 when it has no fixed size.
int tf_type_bytes(TfType type);
/// The number as written in a file, with the mark of TF1's reference types removed.
TfType tf_type(int32_t number);

/// Dimensions; -1 where unknown.
struct TensorShape {
  bool unknown_rank = false;
  std::vector<int64_t> dims;
};

/// A tensor in the file. The values are decoded by TensorProtoSource (tensor_proto.h).
struct TensorProto {
  TfType dtype = TfType::kInvalid;
  TensorShape shape;
  Bytes message;  // all of it
};

struct AttrParts;

/// The value of an attribute. Only the members that `kind` names mean something.
struct AttrValue {
  enum class Kind : uint8_t {
    kNone,
    kString,
    kInt,
    kFloat,
    kBool,
    kType,
    kShape,
    kTensor,
    kFunction,
    kPlaceholder,
    kList
  };
  Kind kind = Kind::kNone;
  bool b = false;
  float f = 0;
  int64_t i = 0;                           // kInt; kType: the number of a TfType
  std::string_view s;                      // kString; kFunction: its name; kPlaceholder: the attribute meant
  std::shared_ptr<const AttrParts> parts;  // kShape, kTensor, kList
  Bytes message;                           // as written in the file; empty for values made later

  const TensorShape& shape() const;
  const TensorProto& tensor() const;
};

/// The values of larger attributes.
struct AttrParts {
  TensorShape shape;
  TensorProto tensor;
  // Lists. `ints` also holds booleans and types.
  std::vector<std::string_view> strings;
  std::vector<int64_t> ints;
  std::vector<float> floats;
  std::vector<TensorShape> shapes;
  std::vector<TensorProto> tensors;
  std::vector<std::string_view> functions;
};

struct Attr {
  std::string_view name;  // never "_..."
  AttrValue value;
};
using Attrs = std::vector<Attr>;

/// The attribute called `name`, or null.
const AttrValue* find_attr(const Attrs& attrs, std::string_view name);

struct NodeDef {
  std::string_view name;
  std::string_view op;
  std::vector<std::string_view> inputs;  // "node", "node:1", "node:arg:1", "^node"
  Attrs attrs;
  const std::byte* place = nullptr;  // for messages
  Bytes output_shapes;               // the value of _output_shapes as written; empty when there is none
};

/// An argument of an op or a function.
struct ArgDef {
  std::string_view name;
  TfType type = TfType::kInvalid;
  std::string_view type_attr;
  std::string_view number_attr;
  std::string_view type_list_attr;
};

/// An op's definition: the file carries those of all ops it uses.
struct OpSignature {
  std::string_view name;
  std::vector<ArgDef> inputs;
  std::vector<ArgDef> outputs;
  Attrs defaults;  // attributes that have a default value
};

struct FunctionDef {
  OpSignature signature;
  std::vector<NodeDef> nodes;
  std::vector<std::pair<std::string_view, std::string_view>> returns;  // output argument, what it is
};

struct TensorInfo {
  std::string_view name;  // "node:0"
  TfType dtype = TfType::kInvalid;
  TensorShape shape;
  bool composite = false;  // sparse, ragged, ...: several tensors
};

struct SignatureDef {
  std::string_view key;
  std::vector<std::pair<std::string_view, TensorInfo>> inputs;  // sorted by name
  std::vector<std::pair<std::string_view, TensorInfo>> outputs;
};

/// (name, object) for each child of an object in a graph of objects.
using Children = std::vector<std::pair<std::string_view, int32_t>>;

/// The objects that were saved, as far as variables need them.
struct SavedObjectGraph {
  struct Object {
    Children children;
    bool variable = false;
  };
  std::vector<Object> objects;  // 0 is the root
  /// Function name, objects its last arguments are bound to.
  std::vector<std::pair<std::string_view, std::vector<int32_t>>> concrete_functions;
};

/// The objects in a checkpoint and the keys of their values.
struct TrackableObjectGraph {
  struct Object {
    Children children;
    std::vector<std::pair<std::string_view, std::string_view>> attributes;  // (name, checkpoint key)
  };
  std::vector<Object> objects;
};

struct MetaGraph {
  std::string_view tensorflow_version;  // that saved it
  std::vector<std::string_view> tags;
  std::vector<OpSignature> ops;
  std::vector<NodeDef> nodes;
  std::vector<FunctionDef> functions;
  std::vector<SignatureDef> signatures;
  std::string_view restore_op;
  std::vector<std::pair<std::string_view, std::string_view>> assets;  // tensor that names a file, the file
  SavedObjectGraph objects;
};

/// The meta graph with exactly these tags. Throws Error(kInvalidArgument) listing what there is when none has.
MetaGraph read_meta_graph(WireFile& saved_model, const std::vector<std::string>& tags);

TensorShape read_shape(WireReader message);
TensorProto read_tensor(WireReader message);
AttrValue read_attr_value(WireReader message);
TrackableObjectGraph read_trackable_graph(WireReader message);

}  // namespace leadline::saved_model
