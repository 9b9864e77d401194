// The main of every test program. What the machine's own folders of configuration hold has no say in a test.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <stdlib.h>

int main(int argc, char** argv) {
    constexpr const char* kNowhere = "/nonexistent/kiln-tests";
    setenv("XDG_CONFIG_HOME", kNowhere, 1);
    setenv("XDG_CONFIG_DIRS", kNowhere, 1);
    return doctest::Context(argc, argv).run();
}
