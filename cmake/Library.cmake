# SPDX-License-Identifier: Apache-2.0
# The libraries: leadline (leadline::leadline, the engine) and leadline_guard (leadline::guard: processes under limits,
# the watch, post-mortems, devices, the doctor), both on leadline_core (leadline::core), so that a program can have
# either or both. Also the header that flatc makes from the schema of .tflite files.

leadline_sources(core_sources src/core src/io)
leadline_sources(kernel_sources src/kernels)
leadline_sources(engine_sources src/ir src/ops src/model src/plan src/runtime src/quantize src/debug)
# Rooms of the engine in which no loop over a tensor decides how long something takes.
leadline_sources(light_sources src/import src/report src/passes src/api src/jobs)
leadline_sources(guard_sources src/guard)

# Pictures: the decoders, or a file that says that there are none.
if(LEADLINE_PICTURES)
  find_package(PNG)
  find_package(JPEG)
endif()
set(leadline_has_pictures OFF)
set(picture_libraries)
if(LEADLINE_PICTURES AND PNG_FOUND AND JPEG_FOUND)
  set(leadline_has_pictures ON)
  set(picture_libraries PNG::PNG JPEG::JPEG)
  list(FILTER light_sources EXCLUDE REGEX "/picture_none\\.cc$")
else()
  message(STATUS "leadline: built without pictures")
  list(FILTER light_sources EXCLUDE REGEX "/picture_(png|jpeg)\\.cc$")
endif()

# Position-independent code with visible symbols must not be inlined across functions that could be replaced at load
# time; either of these says that none is.
function(leadline_hide_symbols target)
  if(BUILD_SHARED_LIBS)
    target_compile_options(${target} PRIVATE -fno-semantic-interposition)
  else()
    set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  endif()
endfunction()

# leadline_library(<target> <name in CMake packages> <source>...)
function(leadline_library target exported)
  add_library(${target} ${ARGN})
  add_library(leadline::${exported} ALIAS ${target})
  leadline_compile_options(${target})
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${exported} VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${target} PRIVATE fmt::fmt Threads::Threads ZLIB::ZLIB)
  leadline_precompile(${target} ${precompiled_${target}})
  leadline_hide_symbols(${target})
  add_dependencies(product ${target})
endfunction()

leadline_library(leadline_core core ${core_sources})
leadline_join_sources(leadline_core ${core_sources})
if(leadline_bundled_zlib)
  target_sources(leadline_core PRIVATE $<TARGET_OBJECTS:leadline_zlib>)
