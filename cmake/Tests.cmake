# SPDX-License-Identifier: Apache-2.0
# leadline_tests (every *_test.cc), programs that other tests run, and the installation test.
include(GoogleTest)

# What tests/python/test_containers.py compares with h5py and Keras.
add_executable(container_dump ${PROJECT_SOURCE_DIR}/tests/programs/container_dump.cc)
leadline_compile_options(container_dump)
target_include_directories(container_dump PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(container_dump PRIVATE leadline fmt::fmt nlohmann_json::nlohmann_json)

# What the importer reads from a SavedModel, for the tests that compare it with TensorFlow.
add_executable(saved_model_dump ${PROJECT_SOURCE_DIR}/tests/programs/saved_model_dump.cc)
leadline_compile_options(saved_model_dump)
target_include_directories(saved_model_dump PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(saved_model_dump PRIVATE leadline fmt::fmt nlohmann_json::nlohmann_json)

# Pages of debug reports, for the tests that open them in a browser.
add_executable(debug_page ${PROJECT_SOURCE_DIR}/tests/programs/debug_page.cc)
leadline_compile_options(debug_page)
target_link_libraries(debug_page PRIVATE leadline fmt::fmt)

# Stands for the library of a GPU driver, which hangs or crashes on demand of a test.
add_library(fake_nvml MODULE ${PROJECT_SOURCE_DIR}/tests/programs/fake_nvml.cc)
leadline_compile_options(fake_nvml)

# Instructions of single ops, as callgrind counts them: a guard against kernels that become slower.
add_executable(instruction_counts
  ${PROJECT_SOURCE_DIR}/tests/programs/instruction_counts.cc ${PROJECT_SOURCE_DIR}/bench/op_cases.cc)
leadline_compile_options(instruction_counts)
target_include_directories(instruction_counts PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(instruction_counts PRIVATE leadline fmt::fmt)
set(count_instructions ${PROJECT_SOURCE_DIR}/tools/count_instructions.py --program $<TARGET_FILE:instruction_counts>
  --expected ${PROJECT_SOURCE_DIR}/data/instruction_counts.json
  --compiler "${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" ${sample_model})
add_custom_target(refresh_instruction_counts COMMAND ${count_instructions} --refresh
  DEPENDS leadline_sample VERBATIM USES_TERMINAL)
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT LEADLINE_SANITIZE)
  add_test(NAME instruction_counts COMMAND ${count_instructions})
  set_tests_properties(instruction_counts PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600)
endif()

leadline_sources(test_sources TESTS src tests/cpp)
if(NOT TARGET leadline_cli_parts)
  list(FILTER test_sources EXCLUDE REGEX "/src/cli/")
endif()
if(NOT leadline_has_pictures)
  list(FILTER test_sources EXCLUDE REGEX "/(picture|sample_files)_test\\.cc$")
endif()
if(test_sources)
  # Files of tests/cpp that are not tests are helpers of the tests.
  leadline_sources(test_helpers tests/cpp)
  if(NOT leadline_has_pictures)
    list(FILTER test_helpers EXCLUDE REGEX "/picture_writer\\.cc$")
  endif()
  add_executable(leadline_tests ${test_sources} ${test_helpers})
  leadline_compile_options(leadline_tests)
  leadline_compile_lightly(leadline_tests)
  target_include_directories(leadline_tests PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  # Only for those that need it: a path of the build tree in every command keeps compiler caches from helping.
  set_source_files_properties(src/guard/devices_test.cc src/guard/doctor_test.cc src/guard/elf_damage_test.cc
    src/guard/elf_file_test.cc
    PROPERTIES COMPILE_DEFINITIONS "LEADLINE_FAKE_NVML=\"$<TARGET_FILE:fake_nvml>\"")
  add_dependencies(leadline_tests fake_nvml)
  target_link_libraries(leadline_tests PRIVATE
    leadline leadline_guard GTest::gtest_main fmt::fmt nlohmann_json::nlohmann_json ZLIB::ZLIB ${picture_libraries}
    Threads::Threads)
  leadline_precompile(leadline_tests <gtest/gtest.h>)
  if(TARGET leadline_cli_parts)
    target_link_libraries(leadline_tests PRIVATE leadline_cli_parts)
  endif()
  if(TARGET leadline_schema)
    add_dependencies(leadline_tests leadline_schema)
    target_include_directories(leadline_tests SYSTEM PRIVATE
      ${generated_dir} ${generated_dir}/model ${FLATBUFFERS_INCLUDE_DIR})
  endif()
  gtest_discover_tests(leadline_tests DISCOVERY_MODE PRE_TEST WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    PROPERTIES TIMEOUT 600)
endif()

# Refuses memory and system calls in turn. The library's calls reach the test's versions through the linker.
if(test_sources)
  leadline_sources(fault_sources tests/faults)
  leadline_sources(fault_tests TESTS tests/faults)
  add_executable(leadline_faults ${fault_sources} ${fault_tests} ${PROJECT_SOURCE_DIR}/tests/cpp/sketch.cc)
  leadline_compile_options(leadline_faults)
  target_include_directories(leadline_faults PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR})
  target_link_libraries(leadline_faults PRIVATE leadline leadline_guard GTest::gtest_main fmt::fmt ZLIB::ZLIB Threads::Threads)
  foreach(call IN ITEMS malloc calloc realloc aligned_alloc posix_memalign free inflateInit_ inflateInit2_ inflate open fstat read pread write
      fopen fwrite fflush fclose rename mkdir opendir posix_fallocate mmap munmap madvise getrlimit sched_getaffinity
      pthread_create)
    target_link_options(leadline_faults PRIVATE -Wl,--wrap=${call})
  endforeach()
  gtest_discover_tests(leadline_faults DISCOVERY_MODE PRE_TEST WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    PROPERTIES TIMEOUT 1800)
endif()

# A sanitized archive asks its user for the sanitizer too, which is not what is tested here.
if(EXISTS ${PROJECT_SOURCE_DIR}/include/leadline/leadline.h AND NOT LEADLINE_SANITIZE)
  add_test(NAME install.find_package
    COMMAND ${PROJECT_SOURCE_DIR}/tests/programs/install/run.sh ${PROJECT_BINARY_DIR} ${sample_model} ${CMAKE_CXX_COMPILER})
  set_tests_properties(install.find_package PROPERTIES TIMEOUT 600)
endif()
