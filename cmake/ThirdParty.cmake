# SPDX-License-Identifier: Apache-2.0
# The libraries that Leadline is built with: those of the system, or the headers that a source distribution brings along
# (LEADLINE_THIRD_PARTY, made by tools/third_party.sh), which need nothing but a compiler.

set(bundled ${PROJECT_SOURCE_DIR}/third_party)
if(NOT EXISTS ${bundled}/include)
  set(bundled "")
endif()
set(LEADLINE_THIRD_PARTY "${bundled}" CACHE PATH "Folder with headers of fmt, Highway, flatbuffers and CLI11; empty: the system's")
set(leadline_bundled_zlib OFF)
set(leadline_bundled_libraries)  # for leadlineConfig.cmake

find_package(Threads REQUIRED)
if(LEADLINE_THIRD_PARTY)
  # One folder holds all headers. As system headers, their warnings are not ours to fix.
  set(HWY_INCLUDE_DIR ${LEADLINE_THIRD_PARTY}/include)
  set(FLATBUFFERS_INCLUDE_DIR ${LEADLINE_THIRD_PARTY}/include)
  foreach(library IN ITEMS fmt::fmt CLI11::CLI11)
    add_library(${library} INTERFACE IMPORTED)
    target_include_directories(${library} SYSTEM INTERFACE ${LEADLINE_THIRD_PARTY}/include)
  endforeach()
  target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY)
  set(leadline_bundled_libraries fmt::fmt)
  find_package(ZLIB)
  if(NOT ZLIB_FOUND)
    enable_language(C)
    set(leadline_bundled_zlib ON)
    list(APPEND leadline_bundled_libraries ZLIB::ZLIB)
    file(GLOB zlib_sources ${LEADLINE_THIRD_PARTY}/zlib/*.c)
    add_library(leadline_zlib OBJECT ${zlib_sources})
    target_compile_definitions(leadline_zlib PRIVATE HAVE_UNISTD_H HAVE_STDARG_H HAVE_HIDDEN)
    set_target_properties(leadline_zlib PROPERTIES C_VISIBILITY_PRESET hidden)
    add_library(ZLIB::ZLIB INTERFACE IMPORTED)
    target_include_directories(ZLIB::ZLIB SYSTEM INTERFACE ${LEADLINE_THIRD_PARTY}/zlib)
  endif()
else()
  find_package(fmt REQUIRED)
  find_path(HWY_INCLUDE_DIR hwy/highway.h REQUIRED)  # headers only: see src/kernels/cpu_targets.cc
  find_package(ZLIB REQUIRED)
  find_program(FLATC_PROGRAM flatc REQUIRED)
  find_path(FLATBUFFERS_INCLUDE_DIR flatbuffers/flatbuffers.h REQUIRED)
  if(LEADLINE_CLI OR LEADLINE_FUZZ)
    find_package(CLI11 REQUIRED)
  endif()
endif()

# leadline_schema_headers(<out>): the folder of the headers that flatc makes from the schemas of src/model, which come
# with the bundled ones, and the target leadline_schema that makes them.
function(leadline_schema_headers out_folder)
  set(generated_dir ${PROJECT_BINARY_DIR}/generated)
  if(LEADLINE_THIRD_PARTY)
    set(${out_folder} ${LEADLINE_THIRD_PARTY}/generated PARENT_SCOPE)
    add_custom_target(leadline_schema)
    return()
  endif()
  set(schema_headers)
  foreach(schema tflite conversion_metadata)
    set(schema_file ${PROJECT_SOURCE_DIR}/src/model/${schema}.fbs)
    set(schema_header ${generated_dir}/model/${schema}_generated.h)
    add_custom_command(OUTPUT ${schema_header}
      COMMAND ${FLATC_PROGRAM} --cpp -o ${generated_dir}/model ${schema_file}
      DEPENDS ${schema_file} VERBATIM)
    list(APPEND schema_headers ${schema_header})
  endforeach()
  add_custom_target(leadline_schema DEPENDS ${schema_headers})
  set(${out_folder} ${generated_dir} PARENT_SCOPE)
endfunction()