endif()
target_compile_features(leadline_core PUBLIC cxx_std_20)
target_include_directories(leadline_core
  PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

add_library(leadline_light OBJECT ${light_sources})
leadline_compile_options(leadline_light)
leadline_compile_lightly(leadline_light)
target_include_directories(leadline_light PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(leadline_light PRIVATE leadline_core fmt::fmt Threads::Threads ZLIB::ZLIB ${picture_libraries})
leadline_precompile(leadline_light ${PROJECT_SOURCE_DIR}/src/import/emitter.h)
leadline_hide_symbols(leadline_light)
leadline_join_sources(leadline_light ${light_sources})

# Kernels include little of the standard library, but Highway for several instruction sets at once, and then compile
# themselves for each. With Highway precompiled g++ warns of variables that its intrinsics leave undefined on purpose.
add_library(leadline_kernels OBJECT ${kernel_sources})
leadline_compile_options(leadline_kernels)
target_include_directories(leadline_kernels PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_include_directories(leadline_kernels SYSTEM PRIVATE ${HWY_INCLUDE_DIR})
target_link_libraries(leadline_kernels PRIVATE leadline_core)
# x86's baseline is Highway's scalar target, as with g++ 12. Others would get its emulation of vectors, which x86's own
# instructions in kernels do not fit.
if(LEADLINE_THIRD_PARTY OR CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_definitions(leadline_kernels PRIVATE HWY_BROKEN_EMU128=1)
endif()
leadline_hide_symbols(leadline_kernels)
if(LEADLINE_PRECOMPILED_HEADERS AND NOT LEADLINE_SANITIZE)
  target_precompile_headers(leadline_kernels PRIVATE ${PROJECT_SOURCE_DIR}/src/kernels/precompiled_simd.h)
  target_compile_options(leadline_kernels PRIVATE -Wno-uninitialized $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  foreach(source IN LISTS kernel_sources)
    file(STRINGS ${source} simd REGEX "kernels/all_targets.h" LIMIT_COUNT 1)
    if(NOT simd)
      set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endif()

# Every op includes these. Beside the standard library's, they are what a file of the engine takes longest to parse.
set(precompiled_leadline ${PROJECT_SOURCE_DIR}/src/ops/common.h ${PROJECT_SOURCE_DIR}/src/ops/movement.h
  ${PROJECT_SOURCE_DIR}/src/ops/quantization_rules.h)
leadline_library(leadline leadline ${engine_sources} $<TARGET_OBJECTS:leadline_kernels> $<TARGET_OBJECTS:leadline_light>)
target_link_libraries(leadline PUBLIC leadline_core PRIVATE ${picture_libraries})
leadline_join_sources(leadline ${engine_sources})

leadline_library(leadline_guard guard ${guard_sources})
target_link_libraries(leadline_guard PUBLIC leadline_core PRIVATE ${CMAKE_DL_LIBS})
leadline_compile_lightly(leadline_guard)
leadline_join_sources(leadline_guard ${guard_sources})

# Sanitized loops of SIMD take minutes to compile for each instruction set: one of them is enough, on x86 SSE4, which has
# vectors (the plain one has none). Under libFuzzer they are without sanitizers and counters: branches in them lead nowhere new.
if(LEADLINE_SANITIZE)
  set(kernel_options -DHWY_COMPILE_ONLY_STATIC)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    list(APPEND kernel_options -march=x86-64-v2 -maes -mpclmul)
  endif()
  if(LEADLINE_SANITIZE MATCHES "fuzzer")
    list(APPEND kernel_options -fno-sanitize=all)
  endif()
  set_source_files_properties(${kernel_sources} PROPERTIES COMPILE_OPTIONS "${kernel_options}")
endif()

# What pages of reports are made of.
file(GLOB assets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/report/assets/*.js ${PROJECT_SOURCE_DIR}/src/report/assets/*.css
  ${PROJECT_SOURCE_DIR}/src/report/assets/*.html)
list(JOIN assets "," joined_assets)
set(assets_source ${PROJECT_BINARY_DIR}/generated/report/assets.cc)
add_custom_command(OUTPUT ${assets_source}
  COMMAND ${CMAKE_COMMAND} -DOUTPUT=${assets_source} -DASSETS=${joined_assets} -P ${PROJECT_SOURCE_DIR}/cmake/EmbedAssets.cmake
  DEPENDS ${assets} cmake/EmbedAssets.cmake VERBATIM)
target_sources(leadline_light PRIVATE ${assets_source})

# doctor's table of compatible versions is part of its library.
set(compatibility ${PROJECT_SOURCE_DIR}/data/compatibility.json)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${compatibility})
file(READ ${compatibility} LEADLINE_COMPATIBILITY)
set(compatibility_source ${PROJECT_BINARY_DIR}/generated/guard/compatibility_data.cc)
configure_file(${PROJECT_SOURCE_DIR}/src/guard/compatibility_data.cc.in ${compatibility_source} @ONLY)
target_sources(leadline_guard PRIVATE ${compatibility_source})

leadline_schema_headers(generated_dir)
add_dependencies(leadline leadline_schema)
# SYSTEM: warnings in generated code are not ours to fix.
target_include_directories(leadline SYSTEM PRIVATE ${generated_dir} ${generated_dir}/model ${FLATBUFFERS_INCLUDE_DIR})
