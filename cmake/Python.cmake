# SPDX-License-Identifier: Apache-2.0
# The extension module leadline._leadline. Uses .venv (`make setup`) unless Python_EXECUTABLE says otherwise.

leadline_sources(python_sources python/src)
if(NOT python_sources)
  return()
endif()

if(NOT DEFINED Python_EXECUTABLE AND EXISTS ${PROJECT_SOURCE_DIR}/.venv/bin/python)
  set(Python_EXECUTABLE ${PROJECT_SOURCE_DIR}/.venv/bin/python)
endif()
# scikit-build-core names the component of the stable ABI where pyproject.toml asks for it and Python has it (3.12);
# without it nanobind would build for one version of Python and say nothing.
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module ${SKBUILD_SABI_COMPONENT})
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
  OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE nanobind_dir ERROR_QUIET RESULT_VARIABLE nanobind_missing)
if(nanobind_missing)
  message(FATAL_ERROR "${Python_EXECUTABLE} has no nanobind: run `make setup`, or configure with -DLEADLINE_PYTHON=OFF")
endif()
find_package(nanobind CONFIG REQUIRED PATHS ${nanobind_dir} NO_DEFAULT_PATH)

set(stable_abi)
set(nanobind_library nanobind-static)
if(SKBUILD_SABI_COMPONENT)
  set(stable_abi STABLE_ABI)
  set(nanobind_library nanobind-static-abi3)
endif()
nanobind_add_module(_leadline NB_STATIC NOMINSIZE NB_SUPPRESS_WARNINGS ${stable_abi} ${python_sources})
# nanobind's own sources are few and small: together they take a third of the time.
set_target_properties(${nanobind_library} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
leadline_compile_options(_leadline)
if(stable_abi)
  # nanobind's headers print to stderr, which Python's own include for every version but the stable ABI.
  target_compile_options(${nanobind_library} PUBLIC -include cstdio)
endif()
leadline_compile_lightly(_leadline)
leadline_join_sources(_leadline ${python_sources})
set_target_properties(_leadline PROPERTIES
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python/leadline)
target_link_libraries(_leadline PRIVATE leadline leadline_guard fmt::fmt)
leadline_precompile(_leadline <nanobind/nanobind.h> <nanobind/stl/string.h> <nanobind/stl/vector.h>
  <nanobind/stl/shared_ptr.h> <nanobind/stl/optional.h> <nanobind/stl/pair.h>)
target_link_options(_leadline PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/extension_symbols.txt)
add_dependencies(product _leadline)
