#include "runtime/sim/checks.hpp"

#include <fmt/format.h>

namespace kiln::sim {

Result<Checks> parse_checks(std::string_view text) {
    if (text == "all") {
        return Checks::all();
    }
    if (text == "none") {
        return Checks::none();
    }
    Checks checks = Checks::none();
    for (std::string_view left = text;;) {
        const std::size_t comma = left.find(',');
        const std::string_view word = left.substr(0, comma);
        if (word == "races") {
            checks.races = true;
        } else if (word == "uninitialised") {
            checks.uninitialised = true;
        } else if (word == "freed") {
            checks.freed = true;
        } else {
            return fail(ErrorCode::bad_input, Stage::device,
                        fmt::format("expected all, none, or some of races, uninitialised and freed with "
                                    "commas between, found \"{}\"",
                                    word));
        }
        if (comma == left.npos) {
            return checks;
        }
        left.remove_prefix(comma + 1);
    }
}

}  // namespace kiln::sim
