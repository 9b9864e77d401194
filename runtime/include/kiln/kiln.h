/* kiln: GPU kernels as source templates, specialised for a shape the first time it is asked for.
 *
 * This is the whole interface of libkiln, with the headers that it includes, one for each operator: C11,
 * opaque handles, no exceptions, nothing of HIP, CUDA or any other library. A C++ program uses kiln.hpp,
 * which is header-only on top of it.
 *
 *     kiln_config config = KILN_CONFIG_INIT;
 *     kiln_service* service = NULL;
 *     kiln_plan* plan = NULL;
 *     kiln_error* error = NULL;
 *     kiln_linear problem = KILN_LINEAR_INIT;
 *     problem.n = 4608;
 *     problem.k = 4096;
 *     if (kiln_service_open(&config, &service, &error) == KILN_OK &&
 *         kiln_linear_prepare(service, 0, &problem, NULL, &plan, &error) == KILN_OK) {
 *         kiln_linear_args args = {x, 4096, w, w_scale, out};
 *         kiln_status status = kiln_linear_launch(plan, stream, m, &args);
 *     }
 *
 * Life of a handle. A function that gives out a handle gives it with one reference; *_release (or
 * kiln_error_free) takes it back, and is fine with NULL. A plan keeps alive what it needs: it may outlive its
 * service.
 *
 * Structs that carry struct_size are versioned: their *_INIT macro sets it, members that an older caller does
 * not know take their default, and a struct from a newer header is accepted as long as what this library does
 * not know is zero.
 *
 * Thread safety. Every function may be called from any thread at any time on the same handle, except that
 * releasing the last reference must not race with another use of it.
 *
 * Fork. A driver, its streams and the compile workers do not survive a fork: in the child, every call on a
 * handle that the parent made answers KILN_ERROR_ENVIRONMENT (or the neutral value of a function that has no
 * status) and releasing one does nothing. The child opens a service of its own.
 *
 * HIP's last error. kiln leaves none of its own behind. One of the program's that hipPeekAtLastError shows
 * before a call, it shows after it too, unless a call of the driver inside fails and takes its place.
 *
 * CUDA's contexts. kiln works in the primary context of a device, which the CUDA runtime and PyTorch share,
 * and keeps it for the life of the process. Whatever context is current on a thread stays so; a thread with
 * none counts as on device 0, as the CUDA runtime has it.
 */
#ifndef KILN_KILN_H_
#define KILN_KILN_H_

#include <stddef.h>
#include <stdint.h>

#define KILN_VERSION_MAJOR 0
#define KILN_VERSION_MINOR 1
#define KILN_VERSION_PATCH 0

#if defined(__GNUC__)
#define KILN_API __attribute__((visibility("default")))
#define KILN_NODISCARD __attribute__((warn_unused_result))
#else
#define KILN_API
#define KILN_NODISCARD
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- status, errors, declines ----------------------------------------------------------------
 *
 * Every function that can fail returns a status:
 *     0    done
 *   > 0    declined: "not applicable", one of kiln_decline; the caller keeps its own path, nothing is wrong
 *   < 0    failed: minus one of kiln_error_code
 */
typedef int32_t kiln_status;
#define KILN_OK 0

/* What kind of thing went wrong. The values never change. */
typedef enum kiln_error_code {
    KILN_ERROR_INVALID_ARGUMENT = 1, /* the caller passed something that can not be meant */
    KILN_ERROR_BAD_INPUT = 2,        /* a file or an environment variable is malformed */
    KILN_ERROR_NOT_FOUND = 3,        /* a thing that was named does not exist */
    KILN_ERROR_ENVIRONMENT = 4, /* the machine lacks something: a library, a worker, a folder, a permission */
    KILN_ERROR_IO = 5,          /* the operating system refused to read or write */
    KILN_ERROR_DAMAGED = 6,     /* bytes that kiln wrote no longer verify */
    KILN_ERROR_COMPILE_FAILED = 7, /* the compiler judged a template and refused it */
    KILN_ERROR_WORKER_FAILED = 8,  /* the compile worker crashed, hung or talked nonsense */
    KILN_ERROR_LOAD_FAILED = 9,    /* the driver, or kiln's own check, refused a code object */
    /* the driver refused a launch: that specialisation is disabled from now on */
    KILN_ERROR_LAUNCH_FAILED = 10,
    /* any other call of the driver failed, an earlier asynchronous error among them */
    KILN_ERROR_DEVICE_FAILED = 11,
    KILN_ERROR_INTERNAL = 12 /* a promise of kiln's own code was broken */
} kiln_error_code;

