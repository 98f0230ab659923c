// SPDX-License-Identifier: Apache-2.0
// What the messages of an object mean: the links of a group, attributes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "import/hdf5/datatype.h"
#include "import/hdf5/object_header.h"

namespace leadline::hdf5 {

/// Names and object headers of what a group holds. Soft and external links have kUndefined: they are not followed.
using Links = std::map<std::string, uint64_t, std::less<>>;

/// The links of the group with these messages; nothing when the object is not a group.
std::optional<Links> read_links(const FileBytes& file, const std::vector<Message>& messages);

struct Attribute {
  std::string name;
  Datatype type;
  Dataspace space;
  std::span<const std::byte> data;
};

/// The attribute called `name`, if there is one.
std::optional<Attribute> find_attribute(const FileBytes& file, const std::vector<Message>& messages,
                                        std::string_view name);

/// The elements of an attribute of strings. Throws Error(kInvalidModel) when it has numbers.
std::vector<std::string> attribute_strings(const FileBytes& file, const Attribute& attribute);

}  // namespace leadline::hdf5
