# SPDX-License-Identifier: Apache-2.0
# The `leadline` program: main.cc, and the rest as a library that the tests link too.

leadline_sources(cli_sources src/cli)
set(cli_main ${PROJECT_SOURCE_DIR}/src/cli/main.cc)
list(REMOVE_ITEM cli_sources ${cli_main})
if(NOT cli_sources OR NOT EXISTS ${cli_main})
  return()
endif()

# The Python script that runs peers for `leadline bench` is part of the program.
set(bench_engine ${PROJECT_SOURCE_DIR}/src/cli/bench_engine.py)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${bench_engine})
file(READ ${bench_engine} LEADLINE_BENCH_ENGINE)
set(bench_engine_source ${PROJECT_BINARY_DIR}/generated/cli/bench_engine.cc)
configure_file(${PROJECT_SOURCE_DIR}/src/cli/bench_engine.cc.in ${bench_engine_source} @ONLY)

add_library(leadline_cli_parts STATIC ${cli_sources} ${bench_engine_source})
leadline_compile_options(leadline_cli_parts)
leadline_compile_lightly(leadline_cli_parts)
target_include_directories(leadline_cli_parts PUBLIC ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(leadline_cli_parts
  PUBLIC leadline leadline_guard fmt::fmt CLI11::CLI11 PRIVATE ZLIB::ZLIB)
leadline_precompile(leadline_cli_parts)
leadline_join_sources(leadline_cli_parts ${cli_sources})

add_executable(leadline_cli ${cli_main})
leadline_compile_options(leadline_cli)
leadline_compile_lightly(leadline_cli)
set_target_properties(leadline_cli PROPERTIES OUTPUT_NAME leadline)
if(BUILD_SHARED_LIBS)
  set_target_properties(leadline_cli PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
endif()
target_link_libraries(leadline_cli PRIVATE leadline_cli_parts)
add_dependencies(product leadline_cli)