/* Where in the life of a request it went wrong. The values never change. */
typedef enum kiln_stage {
    KILN_STAGE_CONFIGURE = 1,
    KILN_STAGE_TABLE = 2,
    KILN_STAGE_CACHE = 3,
    KILN_STAGE_COMPILE = 4,
    KILN_STAGE_LOAD = 5,
    KILN_STAGE_LAUNCH = 6,
    KILN_STAGE_DEVICE = 7
} kiln_stage;

/* Every reason to decline. The values never change; new ones are added at the end of their group. */
typedef enum kiln_decline {
    /* Decided when a problem is asked for (supports, prepare). */
    KILN_DECLINE_SHAPE = 1,     /* no row of the shape tables has these dimensions */
    KILN_DECLINE_PROCESSOR = 2, /* rows have these dimensions, none for the processor of this device */
    KILN_DECLINE_TARGET_FEATURE =
        3, /* rows for this processor pin features or compute units the device has not */
    KILN_DECLINE_SWITCHED_OFF = 4, /* KILN_DISABLE or the configuration takes this operator or template out */
    KILN_DECLINE_DISABLED = 5,     /* a build, a load or a launch of it failed earlier */
    KILN_DECLINE_COMPILER = 6,     /* the compiler at hand can not build for the target (HIP before 7.2) */
    KILN_DECLINE_DIMENSIONS = 7,   /* dimensions that the operator's layouts do not allow */
    KILN_DECLINE_X_TYPE = 8,       /* activations of another type than the operator takes */
    KILN_DECLINE_X_QUANTISED = 9,  /* activations already quantised: an input scale is given */
    KILN_DECLINE_X_INNER_STRIDE = 10,    /* neighbours in a row of x are not adjacent in memory */
    KILN_DECLINE_W_TYPE = 11,            /* weights of another type */
    KILN_DECLINE_W_LAYOUT = 12,          /* weights not preshuffled */
    KILN_DECLINE_W_SCALE_TYPE = 13,      /* weight scales of another type */
    KILN_DECLINE_W_SCALE_SHAPE = 14,     /* weight scales of another granularity */
    KILN_DECLINE_W_SCALE_STRIDE = 15,    /* weight scales not contiguous */
    KILN_DECLINE_OUT_TYPE = 16,          /* results wanted in another type */
    KILN_DECLINE_BIAS = 17,              /* a bias is to be added */
    KILN_DECLINE_SHARED_EXPERTS = 18,    /* more shared experts than are served */
    KILN_DECLINE_RENORMALISE = 19,       /* the weights of the chosen experts are not renormalised */
    KILN_DECLINE_EXPERT_PARALLEL = 20,   /* ranks share the experts out */
    KILN_DECLINE_EXPERT_MAP = 21,        /* ids are mapped to where an expert lies (EPLB) */
    KILN_DECLINE_SIMULATED_ROUTING = 22, /* routing is simulated, not computed */
    KILN_DECLINE_SCORING = 23,           /* experts are scored, or chosen by their scores, in another way */
    KILN_DECLINE_EXPERT_MASK = 24,       /* a mask says which experts are local */
    KILN_DECLINE_LOCAL_TOKENS = 25,      /* the number of tokens is counted on the device */
    KILN_DECLINE_ACTIVATION = 26,        /* another activation between the two stages of an expert */
    KILN_DECLINE_WEIGHTED_STAGE_1 = 27,  /* the routing weights are to be applied in the first stage */
    KILN_DECLINE_NOT_COMBINED = 28,      /* the results of a token's experts are wanted one by one */
    KILN_DECLINE_W_SCALE_LAYOUT = 29,    /* weight scales in another order than the weights' format has */
    KILN_DECLINE_GATE_STRIDE = 41,       /* a gate of the router not contiguous */
    KILN_DECLINE_NOT_DETERMINISTIC = 42, /* the same bits are demanded; no kernel of the row gives them */

    /* Decided at a launch. */
    KILN_DECLINE_M_NEGATIVE = 64,   /* M below 0; M = 0 succeeds and launches nothing */
    KILN_DECLINE_M_TOO_LARGE = 65,  /* M above the last bucket of the row */
    KILN_DECLINE_NULL_POINTER = 66, /* an array, or a workspace that is needed, is null */
    KILN_DECLINE_X_ALIGNMENT = 67,  /* x not aligned to 16 bytes */
    KILN_DECLINE_X_ROW_STRIDE = 68, /* row stride of x below its columns, no multiple of 8, or too large */
    KILN_DECLINE_W_ALIGNMENT = 69,  /* w not aligned to 16 bytes */
    KILN_DECLINE_W_SCALE_ALIGNMENT = 70, /* w_scale not aligned to 4 bytes */
    KILN_DECLINE_OUT_ALIGNMENT = 71,     /* out not aligned to 16 bytes */
    KILN_DECLINE_OTHER_DEVICE = 72,      /* the calling thread's current device is not the plan's */
    KILN_DECLINE_COMPILING = 73,         /* the bucket of this M is not ready yet */
    /* the first use of a bucket would compile or load while the stream captures, or a workspace would be
     * initialised there */
    KILN_DECLINE_CAPTURE = 74,
    KILN_DECLINE_IDS_ALIGNMENT = 75,       /* ids not aligned to 4 bytes */
    KILN_DECLINE_WEIGHTS_ALIGNMENT = 76,   /* routing weights not aligned to 4 bytes */
    KILN_DECLINE_WORKSPACE_ALIGNMENT = 77, /* the workspace not aligned to 256 bytes */
    KILN_DECLINE_SORTED_ALIGNMENT = 79,    /* sorted_ids, sorted_weights not aligned to 16 bytes, or
                                            * sorted_expert_ids, num_valid not to 4 */
    KILN_DECLINE_MOE_BUF_ALIGNMENT = 80,   /* moe_buf not aligned to 16 bytes */
    KILN_DECLINE_Q_ALIGNMENT = 81,         /* q not aligned to 16 bytes */
    KILN_DECLINE_Q_SCALE_ALIGNMENT = 82,   /* q_scale not aligned to 4 bytes */
    KILN_DECLINE_GATE_ALIGNMENT = 85,      /* a gate of the router not aligned to 16 bytes */
    KILN_DECLINE_FLAG_ALIGNMENT = 86       /* invalid_id not aligned to 4 bytes */
} kiln_decline;

