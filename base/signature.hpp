// Ed25519 signatures, over libcrypto; keys come from PEM files as OpenSSL writes them:
//
//   openssl genpkey -algorithm ed25519 -out private.pem
//   openssl pkey -in private.pem -pubout -out public.pem
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>

#include "base/bytes.hpp"
#include "base/digest.hpp"
#include "base/error.hpp"

namespace kiln {

using Signature = std::array<std::byte, 64>;

// A plain value.
struct PublicKey {
    std::array<std::byte, 32> bytes{};

    [[nodiscard]] std::string hex() const { return kiln::hex(bytes); }
    // The one "PUBLIC KEY" of a PEM file. not_found and io as read_file(); bad_input when it holds no such
    // key, or one of another algorithm.
    [[nodiscard]] static Result<PublicKey> read(const std::filesystem::path& path);
    // False for a signature that is not this key's over exactly these bytes, and for a key that is none.
    [[nodiscard]] bool verifies(const Signature& signature, ByteView message) const;

    friend bool operator==(const PublicKey&, const PublicKey&) = default;
};

// The private half. Moves, never copies; const members are thread safe.
class SigningKey {
  public:
    // The one unencrypted "PRIVATE KEY" of a PEM file; errors as PublicKey::read().
    [[nodiscard]] static Result<SigningKey> read(const std::filesystem::path& path);

    [[nodiscard]] const PublicKey& public_key() const { return public_key_; }
    // Of equal bytes always the same.
    [[nodiscard]] Result<Signature> sign(ByteView message) const;

  private:
    SigningKey(std::shared_ptr<void> key, const PublicKey& public_key)
        : key_(std::move(key)), public_key_(public_key) {}

    std::shared_ptr<void> key_;  // libcrypto's
    PublicKey public_key_;
};

}  // namespace kiln
