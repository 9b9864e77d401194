# What every target of kiln is built with, said once.

add_library(kiln_flags INTERFACE)
target_compile_features(kiln_flags INTERFACE cxx_std_20)
# Rooms include each other by their path from the root: "cache/store.hpp".
target_include_directories(kiln_flags INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_options(kiln_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Werror)
if(KILN_SANITIZE)
  target_compile_options(kiln_flags INTERFACE -fsanitize=${KILN_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(kiln_flags INTERFACE -fsanitize=${KILN_SANITIZE})
  if(KILN_SANITIZE MATCHES "undefined")
    target_compile_options(kiln_flags INTERFACE -fno-sanitize-recover=undefined)
  endif()
endif()

# The build tree is laid out like an installation, so that parts find each other the same way in both:
#   bin/kiln   lib/libkiln.so   lib/kiln/kiln-compile   lib/kiln/sim/libamdhip64.so.7
set(KILN_BIN_OUTPUT "${PROJECT_BINARY_DIR}/bin")
set(KILN_LIB_OUTPUT "${PROJECT_BINARY_DIR}/lib")
set(KILN_PRIVATE_OUTPUT "${KILN_LIB_OUTPUT}/kiln")
set(KILN_INSTALL_PRIVATE "${CMAKE_INSTALL_LIBDIR}/kiln")

# kiln_room(NAME SOURCES... [DEPENDS targets...]): one room of the project as a static library.
# Rooms end up inside libkiln.so, so they are position independent and export nothing.
function(kiln_room name)
  cmake_parse_arguments(room "" "" "SOURCES;DEPENDS" ${ARGN})
  add_library(${name} STATIC ${room_SOURCES})
  target_link_libraries(${name} PUBLIC kiln_flags ${room_DEPENDS})
endfunction()

# kiln_exports(TARGET [VERSION name] PATTERN...): the shared library TARGET exports the symbols that match and no others, not
# even the weak ones of the C++ library, so that two versions of it live in one process and nothing that it carries is seen
# outside. With a version, whoever is linked against it binds to that version's symbols alone.
function(kiln_exports target)
  cmake_parse_arguments(exports "" "VERSION" "" ${ARGN})
  list(JOIN exports_UNPARSED_ARGUMENTS "; " patterns)
  set(script "${CMAKE_CURRENT_BINARY_DIR}/${target}.map")
  file(CONFIGURE OUTPUT "${script}" CONTENT "${exports_VERSION} { global: ${patterns}; local: *; };\n" @ONLY)
  target_link_options(${target} PRIVATE
    "LINKER:--version-script=${script}" "LINKER:--exclude-libs=ALL" "LINKER:-z,text")
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${script}")
  if(NOT KILN_SANITIZE)  # a sanitizer's entry points may be the program's
    target_link_options(${target} PRIVATE "LINKER:--no-undefined")
  endif()
endfunction()

# kiln_test(NAME SOURCES... [DEPENDS targets...] [TIMEOUT seconds] [LABELS ...]): one doctest program, one ctest entry.
# Labels that the presets know: full, only in the preset release-full (tools/test --full); noasan and notsan, left out under
# that sanitizer. It is compiled with KILN_TEST_OPTIONS, which a room whose tests compute much on their own sets to nothing.
function(kiln_test name)
  cmake_parse_arguments(test "" "TIMEOUT" "SOURCES;DEPENDS;LABELS" ${ARGN})
  add_executable(${name} ${test_SOURCES})
  target_compile_options(${name} PRIVATE ${KILN_TEST_OPTIONS})
  target_link_libraries(${name} PRIVATE kiln_flags kiln_test_main ${test_DEPENDS})
  add_test(NAME ${name} COMMAND ${name})
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${test_TIMEOUT} LABELS "${test_LABELS}")
  list(FIND KILN_LONG_TESTS ${name} place)
  if(NOT place EQUAL -1)
    math(EXPR cost "1000 - ${place}")
    set_tests_properties(${name} PROPERTIES COST ${cost})
  endif()
endfunction()