/* One sentence for a reason to decline, "unknown reason" for any other number. Constant, never NULL. */
KILN_API const char* kiln_decline_text(int32_t decline);

/* One sentence for any status: "done", the text of the decline, or the kind of error. Never NULL. */
KILN_API const char* kiln_status_text(kiln_status status);

/* The long answer of one call. Functions take `kiln_error** error`, which may be NULL; when they do not
 * return KILN_OK and it is not NULL, *error is a new object that the caller frees. It is also filled for a
 * decline, because the message says by name what did not fit ("gfx942"). When they return KILN_OK, *error is
 * left alone. */
typedef struct kiln_error kiln_error;
KILN_API kiln_status kiln_error_get_status(const kiln_error* error); /* what the call returned */
KILN_API int32_t kiln_error_get_code(const kiln_error* error);       /* a kiln_error_code; 0 for a decline */
KILN_API int32_t kiln_error_get_stage(const kiln_error* error);      /* a kiln_stage */
/* What was expected, what was found and where. Lives as long as the object. */
KILN_API const char* kiln_error_get_message(const kiln_error* error);
KILN_API void kiln_error_free(kiln_error* error);

/* "0.1.0" of the library that is loaded, which need not be that of this header. */
KILN_API const char* kiln_version(void);

/* ---- service ------------------------------------------------------------------------------- */

/* Tables, templates, cache, compiler and devices of one embedding program. */
typedef struct kiln_service kiln_service;

/* A member left NULL (or 0) takes the environment variable named beside it, then the default, when the
 * service is opened. The strings are copied. What reads the environment later, or besides this struct: the
 * compiler, KILN_WORKER, KILN_ROCM_PREFIX and KILN_CUDA_PREFIX when it is first needed; the simulator's
 * libamdhip64, which any HIP program may load, KILN_SIM_* and KILN_ROCM_PREFIX. Listings for its loads
 * are kept in the cache of the service that loads. */
