# A build for a machine with a GPU and nothing of ours: the preset "portable", and its folder build/portable/stage.
#
# It needs no library there but the C library's own, from the C library of the machine it was built on onwards. The folder is an
# installation (KilnInstall.cmake) without the simulator, with the programs that kiln_stage() names beside the command line in
# bin/, so parts find each other as they do in any installation, wherever it is put. check_stage.sh, the last step, holds it to
# that.
option(KILN_PORTABLE "link the C++ library and all others statically, and define the target stage" OFF)
if(KILN_PORTABLE)
  set(KILN_STATIC_LIBRARIES ON)
  set(CMAKE_INSTALL_MESSAGE NEVER)
  add_link_options(-static-libstdc++ -static-libgcc)
endif()

# kiln_stage(TARGET...): these programs are for a machine with a GPU. No installation but the stage has them.
function(kiln_stage)
  foreach(program IN LISTS ARGN)
    set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
    install(TARGETS ${program} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT stage EXCLUDE_FROM_ALL)
    set_property(GLOBAL APPEND PROPERTY KILN_STAGED ${program})
  endforeach()
endfunction()

# Once every room has spoken.
function(kiln_stage_target)
  if(NOT KILN_PORTABLE)
    return()
  endif()
  get_property(programs GLOBAL PROPERTY KILN_STAGED)
  set(stage "${PROJECT_BINARY_DIR}/stage")
  set(install "${CMAKE_COMMAND}" --install "${PROJECT_BINARY_DIR}" --prefix "${stage}" --strip --component)
  add_custom_target(stage
    COMMAND "${CMAKE_COMMAND}" -E rm -rf "${stage}"
    COMMAND ${install} Unspecified
    COMMAND ${install} stage
    COMMAND bash "${PROJECT_SOURCE_DIR}/tools/cmake/check_stage.sh" "${stage}"
    VERBATIM)
  add_dependencies(stage kiln kiln_cli kiln_man_pages kiln-compile ${programs})
endfunction()
