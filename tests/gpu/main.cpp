#include <string_view>

#include "tests/gpu/faults.hpp"
#include "tests/lifetime/programs.hpp"

int main(int argc, char** argv) {
    const bool faults = argc > 1 && std::string_view(argv[1]) == "faults";
    return faults ? kiln::test::run_faults() : kiln::test::run_program(argc, argv);
}