typedef struct kiln_config {
    size_t struct_size;
    /* KILN_CACHE_DIR: folder of the user's store; $XDG_CACHE_HOME/kiln, else $HOME/.cache/kiln. */
    const char* cache_dir;
    /* KILN_SHAPES_PATH: tables or folders of tables that go before all others, ':' between. */
    const char* shapes_path;
    /* KILN_KERNEL_PATH: folders of templates that go before the shipped ones, ':' between. */
    const char* kernel_path;
    /* KILN_TARGET: the target of questions asked without a device; "gfx950". */
    const char* target;
    /* KILN_DEVICE: "auto" (a real GPU, AMD's before NVIDIA's, else the simulator), "hip", "cuda" or "sim";
     * "auto". */
    const char* device;
    /* KILN_JIT: "on", or "off", which turns every would-be compile into an error; "on". */
    const char* jit;
    /* KILN_DISABLE: operators or templates to decline, ',' between ("router,linear/small_m"); none. */
    const char* disable;
    /* KILN_WORKER: path of kiln-compile; the one beside libkiln. */
    const char* worker;
    /* KILN_HIP_LIBRARY: path of libamdhip64; the one in the process, else by versioned name. */
    const char* hip_library;
    /* KILN_LOG: "debug", "info", "warning", "error" or "off", of the whole process; "warning". */
    const char* log;
    /* Compile workers at most; one for each core of this process. */
    uint32_t workers;
    /* 1: compile inside this process instead of in workers. For where no process can be started: hipRTC and
     * its LLVM, or NVRTC, are then loaded here, compile one at a time, and take this process with them when
     * they crash. 0; no environment variable turns it on. */
    uint32_t compile_in_process;
    /* KILN_CACHE_PATH: read-only folders and bundles that are looked at after the user's own store, ':'
     * between; none. */
    const char* cache_path;
    /* KILN_CACHE_LIMIT ("10GiB"): how large the user's store may grow before what was used least recently
     * goes; see `kiln doctor` for the default. */
    uint64_t cache_limit_bytes;
    /* KILN_CUDA_LIBRARY: path of libcuda; the one in the process, else libcuda.so.1. */
    const char* cuda_library;
    /* KILN_LOG_FORMAT: "text" or "json", of the whole process, as `log`; "text". See kiln_log_set. */
    const char* log_format;
} kiln_config;
#define KILN_CONFIG_INIT                                                                                \
    {                                                                                                   \
        sizeof(kiln_config), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, 0, \
            NULL, NULL                                                                                  \
    }

/* Reads the configuration and the shape tables. Starts no process, binds no driver, compiles nothing.
 * `config` may be NULL: everything from the environment. A malformed value, or a table with a fault in it, is
 * an error that names the place. A cache folder that can not be used is not: the service says so once in the
 * log and keeps what it compiles in memory. */
KILN_API KILN_NODISCARD kiln_status kiln_service_open(const kiln_config* config, kiln_service** service,
                                                      kiln_error** error);
KILN_API kiln_service* kiln_service_retain(kiln_service* service);
/* The last release ends what the service still compiles in the background, unless a plan wants it; as
 * kiln_plan_release says. */
KILN_API void kiln_service_release(kiln_service* service);

/* Reads the shape tables and the templates of KILN_KERNEL_PATH again, while other threads prepare and launch.
 * Everything edited is taken, or nothing: a fault in any file, or a template that can no longer be read, is
 * an error that lists all of them, and the service goes on with what it had. Plans made before keep working
 * as they are; new ones follow the new tables. Only what is new is compiled, when it is prepared. */
KILN_API KILN_NODISCARD kiln_status kiln_service_reload(kiln_service* service, kiln_error** error);

/* Counted since the service was opened. */
typedef struct kiln_statistics {
    size_t struct_size;
    uint64_t cache_hits;     /* specialisations that came from the store */
    uint64_t cache_misses;   /* looked for in the store and not there, damaged entries included */
    uint64_t cache_damaged;  /* entries that did not verify and were set aside */
    uint64_t memory_hits;    /* specialisations that another thread was just building, or memory held */
    uint64_t compiles;       /* specialisations compiled */
    uint64_t compile_errors; /* compiles that failed */
    uint64_t loads;          /* code objects handed to a driver */
    double compile_seconds;  /* inside the compiler, over all workers */
    uint64_t layer_hits;     /* those of cache_hits that a layer of KILN_CACHE_PATH gave */
    uint64_t evictions;      /* entries that went to keep the store within its bound */
    uint64_t declines;       /* answers "not applicable" of supports, prepare and launches */
    uint64_t disabled;       /* failures that took a specialisation out */
    uint64_t reloads;        /* that took the tables */
    /* Those of cache_hits that another compiler than this machine's built: all where it has none, else from
     * bundles. */
    uint64_t other_compiler_hits;
} kiln_statistics;
#define KILN_STATISTICS_INIT \
    { sizeof(kiln_statistics), 0, 0, 0, 0, 0, 0, 0, 0.0, 0, 0, 0, 0, 0, 0 }
