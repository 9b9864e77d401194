#include <openssl/evp.h>
#include <zstd.h>

int both(void) {
    return EVP_sha256() != NULL && ZSTD_createCCtx() != NULL;
}
