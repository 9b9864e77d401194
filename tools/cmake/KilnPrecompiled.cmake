# What nearly every source includes of others (precompiled/headers.hpp), compiled once instead of once a source.
#
# Only where g++ compiles, under a sanitizer, and no launcher is set: a compiler cache does not take what was compiled with such a
# header, and with one g++ 12 at -O3 warns of overflows in std::string that are none. Set KILN_PRECOMPILE to decide otherwise. It
# never stands for an include of a source: a build without it would miss that.
if(NOT DEFINED KILN_PRECOMPILE)
  set(KILN_PRECOMPILE OFF)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND KILN_SANITIZE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(KILN_PRECOMPILE ON)
  endif()
endif()

# The header for sources that are compiled with kiln_flags and these options; -fPIE makes it one of programs. It is no good for
# others: g++ takes options out of it that the source's own command line sets otherwise.
function(kiln_precompiled name)
  add_library(${name} OBJECT "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/precompiled/empty.cpp")
  target_link_libraries(${name} PRIVATE kiln_flags)
  target_compile_options(${name} PRIVATE ${ARGN})
  if("-fPIE" IN_LIST ARGN)
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  endif()
  target_precompile_headers(${name} PRIVATE "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/precompiled/headers.hpp")
endfunction()

# Every target of a folder and those below that one of the headers fits.
function(kiln_use_precompiled folder)
  get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
  list(FILTER targets EXCLUDE REGEX "^kiln_headers_of_")
  foreach(target IN LISTS targets)
    get_target_property(kind ${target} TYPE)
    get_target_property(linked ${target} LINK_LIBRARIES)
    get_target_property(options ${target} COMPILE_OPTIONS)
    if(NOT kind MATCHES "EXECUTABLE|STATIC|SHARED|MODULE|OBJECT" OR NOT "kiln_flags" IN_LIST linked)
      continue()
    elseif(NOT options AND kind STREQUAL "EXECUTABLE")
      target_precompile_headers(${target} REUSE_FROM kiln_headers_of_programs)
    elseif(NOT options)
      target_precompile_headers(${target} REUSE_FROM kiln_headers_of_libraries)
    elseif(options STREQUAL KILN_TEST_OPTIONS)
      target_precompile_headers(${target} REUSE_FROM kiln_headers_of_tests)
    endif()
  endforeach()
  get_property(folders DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
  foreach(one IN LISTS folders)
    kiln_use_precompiled("${one}")
  endforeach()
endfunction()

# Once every room has spoken.
function(kiln_precompile)
  if(NOT KILN_PRECOMPILE)
    return()
  endif()
  kiln_precompiled(kiln_headers_of_libraries)
  kiln_precompiled(kiln_headers_of_programs -fPIE)
  if(KILN_TESTS AND KILN_TEST_OPTIONS)
    kiln_precompiled(kiln_headers_of_tests -fPIE ${KILN_TEST_OPTIONS})
  endif()
  kiln_use_precompiled("${PROJECT_SOURCE_DIR}")
endfunction()
