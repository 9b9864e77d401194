// The engines: each is one argument of the program that holds them all, and takes the arguments after it,
// from argv[1] on. They return what the process ends with, unless they end it themselves.
#pragma once

namespace kiln::test {

int run_ends(char** argv);
int run_forks(char** argv);
int run_many(char** argv);
int run_threads(char** argv);

// The one that the first argument names.
int run_program(int argc, char** argv);

}  // namespace kiln::test
