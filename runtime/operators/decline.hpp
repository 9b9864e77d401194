// Words for the reasons to decline. The reasons themselves are kiln_decline of the public header: one list,
// one place.
#pragma once

#include <span>
#include <string>

#include "base/error.hpp"
#include "kiln/kiln.h"

namespace kiln::operators {

struct DeclineWords {
    kiln_decline value;
    const char* name;  // "x_row_stride": what --json prints
    const char* text;  // one sentence
};

// Every reason there is, ascending by value.
[[nodiscard]] std::span<const DeclineWords> all_declines();

// "unknown" and "unknown reason" for a number that is none of kiln_decline.
[[nodiscard]] const char* decline_name(int decline);
[[nodiscard]] const char* decline_text(int decline);

// Why a call gave no result: a decline (then error.message says by name what did not fit), or an error
// (decline is 0).
struct Refusal {
    int decline = 0;
    Error error;

    // As the public interface returns it: the decline, or minus the error's code.
    [[nodiscard]] kiln_status status() const {
        return decline != 0 ? decline : -static_cast<kiln_status>(error.code);
    }
};

template <class T>
using Answer = tl::expected<T, Refusal>;

[[nodiscard]] inline tl::unexpected<Refusal> declined(kiln_decline decline, Stage stage, std::string detail) {
    return tl::unexpected<Refusal>(
        Refusal{decline, Error{ErrorCode::invalid_argument, stage, std::move(detail)}});
}
[[nodiscard]] inline tl::unexpected<Refusal> failed(Error error) {
    return tl::unexpected<Refusal>(Refusal{0, std::move(error)});
}

}  // namespace kiln::operators
