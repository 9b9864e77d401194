/* An allocator that a host preloads in place of the C library's: hands out pieces of big blocks, takes
 * nothing back, and counts. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { kAlignment = 16, kHead = 16 };
static const size_t kBlock = (size_t)64 << 20;

static atomic_llong g_count;
static atomic_flag g_lock = ATOMIC_FLAG_INIT;
static char* g_next;
static char* g_end;

long long kiln_test_allocations(void) {
    return atomic_load(&g_count);
}

static void* take(size_t alignment, size_t bytes) {
    if (bytes > SIZE_MAX / 4 || alignment > ((size_t)1 << 30)) {
        errno = ENOMEM;
        return NULL;
    }
    atomic_fetch_add(&g_count, 1);
    while (atomic_flag_test_and_set(&g_lock)) {
    }
    const size_t most = bytes + alignment + kHead;
    if (g_next == NULL || (size_t)(g_end - g_next) < most) {
        const size_t block = most > kBlock ? most : kBlock;
        char* const fresh = mmap(NULL, block, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (fresh == MAP_FAILED) {
            atomic_flag_clear(&g_lock);
            errno = ENOMEM;
            return NULL;
        }
        g_next = fresh;
        g_end = fresh + block;
    }
    char* const piece = (char*)(((uintptr_t)g_next + kHead + alignment - 1) & ~(uintptr_t)(alignment - 1));
    g_next = piece + bytes;
    atomic_flag_clear(&g_lock);
    memcpy(piece - sizeof bytes, &bytes, sizeof bytes);
    return piece;
}

void* malloc(size_t bytes) {
    return take(kAlignment, bytes);
}

void free(void* piece) {
    (void)piece;
}

void* calloc(size_t count, size_t bytes) {
    if (bytes != 0 && count > SIZE_MAX / bytes) {
        errno = ENOMEM;
        return NULL;
    }
    return take(kAlignment, count * bytes); /* fresh memory is zero, and none is used twice */
}

void* realloc(void* piece, size_t bytes) {
    void* const fresh = take(kAlignment, bytes);
    if (fresh != NULL && piece != NULL) {
        size_t before = 0;
        memcpy(&before, (char*)piece - sizeof before, sizeof before);
        memcpy(fresh, piece, before < bytes ? before : bytes);
    }
    return fresh;
}

void* memalign(size_t alignment, size_t bytes) {
    return take(alignment < kAlignment ? kAlignment : alignment, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) {
    return memalign(alignment, bytes);
}

int posix_memalign(void** piece, size_t alignment, size_t bytes) {
    *piece = memalign(alignment, bytes);
    return *piece != NULL ? 0 : ENOMEM;
}

size_t malloc_usable_size(void* piece) {
    size_t bytes = 0;
    if (piece != NULL) {
        memcpy(&bytes, (char*)piece - sizeof bytes, sizeof bytes);
    }
    return bytes;
}
