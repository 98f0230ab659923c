# SPDX-License-Identifier: Apache-2.0
# Benchmarks: one program per file of bench/, with Google Benchmark's main unless it has its own. Built on demand.

leadline_sources(bench_sources bench)
add_custom_target(leadline_bench)
if(NOT bench_sources)
  return()
endif()

find_package(benchmark REQUIRED)
foreach(source IN LISTS bench_sources)
  cmake_path(GET source STEM name)
  add_executable(${name} EXCLUDE_FROM_ALL ${source})
  leadline_compile_options(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE leadline benchmark::benchmark_main fmt::fmt Threads::Threads)
  add_dependencies(leadline_bench ${name})
endforeach()
