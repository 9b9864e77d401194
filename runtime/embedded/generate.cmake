# cmake -DROOT=<source root> -DOUTPUT=<file.cpp> -P generate.cmake
#
# Writes the texts of kernel_src/ and shapes/ as one C++ source.
include("${CMAKE_CURRENT_LIST_DIR}/append_files.cmake")

set(source "// Generated from kernel_src/ and shapes/ by runtime/embedded/generate.cmake.\n")
string(APPEND source "#include <array>\n#include \"runtime/embedded/embedded.hpp\"\n\n")
string(APPEND source "namespace kiln::embedded {\nnamespace {\n\nusing namespace std::string_view_literals;\n\n")
append_list(source kernel kernel_src "*.cu" "*.hip" "*.h")
append_list(source shape shapes "*.json")
string(APPEND source "}  // namespace\n\n")
string(APPEND source "std::span<const EmbeddedFile> kernel_files() { return kernel_list; }\n")
string(APPEND source "std::span<const EmbeddedFile> shape_files() { return shape_list; }\n\n")
string(APPEND source "}  // namespace kiln::embedded\n")
file(WRITE "${OUTPUT}" "${source}")
