// Who takes the log's lines in place of stderr: log.hpp's set_taker(), and its other side.
#pragma once

#include "base/log.hpp"

namespace kiln::log {

// Hands the line over; false where nobody takes it, or where this thread is within a taker already.
[[nodiscard]] bool call_taker(Level level, const char* line);

}  // namespace kiln::log
