// SPDX-License-Identifier: Apache-2.0
// The files of src/report/assets, which CMake puts into the library (cmake/EmbedAssets.cmake). Scripts are ES modules
// that import each other, for editors and linters; here they are without imports and exports, so that a page joins
// them, each after those that it imports, into one script. Nothing in them comes from a model.
#pragma once

#include <string_view>

namespace leadline::report::assets {

extern const std::string_view page_css;  ///< the look of every page, light and dark
extern const std::string_view page_js;   ///< tools of every script

extern const std::string_view plan_css;
extern const std::string_view plan_html;
extern const std::string_view plan_js;

extern const std::string_view debug_css;
extern const std::string_view debug_parts_css;
extern const std::string_view debug_html;
extern const std::string_view debug_js;  ///< what the following build on
extern const std::string_view debug_table_js;
extern const std::string_view debug_layer_js;
extern const std::string_view debug_chart_js;  ///< comes last: it chooses the first layer, and the others listen

}  // namespace leadline::report::assets
