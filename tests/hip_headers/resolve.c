/* resolve LIBRARY NAME...: prints each name that the library does not have. Exit 0: it has all of them. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
    if (argc < 3) {
        fprintf(stderr, "usage: resolve LIBRARY NAME...\n");
        return 2;
    }
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        printf("%s\n", dlerror());
        return 2;
    }
    int missing = 0;
    for (int i = 2; i < argc; ++i) {
        if (dlsym(library, argv[i]) == NULL) {
            printf("%s\n", argv[i]);
            ++missing;
        }
    }
    /* Unloading an LLVM can crash on its way out; the answer is known. */
    fflush(stdout);
    _Exit(missing == 0 ? 0 : 1);
}