/* `statistics->struct_size` must be set, as in every answer that has one; KILN_ERROR_INVALID_ARGUMENT when it
 * leaves room for nothing. */
KILN_API kiln_status kiln_service_statistics(const kiln_service* service, kiln_statistics* statistics);

/* Tells series of several processes apart: {"rank", "3"}. */
typedef struct kiln_label {
    const char* name;  /* letters, digits and _, no digit first, not __ first */
    const char* value; /* UTF-8 */
} kiln_label;

/* The statistics and a few facts of the service in the text format of Prometheus ("text/plain;
 * version=0.0.4"): for the program's own /metrics page, or for a file that a collector of the machine reads.
 * Every name begins with kiln_; a page holds the text of one service, since no family may be there twice.
 * Counters count from when the service was opened. The names, labels and meanings stay; others may come.
 * runtime/service/README.md lists them.
 *
 * `labels`, as many as num_labels says, go to every sample. KILN_ERROR_INVALID_ARGUMENT for a name that no
 * label can have, that is there twice or that kiln gives a meaning of its own, and for a value that is not
 * UTF-8. *text is new, ends in zero, and goes back with kiln_text_free. Nothing is read from disk for it. */
KILN_API KILN_NODISCARD kiln_status kiln_service_metrics(const kiln_service* service,
                                                         const kiln_label* labels, size_t num_labels,
                                                         char** text, kiln_error** error);
KILN_API void kiln_text_free(char* text);

/* ---- log -----------------------------------------------------------------------------------
 *
 * What kiln has to say besides the answers of calls: one line for each first compile, load, decline and
 * disabled kernel, and for what is wrong with the cache. It is the process's, whatever service speaks. Unless
 * the program takes it (kiln_log_set_callback) it goes to stderr, each line whole in one write, in one of two
 * formats:
 *
 *     text   kiln: info: compile kernel=kiln_linear_n5120_k4096_m32 seconds=0.812
 *     json   {"time":"2026-02-03T04:05:06.123456Z","level":"info","logger":"kiln","event":"compile",
 *             "kernel":"kiln_linear_n5120_k4096_m32","seconds":0.812}                       (on one line)
 *
 * An event has a name and fields, in text as logfmt has them; everything else is a sentence, in json with
 * "message" in place of "event". The simulator, a library of its own, has a log of its own: at "warning", as
 * text.
 */
typedef enum kiln_log_level {
    KILN_LOG_DEBUG = 1,
    KILN_LOG_INFO = 2,
    KILN_LOG_WARNING = 3,
    KILN_LOG_ERROR = 4
} kiln_log_level;

/* From now on: lines of `level` ("debug", "info", "warning", "error") and above, or none ("off"), in `format`
 * ("text", "json"); NULL leaves either as it is. Goes before the environment, for services that are opened
 * later too, until one is opened whose kiln_config says something else. KILN_ERROR_INVALID_ARGUMENT for
 * another word: it is named, and nothing is changed. */
KILN_API KILN_NODISCARD kiln_status kiln_log_set(const char* level, const char* format, kiln_error** error);

/* Takes a line of the log: in the format json all of it, in text without "kiln: info: ", neither with a line
 * break at its end. `line` lives as long as the call. Called by whatever thread speaks, by several at once:
 * it must be thread safe, must not throw, and should be quick, since whoever speaks waits for it. What is
 * said by a function of kiln that it calls itself goes to stderr. */
typedef void (*kiln_log_callback)(void* context, int32_t level, const char* line);

/* Lines go to `callback` in place of stderr; with NULL to stderr again. When this returns, no call of the one
 * before is under way and none will come, so that its context may go. Not to be called by a callback:
 * KILN_ERROR_INVALID_ARGUMENT. The child of a fork keeps the callback. */
KILN_API kiln_status kiln_log_set_callback(kiln_log_callback callback, void* context);

