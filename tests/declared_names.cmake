# kiln_names(LIST FILE PATTERN): what the pattern's group matches in the lines of a source, from their beginning, so that nothing
# that is declared there can be left out here. A semicolon is to be written as "!".
function(kiln_names result file pattern)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${file}")
  file(READ "${PROJECT_SOURCE_DIR}/${file}" text)
  string(REPLACE ";" "!" text "${text}")  # which would end an element of a list
  string(REGEX MATCHALL "\n${pattern}" matches "${text}")
  set(names "")
  foreach(match IN LISTS matches)
    string(REGEX MATCH "\n${pattern}" match "${match}")
    list(APPEND names "${CMAKE_MATCH_1}")
  endforeach()
  if(names STREQUAL "")
    message(FATAL_ERROR "${file}: nothing matches ${pattern}")
  endif()
  set(${result} "${names}" PARENT_SCOPE)
endfunction()
# kiln_write_names(FILE MACRO NAMES...): MACRO(name) for each.
function(kiln_write_names file macro)
  list(TRANSFORM ARGN PREPEND "${macro}(")
  list(TRANSFORM ARGN APPEND ")\n")
  list(JOIN ARGN "" text)
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${file}" CONTENT "${text}")
endfunction()
