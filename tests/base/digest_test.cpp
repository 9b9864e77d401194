#include "base/digest.hpp"

#include <doctest/doctest.h>

#include <string>

using kiln::Digest;

TEST_CASE("DigestMatchesThePublishedVectors") {
    // FIPS 180-4 examples: the empty message, "abc", and a million times the letter a.
    CHECK(kiln::sha256("").hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(kiln::sha256("abc").hex() == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(kiln::sha256(std::string(1'000'000, 'a')).hex() ==
          "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("DigestReadsWhatItWrites") {
    const Digest digest = kiln::sha256("abc");
    CHECK(Digest::from_hex(digest.hex()) == digest);
}

TEST_CASE("DigestRefusesTextThatIsNoDigest") {
    const std::string good = kiln::sha256("abc").hex();
    std::string upper_case = good;
    upper_case[0] = 'B';
    std::string not_hexadecimal = good;
    not_hexadecimal[63] = 'g';
    for (const auto& bad : {std::string(), good.substr(1), good + "0", upper_case, not_hexadecimal}) {
        const auto result = Digest::from_hex(bad);
        REQUIRE(!result);
        CHECK(result.error().code == kiln::ErrorCode::bad_input);
        CHECK(result.error().message.find("64 hexadecimal digits") != std::string::npos);
    }
}