/* ---- devices ------------------------------------------------------------------------------- */

typedef struct kiln_device_info {
    size_t struct_size;
    char name[128];  /* "NVIDIA H200", "kiln gfx950 simulator"; cut where it is longer */
    char target[64]; /* "gfx950:sramecc+:xnack-", "sm_90a" */
    int32_t num_compute_units;
    int32_t simulated; /* 1 for a simulated GPU */
    uint64_t memory_bytes;
} kiln_device_info;

/* How many devices there are. A device is named by its ordinal, as the driver numbers them: 0 .. count - 1.
 *
 * The first call that speaks of a device (this one, kiln_device_get_info, *_supports, *_prepare) binds the
 * driver that kiln_config.device asks for: a libamdhip64 or libcuda that the process already holds is used,
 * else one is loaded. Where that fails, the service keeps the failure and returns it to every later call. */
KILN_API KILN_NODISCARD kiln_status kiln_device_count(kiln_service* service, int32_t* count,
                                                      kiln_error** error);
/* `info->struct_size` must be set. KILN_ERROR_NOT_FOUND when there is no such device. */
KILN_API KILN_NODISCARD kiln_status kiln_device_get_info(kiln_service* service, int32_t device,
                                                         kiln_device_info* info, kiln_error** error);

/* In place of an ordinal in *_supports: the target of the configuration, whatever devices there are. */
#define KILN_NO_DEVICE (-1)

/* ---- plans --------------------------------------------------------------------------------- */

/* A problem resolved for one device: everything that a launch of any covered M needs. Cheap to share: retain
 * it. Launchable from any number of threads at once, on any streams of its device, and inside a graph
 * capture.
 *
 * A row of the tables cuts M into buckets, each with a kernel of its own. When those are obtained (from the
 * cache, else by compiling) and loaded is the caller's choice; a bucket that is loaded is launched the same
 * way in every mode. Nothing that kiln does while a stream captures, in whatever mode, breaks that capture.
 */
typedef struct kiln_plan kiln_plan;

typedef enum kiln_prepare_mode {
    /* All buckets, before prepare returns. A failure of one fails the whole. */
    KILN_PREPARE_BLOCKING = 0,
    /* Each by its first launch, which blocks for as long as that takes; not while the launch's stream
     * captures: that launch declines with KILN_DECLINE_CAPTURE. */
    KILN_PREPARE_LAZY = 1,
    /* All, by threads of the service (as many as there are compile workers), while prepare returns at once. A
     * launch of a bucket that is not ready declines with KILN_DECLINE_COMPILING at once. */
    KILN_PREPARE_BACKGROUND = 2
} kiln_prepare_mode;

typedef struct kiln_prepare_options {
    size_t struct_size;
    int32_t mode;     /* kiln_prepare_mode */
    int32_t reserved; /* zero */
} kiln_prepare_options;
#define KILN_PREPARE_OPTIONS_INIT \
    { sizeof(kiln_prepare_options), 0, 0 }

KILN_API kiln_plan* kiln_plan_retain(kiln_plan* plan);
/* The last release unloads its kernels, so it comes after the launches that were enqueued have run, and after
 * every executable graph that captured one is destroyed. It drops what the background has not begun, and ends
 * a compile that only this plan still waits for; it does wait for a load, and for a compile inside this
 * process (compile_in_process). */
KILN_API void kiln_plan_release(kiln_plan* plan);

/* What a launch of this M would find, without lock or wait: KILN_OK when its bucket is loaded (or M = 0);
 * KILN_DECLINE_COMPILING when it is not ready yet (in lazy mode: not begun); KILN_DECLINE_DISABLED when it
 * was disabled; KILN_DECLINE_M_NEGATIVE, KILN_DECLINE_M_TOO_LARGE; else what a failed attempt to obtain it
 * ended with, as kiln_plan_wait says. */
KILN_API kiln_status kiln_plan_ready(const kiln_plan* plan, int64_t m);

/* Has every bucket that is not ready obtained in the background, in lazy mode too, and waits. KILN_OK when
 * all are ready. KILN_DECLINE_COMPILING when that takes longer than timeout_ms milliseconds (negative: no
 * limit); the work goes on. With 0 it only looks, and begins nothing.
 *
 * In lazy and background mode a failure takes out only its bucket. The first such, by ascending M, is
 * returned here once nothing is being built any more, with its message. What speaks of the specialisation
 * itself (a refused compile, a crash of the compiler, a refused load) disables it as in prepare:
 * KILN_DECLINE_DISABLED from then on. Anything else (no compiler, a miss with KILN_JIT=off, an earlier error
 * of the device) may be put right: launches return that status at once, and once it was returned, by a launch
 * in lazy mode or by this function, the next call that waits tries again. */
