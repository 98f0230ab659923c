# SPDX-License-Identifier: Apache-2.0
# The examples, and the small model that they, the demo and some tests run.

# One example writes that model; the others are given it as first argument, and may ignore it.
set(sample_model ${PROJECT_BINARY_DIR}/sample.tflite)
leadline_sources(example_sources examples)
foreach(source IN LISTS example_sources)
  cmake_path(GET source STEM name)
  add_executable(example_${name} ${source})
  leadline_compile_options(example_${name})
  target_link_libraries(example_${name} PRIVATE leadline)
  if(LEADLINE_TESTS AND NOT name STREQUAL "build_a_model")
    add_test(NAME example.${name} COMMAND example_${name} ${sample_model} WORKING_DIRECTORY ${PROJECT_BINARY_DIR})
    set_tests_properties(example.${name} PROPERTIES TIMEOUT 600)
  endif()
endforeach()

add_custom_command(OUTPUT ${sample_model} COMMAND example_build_a_model ${sample_model}
  DEPENDS example_build_a_model VERBATIM)
add_custom_target(leadline_sample ALL DEPENDS ${sample_model})
add_dependencies(product leadline_sample)
