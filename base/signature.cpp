#include "base/signature.hpp"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <utility>

#include <fmt/format.h>

#include "base/file.hpp"

namespace kiln {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Context = std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)>;

// No configuration of the machine's OpenSSL, which may name modules to load, and no handler at exit: see
// sha256(). What libcrypto has to say of a fault stays in its queue of this thread, which is the engine's
// too.
class Quiet {
  public:
    Quiet() {
        static const int kept =
            OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT | OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
        static_cast<void>(kept);
        ERR_set_mark();
    }
    ~Quiet() { ERR_pop_to_mark(); }
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;
};

const unsigned char* data_of(ByteView bytes) {
    return reinterpret_cast<const unsigned char*>(bytes.data());
}

// A key that is encrypted asks for its password: nobody is there to answer.
int no_password(char*, int, int, void*) {
    return -1;
}

template <class Read>
Result<Key> read_pem(const std::filesystem::path& path, std::string_view what, const Read& read) {
    const auto text = read_text_file(path, Stage::configure);
    if (!text) {
        return tl::unexpected(text.error());
    }
    const std::unique_ptr<BIO, decltype(&BIO_free)> memory(
        BIO_new_mem_buf(text->data(), static_cast<int>(text->size())), &BIO_free);
    Key key(memory != nullptr ? read(memory.get()) : nullptr, &EVP_PKEY_free);
    if (key == nullptr || EVP_PKEY_get_id(key.get()) != EVP_PKEY_ED25519) {
        return fail(ErrorCode::bad_input, Stage::configure,
                    fmt::format("{}: expected an Ed25519 {} in PEM form, found {}", path.string(), what,
                                key == nullptr ? "none" : "a key of another kind"));
    }
    return key;
}

Result<PublicKey> public_half(EVP_PKEY* key) {
    PublicKey half;
    std::size_t size = half.bytes.size();
    if (EVP_PKEY_get_raw_public_key(key, reinterpret_cast<unsigned char*>(half.bytes.data()), &size) != 1 ||
        size != half.bytes.size()) {
        return fail(ErrorCode::internal, Stage::configure, "libcrypto gives no public half of a key");
    }
    return half;
}

}  // namespace

Result<PublicKey> PublicKey::read(const std::filesystem::path& path) {
    const Quiet quiet;
    auto key = read_pem(path, "public key", [](BIO* memory) {
        return PEM_read_bio_PUBKEY(memory, nullptr, no_password, nullptr);
    });
    return key ? public_half(key->get()) : Result<PublicKey>(fail(key));
}

bool PublicKey::verifies(const Signature& signature, ByteView message) const {
    const Quiet quiet;
    const Key key(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, data_of(bytes), bytes.size()),
                  &EVP_PKEY_free);
    const Context context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
    return key != nullptr && context != nullptr &&
           EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
           EVP_DigestVerify(context.get(), data_of(signature), signature.size(), data_of(message),
                            message.size()) == 1;
}

Result<SigningKey> SigningKey::read(const std::filesystem::path& path) {
    const Quiet quiet;
    auto key = read_pem(path, "private key", [](BIO* memory) {
        return PEM_read_bio_PrivateKey(memory, nullptr, no_password, nullptr);
    });
    if (!key) {
        return fail(key);
    }
    auto half = public_half(key->get());
    if (!half) {
        return fail(half);
    }
    return SigningKey(
        std::shared_ptr<void>(key->release(), [](void* one) { EVP_PKEY_free(static_cast<EVP_PKEY*>(one)); }),
        *half);
}

Result<Signature> SigningKey::sign(ByteView message) const {
    const Quiet quiet;
    Signature signature{};
    std::size_t size = signature.size();
    const Context context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
    if (context == nullptr ||
        EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, static_cast<EVP_PKEY*>(key_.get())) !=
            1 ||
        EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                       data_of(message), message.size()) != 1 ||
        size != signature.size()) {
        return fail(ErrorCode::internal, Stage::configure, "libcrypto gives no signature");
    }
    return signature;
}

}  // namespace kiln
