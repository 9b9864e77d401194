/* What the simulator's libamdhip64 exports besides HIP. A driver that has kiln_sim_take_counts is simulated.
 *
 * C only, so that any HIP program may declare and use it. Thread safe.
 */
#ifndef KILN_SIM_ABI_H
#define KILN_SIM_ABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Set before the first HIP call; zero keeps the default. */
typedef struct kiln_sim_config {
    size_t struct_bytes;   /* sizeof(kiln_sim_config) */
    int num_devices;       /* 1 to 16; default 2, or what the environment variable KILN_SIM_DEVICES says */
    uint64_t memory_bytes; /* of each device; default 288 GiB, taken from the host only as it is touched */
    unsigned threads;      /* host threads that share the work-groups of one launch; default one per core */
} kiln_sim_config;

/* A hipError_t: hipErrorInvalidValue for a bad configuration, hipErrorIllegalState once the devices exist. */
int kiln_sim_configure(const kiln_sim_config* config);

/* How the launches of a device run that begin from now on: what the hardware leaves open, and a kernel must
 * hold under all of it. Each member is a text as the environment variable has it; null leaves what was said
 * last. */
typedef struct kiln_sim_rules {
    size_t struct_bytes; /* sizeof(kiln_sim_rules) */
    const char* order;   /* KILN_SIM_ORDER: any (the default), ascending, descending, shuffle:SEED,
                          * interleave:SEED:   in which order work-groups start and waves take turns */
    const char* scopes;  /* KILN_SIM_SCOPES: early (the default) or late: when other dies see a store */
    const char* checks;  /* KILN_SIM_CHECK: all, none, or some of races, uninitialised and freed with commas
                          * between (default "uninitialised,freed"): what is looked for. `uninitialised`
                          * follows  allocations that are made while it is on */
} kiln_sim_rules;

/* A hipError_t: hipErrorInvalidValue for another size or a malformed text, which kiln_sim_last_message
 * explains. Null rules: what the environment says. */
int kiln_sim_set_rules(int device, const kiln_sim_rules* rules);

/* Makes bytes of an allocation count as never written again: for a program that hands out parts of one
 * allocation, when a part changes hands. Work that is submitted already is not waited for. A hipError_t:
 * hipErrorInvalidValue where the bytes are not inside of one allocation of a device. */
int kiln_sim_forget_written(const void* pointer, size_t bytes);

/* Where the calling thread's loads find the disassembly that is executed: in a store, else in a read-only
 * folder or a bundle, else from a compile worker. A member that is null or empty leaves it to the environment
 * (KILN_CACHE_DIR, KILN_CACHE_PATH, KILN_WORKER), else to the usual places. */
typedef struct kiln_sim_places {
    size_t struct_bytes;      /* sizeof(kiln_sim_places) */
    const char* cache_folder; /* of the store that keeps listings */
    const char* worker;       /* path of kiln-compile */
    const char* cache_path;   /* read-only folders and bundles that may hold some, ':' between */
} kiln_sim_places;

/* Holds for the calling thread until kiln_sim_pop_places; may be nested. The texts are copied. Each service
 * of kiln says it around its own loads, so that listings lie in the cache of the service that wanted them.
 * Kilns of several versions may do so in one process: members behind a smaller struct_bytes count as null,
 * those behind a greater one must be. A hipError_t: hipErrorInvalidValue when they are not, or for a pop
 * without a push. */
int kiln_sim_push_places(const kiln_sim_places* places);
int kiln_sim_pop_places(void);

/* Exact counts of what completed on a device; the fields are those of kiln::device::ExecutionCounts. */
typedef struct kiln_sim_counts {
    size_t struct_bytes; /* sizeof(kiln_sim_counts), set by the caller */
    uint64_t instructions, valu, transcendental, mfma, mfma_cycles, salu, branches, waits, smem, vmem, lds;
    uint64_t global_bytes_read, global_bytes_written;
    uint64_t global_line_requests, global_lines_read, global_lines_written, die_lines_read;
    uint64_t scalar_bytes_read, lds_bytes_read, lds_bytes_written;
    uint64_t lds_accesses, lds_cycles, lds_conflict_cycles;
    uint64_t work_groups, waves;
} kiln_sim_counts;

/* Fills `counts` and starts again from zero. Synchronise first: work that still runs is not in it. A
 * hipError_t. */
int kiln_sim_take_counts(int device, kiln_sim_counts* counts);

/* The same of one launch: of those that kiln_sim_take_counts would sum up, the first 64 in the order in which
 * they completed, the first that was not asked for yet. Leaves the sum alone. hipErrorNotFound: there is
 * none. */
int kiln_sim_next_launch_counts(int device, kiln_sim_counts* counts);

/* What went wrong on a device since it was last reset: the kernel, the instruction and the rule that was
 * broken. Empty when nothing did. The text lives until the calling thread asks again. */
const char* kiln_sim_last_fault(int device);

/* Why the calling thread's last HIP call that failed did so, where more is known than the error value; else
 * empty. */
const char* kiln_sim_last_message(void);

#ifdef __cplusplus
}
#endif

#endif
