# SPDX-License-Identifier: Apache-2.0
# leadline_fuzz: mutants of models, made through the schema.

leadline_sources(fuzz_sources fuzz/mutants)
add_executable(leadline_fuzz ${fuzz_sources})
leadline_compile_options(leadline_fuzz)
target_include_directories(leadline_fuzz PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_include_directories(leadline_fuzz SYSTEM PRIVATE ${FLATBUFFERS_INCLUDE_DIR})
if(LEADLINE_SANITIZE)
  target_compile_definitions(leadline_fuzz PRIVATE LEADLINE_SANITIZED)
endif()
if(LEADLINE_SANITIZE MATCHES "address")
  target_compile_definitions(leadline_fuzz PRIVATE LEADLINE_ADDRESS_SANITIZED)
endif()
find_package(nlohmann_json REQUIRED)
target_link_libraries(leadline_fuzz PRIVATE leadline fmt::fmt CLI11::CLI11 nlohmann_json::nlohmann_json Threads::Threads)
