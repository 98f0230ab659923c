# SPDX-License-Identifier: Apache-2.0
# Finding sources by folder, so that a new file needs no edit here.

# leadline_sources(<out> [TESTS] <folder>...): the .cc files below the folders; with TESTS only *_test.cc, else all others.
function(leadline_sources out)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TESTS" "" "")
  set(found)
  foreach(folder IN LISTS arg_UNPARSED_ARGUMENTS)
    file(GLOB_RECURSE files CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cc")
    list(APPEND found ${files})
  endforeach()
  if(arg_TESTS)
    list(FILTER found INCLUDE REGEX "_test\\.cc$")
  else()
    list(FILTER found EXCLUDE REGEX "_test\\.cc$")
  endif()
  set(${out} ${found} PARENT_SCOPE)
endfunction()
