// Pairs of keys in the files that OpenSSL would write, without its command line.
#pragma once

#include <doctest/doctest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

namespace kiln::test {

// FOLDER/NAME.pem and FOLDER/NAME.pub.
inline void make_keys(const std::filesystem::path& folder, const std::string& name) {
    using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
    const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"),
                                                             &EVP_PKEY_free);
    const File secret(std::fopen((folder / (name + ".pem")).c_str(), "w"), &std::fclose);
    const File open(std::fopen((folder / (name + ".pub")).c_str(), "w"), &std::fclose);
    REQUIRE((key != nullptr && secret != nullptr && open != nullptr));
    REQUIRE(PEM_write_PrivateKey(secret.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1);
    REQUIRE(PEM_write_PUBKEY(open.get(), key.get()) == 1);
}

}  // namespace kiln::test
