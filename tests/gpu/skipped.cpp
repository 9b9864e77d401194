#include "tests/skipped.hpp"

#include "tests/engine/engine.hpp"

std::string kiln::test::why_skipped() {
    return engine::num_devices() > 0 ? "" : "no CUDA device: " + engine::why_none();
}
