/* Prints name and words of every error value that a libamdhip64 knows: "error_table LIBRARY". */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef const char* (*Text)(int);

int main(int argc, char** argv) {
    void* const library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (library == NULL) {
        fprintf(stderr, "usage: error_table LIBRARY: %s\n", dlerror());
        return 2;
    }
    Text name, words;
    *(void**)&name = dlsym(library, "hipGetErrorName");
    *(void**)&words = dlsym(library, "hipGetErrorString");
    for (int value = 0; value < 1100; ++value) {
        if (strcmp(name(value), "hipErrorUnknown") != 0) {
            printf("%d %s: %s\n", value, name(value), words(value));
        }
    }
    return 0;
}
