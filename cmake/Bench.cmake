# SPDX-License-Identifier: Apache-2.0
# leadline_bench: the C++ benchmarks, one program.

leadline_sources(bench_sources bench)
if(NOT bench_sources)
  return()
endif()

find_package(benchmark REQUIRED)
add_executable(leadline_bench EXCLUDE_FROM_ALL ${bench_sources})
leadline_compile_options(leadline_bench)
target_include_directories(leadline_bench PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(leadline_bench PRIVATE leadline benchmark::benchmark_main fmt::fmt hwy::hwy Threads::Threads)
