# What kiln is built from. All of it is header-only or linked hidden, so that libkiln brings no library of its own into an
# engine's process where that can be avoided.
#
# libcrypto and libzstd come as static libraries where the distribution's may be linked so, tried once, so that an engine may
# hold any other version of them; else they are shared libraries, named as dependencies in the usual way. kiln::zstd and
# OpenSSL::Crypto are what a room names either way.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tl-expected REQUIRED)
find_package(zstd REQUIRED)

# fmt, compiled here (fmt/fmt.cpp says why). Whoever names fmt's header-only target gets it, spdlog among them.
add_library(kiln_fmt STATIC "${CMAKE_CURRENT_LIST_DIR}/fmt/fmt.cpp")
set_target_properties(fmt::fmt-header-only PROPERTIES
  INTERFACE_COMPILE_DEFINITIONS "" INTERFACE_LINK_LIBRARIES kiln_fmt)
set_target_properties(spdlog::spdlog_header_only PROPERTIES
  INTERFACE_LINK_LIBRARIES "fmt::fmt-header-only;Threads::Threads")

if(NOT DEFINED KILN_STATIC_LIBRARIES)
  message(CHECK_START "Looking for static libcrypto and libzstd")
  try_compile(works
    PROJECT static_libraries
    SOURCE_DIR "${CMAKE_CURRENT_LIST_DIR}/static_libraries"
    BINARY_DIR "${PROJECT_BINARY_DIR}/CMakeFiles/static_libraries"
    NO_CACHE)
  if(works)
    message(CHECK_PASS "found, libkiln carries them")
  else()
    message(CHECK_FAIL "none, libkiln needs the shared ones")
  endif()
  set(KILN_STATIC_LIBRARIES ${works} CACHE BOOL "carry libcrypto and libzstd inside libkiln")
endif()

add_library(kiln_zstd INTERFACE)
if(KILN_STATIC_LIBRARIES)
  set(OPENSSL_USE_STATIC_LIBS ON)
  target_link_libraries(kiln_zstd INTERFACE zstd::libzstd_static)
else()
  target_link_libraries(kiln_zstd INTERFACE zstd::libzstd_shared)
endif()
add_library(kiln::zstd ALIAS kiln_zstd)
find_package(OpenSSL REQUIRED)
