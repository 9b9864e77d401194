#include "tests/lifetime/programs.hpp"

int main(int argc, char** argv) {
    return kiln::test::run_program(argc, argv);
}
