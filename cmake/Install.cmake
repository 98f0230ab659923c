# SPDX-License-Identifier: Apache-2.0
# `cmake --install`: headers, libraries, CMake package, program. Components: dev (the engine), guard (the library beside
# it), cli, and python, which has to be named because its prefix is a site-packages folder, as has jupyter, whose prefix
# is that of the environment.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/leadline)
install(TARGETS leadline_core leadline EXPORT leadlineTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
install(EXPORT leadlineTargets NAMESPACE leadline:: DESTINATION ${package_dir} COMPONENT dev)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/leadline DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev
  FILES_MATCHING PATTERN "*.h" PATTERN guard EXCLUDE)
install(TARGETS leadline_guard EXPORT leadlineGuardTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT guard
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT guard)
install(EXPORT leadlineGuardTargets NAMESPACE leadline:: DESTINATION ${package_dir} COMPONENT guard)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/leadline/guard DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/leadline
  COMPONENT guard FILES_MATCHING PATTERN "*.h")
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/leadlineConfig.cmake.in
  ${PROJECT_BINARY_DIR}/leadlineConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/leadlineConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/leadlineConfig.cmake ${PROJECT_BINARY_DIR}/leadlineConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT dev)

install(FILES ${PROJECT_SOURCE_DIR}/data/compatibility.json DESTINATION ${CMAKE_INSTALL_DATADIR}/leadline COMPONENT guard)

if(TARGET leadline_cli)
  if(DEFINED SKBUILD_SCRIPTS_DIR)
    # In a wheel the program is one of the scripts that pip puts beside python.
    install(PROGRAMS $<TARGET_FILE:leadline_cli> DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
  else()
    install(TARGETS leadline_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT cli)
  endif()
endif()

# The extension of jupyter_server is enabled by a file below the environment's prefix, not by one of the package; that of
# JupyterLab is there too.
set(jupyter_config ${PROJECT_SOURCE_DIR}/python/etc/jupyter/jupyter_server_config.d/leadline.json)
set(jupyter_config_dir etc/jupyter/jupyter_server_config.d)
set(lab_extension ${PROJECT_SOURCE_DIR}/python/share/jupyter/labextensions/leadline)
set(lab_extension_dir share/jupyter/labextensions)
if(TARGET _leadline AND DEFINED SKBUILD_DATA_DIR)
  install(FILES ${jupyter_config} DESTINATION ${SKBUILD_DATA_DIR}/${jupyter_config_dir} COMPONENT python)
  install(DIRECTORY ${lab_extension} DESTINATION ${SKBUILD_DATA_DIR}/${lab_extension_dir} COMPONENT python)
elseif(TARGET _leadline)
  install(FILES ${jupyter_config} DESTINATION ${jupyter_config_dir} COMPONENT jupyter EXCLUDE_FROM_ALL)
  install(DIRECTORY ${lab_extension} DESTINATION ${lab_extension_dir} COMPONENT jupyter EXCLUDE_FROM_ALL)
endif()

# The licences of what is inside, beside Leadline's own.
set(LEADLINE_LICENSES "" CACHE PATH "Folder with licences that a wheel brings along; empty: those of LEADLINE_THIRD_PARTY")
set(licenses "${LEADLINE_LICENSES}")
if(NOT licenses AND LEADLINE_THIRD_PARTY)
  set(licenses ${LEADLINE_THIRD_PARTY}/licenses)
endif()
if(DEFINED SKBUILD_METADATA_DIR AND licenses)
  install(DIRECTORY ${licenses}/ DESTINATION ${SKBUILD_METADATA_DIR}/licenses COMPONENT python)
endif()

if(TARGET _leadline)
  install(TARGETS _leadline LIBRARY DESTINATION leadline COMPONENT python EXCLUDE_FROM_ALL)
  if(NOT SKBUILD)  # scikit-build-core collects the Python files itself
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/leadline DESTINATION . COMPONENT python EXCLUDE_FROM_ALL
      PATTERN __pycache__ EXCLUDE)
  endif()
endif()
