# The targets format, check-format and tidy. They name version 14, whose ideas of form the sources follow.

find_program(KILN_CLANG_FORMAT NAMES clang-format-14)
find_program(KILN_CLANG_TIDY NAMES clang-tidy-14)

function(kiln_style_target name mode tool)
  add_custom_target(${name}
    COMMAND "${CMAKE_COMMAND}" "-DMODE=${mode}" "-DTOOL=$<$<BOOL:${tool}>:${tool}>" "-DBUILD=${PROJECT_BINARY_DIR}"
            -P "${PROJECT_SOURCE_DIR}/tools/cmake/style.cmake"
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    USES_TERMINAL VERBATIM)
endfunction()

kiln_style_target(format fix "${KILN_CLANG_FORMAT}")
kiln_style_target(check-format check "${KILN_CLANG_FORMAT}")
kiln_style_target(tidy tidy "${KILN_CLANG_TIDY}")
