# SPDX-License-Identifier: Apache-2.0
# Language level, flags shared by all targets of the project, ccache.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release)
  endif()
  if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
    find_program(CCACHE_PROGRAM ccache)
    find_program(ENV_PROGRAM env)
    if(CCACHE_PROGRAM AND ENV_PROGRAM)
      # ccache takes no note of precompiled headers unless it is told that it may. (`cmake -E env` would do too, but takes
      # 30 ms for each file.)
      set(CMAKE_CXX_COMPILER_LAUNCHER ${ENV_PROGRAM} CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE_PROGRAM})
    endif()
  endif()
endif()

# leadline_compile_options(<target>): every target of the project calls this.
function(leadline_compile_options target)
  # Products and sums are fused only where a kernel asks for it, so that results do not depend on the
  # instruction set a loop was compiled for. Nothing reads errno after a call of <cmath>.
  target_compile_options(${target} PRIVATE
    -ffp-contract=off -fno-math-errno
    -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wold-style-cast -Wextra-semi -Wundef)
  if(LEADLINE_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(LEADLINE_SANITIZE)
    target_compile_options(${target} PRIVATE
      -fsanitize=${LEADLINE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${LEADLINE_SANITIZE})
  endif()
endfunction()

# leadline_compile_lightly(<target>): -O1 for a target in which no loop over a tensor runs. It takes a third less time to
# compile than -O2, with no visible difference.
function(leadline_compile_lightly target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# leadline_precompile(<target> [<header>...]): parses the headers that most files include once instead of in every file,
# which is two thirds of what compiling a file takes. Sanitized builds do without, and so find includes that are missing.
option(LEADLINE_PRECOMPILED_HEADERS "Parse common headers once per target" ${PROJECT_IS_TOP_LEVEL})
function(leadline_precompile target)
  if(LEADLINE_PRECOMPILED_HEADERS AND NOT LEADLINE_SANITIZE)
    target_precompile_headers(${target} PRIVATE
      <algorithm> <array> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory> <numeric> <optional> <span>
      <string> <string_view> <unordered_map> <utility> <vector> <fmt/core.h> ${ARGN})
  endif()
endfunction()

# leadline_join_sources(<target> <source>...): compiles the sources of a folder six at a time, which parses headers and
# makes copies of templates once for all six: a third to a half less for the folder. Names in anonymous namespaces must differ within
# a folder. Off for daily work and where every file has to include what it uses: sanitized builds, clang-tidy.
option(LEADLINE_JOINED_SOURCES "Compile several sources of a folder at once" OFF)
function(leadline_join_sources target)
  if(NOT LEADLINE_JOINED_SOURCES)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # g++ takes an anonymous namespace of an included source for one of a header.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  foreach(source IN LISTS ARGN)
    get_filename_component(folder ${source} DIRECTORY)
    file(RELATIVE_PATH group ${PROJECT_SOURCE_DIR} ${folder})
    string(REPLACE "/" "_" group ${group})
    if(NOT DEFINED count_of_${group})
      set(count_of_${group} 0)
    endif()
    math(EXPR number "${count_of_${group}} / 6 + 1")
    math(EXPR count_of_${group} "${count_of_${group}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}_${number})
  endforeach()
endfunction()
