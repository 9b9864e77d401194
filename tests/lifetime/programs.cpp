#include "tests/lifetime/programs.hpp"

#include <string_view>

#include "tests/lifetime/engine.hpp"

int kiln::test::run_program(int argc, char** argv) {
    constexpr struct {
        std::string_view name;
        int (*run)(char** argv);
    } kPrograms[] = {{"ends", run_ends}, {"forks", run_forks}, {"many", run_many}, {"threads", run_threads}};
    for (const auto& program : kPrograms) {
        if (argc > 1 && program.name == argv[1]) {
            return program.run(argv + 1);
        }
    }
    ENGINE_REQUIRE(false, "no such engine");
}
