#include "base/digest.hpp"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <fmt/format.h>

namespace kiln {

std::string hex(ByteView bytes) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    text.reserve(2 * bytes.size());
    for (std::byte b : bytes) {
        text += kDigits[std::to_integer<unsigned>(b) >> 4];
        text += kDigits[std::to_integer<unsigned>(b) & 15];
    }
    return text;
}

Result<Digest> Digest::from_hex(std::string_view text) {
    Digest digest;
    const auto refuse = [&] {
        return fail(ErrorCode::bad_input, Stage::cache,
                    fmt::format("expected 64 hexadecimal digits, found \"{}\"", text));
    };
    if (text.size() != 2 * digest.bytes.size()) {
        return refuse();
    }
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        int nibble = -1;
        if (c >= '0' && c <= '9') {
            nibble = c - '0';
        } else if (c >= 'a' && c <= 'f') {
            nibble = c - 'a' + 10;
        } else {
            return refuse();
        }
        auto& b = digest.bytes[i / 2];
        b = static_cast<std::byte>((std::to_integer<unsigned>(b) << 4) | static_cast<unsigned>(nibble));
    }
    return digest;
}

Digest sha256(ByteView bytes) {
    // Left to itself the library takes itself down at exit, before the static objects of a host that still
    // calls.
    static const int kept = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
    static_cast<void>(kept);
    Digest digest;
    SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
           reinterpret_cast<unsigned char*>(digest.bytes.data()));
    return digest;
}

}  // namespace kiln