KILN_API KILN_NODISCARD kiln_status kiln_plan_wait(const kiln_plan* plan, int64_t timeout_ms,
                                                   kiln_error** error);

/* Workspace: memory of the device, aligned to 256 bytes, that launches of some operators need besides their
 * arrays; those have a member `workspace` among their arguments. It is the caller's: kiln allocates nothing.
 * A plan's launches on one stream may share it, one after the other, whatever their M, and so may the replays
 * of graphs; launches that may run at the same time, of two streams say, need one each. So do two plans: what
 * one of them keeps there is not what the other left.
 *
 * Returns how many bytes a launch of up to max_m tokens needs (max_m above what the plan covers: of every M
 * that it does cover); 0 where none is needed, and NULL will do. More tokens need no less. */
KILN_API int64_t kiln_plan_workspace_bytes(const kiln_plan* plan, int64_t max_m);

/* Readies a new workspace of so many bytes, as kiln_plan_workspace_bytes said: once, before the first launch
 * that uses it. Zeroes counters in front of it, which every launch leaves at zero again, and waits for that;
 * the rest may hold anything. To be repeated only after a launch that failed or a kernel that was aborted. On
 * a stream that captures it declines with KILN_DECLINE_CAPTURE. 0 bytes need nothing and succeed. */
KILN_API KILN_NODISCARD kiln_status kiln_plan_init_workspace(const kiln_plan* plan, void* stream,
                                                             void* workspace, int64_t bytes,
                                                             kiln_error** error);

KILN_API int32_t kiln_plan_device(const kiln_plan* plan);
/* The largest M that the plan covers. */
KILN_API int64_t kiln_plan_max_m(const kiln_plan* plan);
/* The symbol that a launch of this M runs, as a profiler shows it ("kiln_linear_n5120_k4096_m32"), or what
 * the symbols of several kernels begin with; NULL when none does. Lives as long as the plan. */
KILN_API const char* kiln_plan_kernel_name(const kiln_plan* plan, int64_t m);

/* ---- what problems are made of -------------------------------------------------------------- */

/* Element types. 0 in a problem means the type that the operator takes. The values never change. */
typedef enum kiln_dtype {
    KILN_DTYPE_DEFAULT = 0,
    KILN_DTYPE_BF16 = 1,
    KILN_DTYPE_FP16 = 2,
    KILN_DTYPE_FP32 = 3,
    KILN_DTYPE_E4M3FN = 4,   /* OCP fp8, maximum 448 */
    KILN_DTYPE_E4M3FNUZ = 5, /* gfx942's fp8, maximum 240: not the same bytes */
    KILN_DTYPE_E5M2 = 6,
    KILN_DTYPE_E2M1 = 7, /* fp4 */
    KILN_DTYPE_E8M0 = 8  /* a power of two */
} kiln_dtype;

typedef enum kiln_weight_layout {
    KILN_WEIGHT_LAYOUT_DEFAULT = 0,
    KILN_WEIGHT_LAYOUT_PRESHUFFLED = 1, /* (16, 16), as linear.h has it */
    KILN_WEIGHT_LAYOUT_ROW_MAJOR = 2
} kiln_weight_layout;

typedef enum kiln_scale_granularity {
    KILN_SCALE_DEFAULT = 0,
    KILN_SCALE_BLOCK_128X128 = 1,
    KILN_SCALE_PER_TENSOR = 2,
    KILN_SCALE_PER_ROW = 3, /* one per n */
    KILN_SCALE_GROUP_32 = 4 /* one per n and 32 k */
} kiln_scale_granularity;

#ifdef __cplusplus
}
#endif

/* The operators, each with its problem, the arrays of a launch, and its functions: kiln_OPERATOR_supports,
 * kiln_OPERATOR_prepare and kiln_OPERATOR_launch. */
/* Beside this header, however that was found. */
#include "fused_moe.h"
#include "linear.h"
#include "moe_sort.h"
#include "router.h"

#endif /* KILN_KILN_H_ */
