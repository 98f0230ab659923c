# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, a C++ file with the constants of src/report/assets.h: each file of ASSETS as a string, its name with _ for
# the dot. Script of a build step: cmake -DOUTPUT=... "-DASSETS=a.js,b.css" -P EmbedAssets.cmake

set(code "// Made by cmake/EmbedAssets.cmake.\n#include \"report/assets.h\"\n\nnamespace leadline::report::assets {\n")
string(REPLACE "," ";" ASSETS "${ASSETS}")
foreach(file IN LISTS ASSETS)
  cmake_path(GET file FILENAME name)
  string(REPLACE "." "_" name "${name}")
  file(READ ${file} text)
  # The license of the pages is their reader's business; import and export mean something to single files only.
  string(REGEX REPLACE "^[^\n]*SPDX-License-Identifier[^\n]*" "" text "${text}")
  if(name MATCHES "_js$")
    string(REGEX REPLACE "\nimport [^;]*;" "" text "${text}")
    string(REPLACE "\nexport " "\n" text "${text}")
  endif()
  if(text MATCHES "\\)asset\"")
    message(FATAL_ERROR "${file} contains )asset\", which ends a string of the generated file")
  endif()
  string(APPEND code "\nconstinit const std::string_view ${name} = R\"asset(${text})asset\";\n")
endforeach()
string(APPEND code "\n}  // namespace leadline::report::assets\n")
file(WRITE ${OUTPUT} "${code}")
