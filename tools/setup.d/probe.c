/* probe LIBHIPRTC: does this hipRTC compile for gfx950? Compiled and run by tools/setup, before kiln itself
 * is built.
 *
 * Exit 0: yes. 1: it is there and cannot; the reason is on stdout. 2: there is no such library, or it lacks
 * an entry. A one-line kernel decides, never a version number: it needs the device math library as well as
 * the compiler, and the answer counts only if the code object says gfx950. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The entry points as hipRTC's public header declares them; 0 is success in all of them. */
typedef struct program* program_t;
typedef int (*create_fn)(program_t*, const char* source, const char* name, int header_count,
                         const char* const* headers, const char* const* include_names);
typedef int (*compile_fn)(program_t, int option_count, const char* const* options);
typedef int (*size_fn)(program_t, size_t*);
typedef int (*text_fn)(program_t, char*);

static const char kSource[] = "extern \"C\" __global__ void probe(float* x) { *x = expf(*x); }\n";
static const char* const kOptions[] = {"--offload-arch=gfx950", "-O3", "-std=c++20"};

/* ELF64 header: the machine is at byte 18, the flags at byte 48; their low byte names the processor. */
enum { kElfHeaderBytes = 64, kMachineAt = 18, kMachineAmdgpu = 224, kFlagsAt = 48, kFlagsGfx950 = 0x4f };

static void* entry(void* library, const char* name) {
    void* found = dlsym(library, name);
    if (found == NULL) {
        printf("no entry point %s\n", name);
        exit(2);
    }
    return found;
}

static void print_log(void* library, program_t program) {
    size_t size = 0;
    size_fn log_size = (size_fn)entry(library, "hiprtcGetProgramLogSize");
    text_fn log_text = (text_fn)entry(library, "hiprtcGetProgramLog");
    if (log_size(program, &size) != 0 || size == 0)
        return;
    char* log = calloc(size + 1, 1);
    if (log != NULL && log_text(program, log) == 0)
        fputs(log, stdout);
    free(log);
}

int main(int argc, char** argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: probe LIBHIPRTC\n");
        return 2;
    }
    void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        printf("%s\n", dlerror());
        return 2;
    }
    create_fn create = (create_fn)entry(library, "hiprtcCreateProgram");
    compile_fn compile = (compile_fn)entry(library, "hiprtcCompileProgram");
    size_fn code_size = (size_fn)entry(library, "hiprtcGetCodeSize");
    text_fn get_code = (text_fn)entry(library, "hiprtcGetCode");

    program_t program = NULL;
    int status = create(&program, kSource, "probe.hip", 0, NULL, NULL);
    if (status != 0) {
        printf("hiprtcCreateProgram: error %d\n", status);
        return 1;
    }
    status = compile(program, sizeof kOptions / sizeof kOptions[0], kOptions);
    if (status != 0) {
        printf("hiprtcCompileProgram: error %d\n", status);
        print_log(library, program);
        return 1;
    }
    size_t size = 0;
    if (code_size(program, &size) != 0 || size < kElfHeaderBytes) {
        printf("hiprtcGetCodeSize: %zu bytes is no code object\n", size);
        return 1;
    }
    unsigned char* code = malloc(size);
    if (code == NULL || get_code(program, (char*)code) != 0) {
        printf("hiprtcGetCode failed\n");
        return 1;
    }
    if (memcmp(code, "\177ELF", 4) != 0 || code[kMachineAt] != kMachineAmdgpu ||
        code[kFlagsAt] != kFlagsGfx950) {
        printf("the code object is not one for gfx950\n");
        return 1;
    }
    /* Unloading an LLVM can crash on its way out; the answer is known. */
    fflush(stdout);
    _Exit(0);
}
