// Names and words of HIP's error values.
#pragma once

namespace kiln::sim::hip {

struct ErrorText {
    unsigned value;
    const char* name;   // "hipErrorInvalidValue"
    const char* words;  // "invalid argument"
};

// hipErrorUnknown's for a value that HIP does not have.
[[nodiscard]] ErrorText error_text(unsigned value);

}  // namespace kiln::sim::hip
