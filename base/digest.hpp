// SHA-256, over libcrypto.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace kiln {

// Two lower-case hexadecimal digits for each byte.
[[nodiscard]] std::string hex(ByteView bytes);

struct Digest {
    std::array<std::byte, 32> bytes{};

    // 64 lower-case hexadecimal digits.
    [[nodiscard]] std::string hex() const { return kiln::hex(bytes); }
    // The inverse of hex(); anything else than 64 hexadecimal digits is bad_input.
    [[nodiscard]] static Result<Digest> from_hex(std::string_view text);

    friend bool operator==(const Digest&, const Digest&) = default;
    friend auto operator<=>(const Digest&, const Digest&) = default;
};

[[nodiscard]] Digest sha256(ByteView bytes);
[[nodiscard]] inline Digest sha256(std::string_view text) {
    return sha256(as_bytes(text));
}

}  // namespace kiln
