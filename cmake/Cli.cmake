# SPDX-License-Identifier: Apache-2.0
# The `leadline` program.

leadline_sources(cli_sources src/cli)
if(NOT cli_sources)
  return()
endif()

find_package(CLI11 REQUIRED)
add_executable(leadline_cli ${cli_sources})
leadline_compile_options(leadline_cli)
set_target_properties(leadline_cli PROPERTIES OUTPUT_NAME leadline)
target_include_directories(leadline_cli PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(leadline_cli PRIVATE LEADLINE_VERSION="${PROJECT_VERSION}")
target_link_libraries(leadline_cli PRIVATE leadline fmt::fmt CLI11::CLI11 nlohmann_json::nlohmann_json)
add_dependencies(product leadline_cli)
