# SPDX-License-Identifier: Apache-2.0
# Benchmarks: one program per *_bench.cc of bench/, built on demand; the other files there are what they share.

leadline_sources(bench_sources bench)
set(bench_parts ${bench_sources})
list(FILTER bench_sources INCLUDE REGEX "_bench\\.cc$")
list(FILTER bench_parts EXCLUDE REGEX "_bench\\.cc$")
add_custom_target(leadline_bench)

find_package(benchmark REQUIRED)
add_library(leadline_bench_parts STATIC EXCLUDE_FROM_ALL ${bench_parts})
leadline_compile_options(leadline_bench_parts)
target_include_directories(leadline_bench_parts PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/bench)
target_link_libraries(leadline_bench_parts PUBLIC leadline fmt::fmt)
foreach(source IN LISTS bench_sources)
  cmake_path(GET source STEM name)
  add_executable(${name} EXCLUDE_FROM_ALL ${source})
  leadline_compile_options(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  target_link_libraries(${name} PRIVATE leadline_bench_parts benchmark::benchmark Threads::Threads)
  add_dependencies(leadline_bench ${name})
endforeach()
