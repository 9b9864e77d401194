# What an installation consists of besides the executables, whose rooms install them:
#
#   include/kiln/                 the public headers
#   lib/libkiln.so                the library; lib/cmake/kiln/ for find_package(kiln), which gives kiln::kiln
#   lib/kiln/                     what libkiln finds beside itself: the compile worker, and the simulator in sim/; the package
#                                 for Python in python/, which finds libkiln
#   share/man/man1/               manual pages of the command line
#   share/kiln/                   templates and tables to read (libkiln carries its own), licenses
#
# Nothing in it knows where it was installed: the whole may be moved.
include(CMakePackageConfigHelpers)

set(kiln_config_folder "${CMAKE_INSTALL_LIBDIR}/cmake/kiln")

install(TARGETS kiln EXPORT kilnTargets LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/runtime/include/kiln" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DATADIR}/kiln")
install(EXPORT kilnTargets NAMESPACE kiln:: DESTINATION "${kiln_config_folder}")
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/kilnConfig.cmake.in" "${PROJECT_BINARY_DIR}/kilnConfig.cmake"
  INSTALL_DESTINATION "${kiln_config_folder}" PATH_VARS KILN_INSTALL_PRIVATE)
# Before 1.0 every minor version may change the interface.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/kilnConfig.cmake" "${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake"
  DESTINATION "${kiln_config_folder}")
