// Engines in processes of their own, with a table of one small problem, and a cache that is filled once.
#pragma once

#include <string>

namespace kiln::test {

// For a process that ends with handles that it lost on purpose.
inline constexpr const char* kLeaks = "ASAN_OPTIONS=detect_leaks=0";

// The command that starts one of programs.hpp.
[[nodiscard]] std::string engine_program(const std::string& name);

// What the process wrote. It must end by itself, with 0: `timeout` answers 124 for one that hangs, and the
// programs say where.
std::string run(const std::string& command);

// The end of a text, where a process says why it ended.
[[nodiscard]] std::string tail_of(const std::string& text);

// Waits for workers that were started for these processes.
void check_no_worker_is_left();

}  // namespace kiln::test
