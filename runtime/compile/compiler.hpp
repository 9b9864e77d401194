// Turns a specialisation into a code object, in worker processes (kiln-compile) around hipRTC for gfx targets
// and around NVRTC for sm_ targets.
//
// hipRTC takes one process-wide lock, so parallel compiles need parallel processes; and a compiler that
// crashes, hangs or eats the memory must not do it inside an engine. Nothing here knows of the cache or of
// shape tables.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace kiln::compile {

// One file that a template includes by `name`, handed over in memory: templates never touch the include path.
struct Header {
    std::string name;
    std::string text;
};

struct CompileRequest {
    std::string name;    // what diagnostics call the source: "linear/small_m.gfx950.hip"
    std::string source;  // the template's text
    std::vector<Header> headers;
    std::string target;  // "gfx950", "gfx950:xnack-", "sm_90a"
    // Every option that matters but --offload-arch or --gpu-architecture, which follows from target.
    // backend/rtc.hpp lists what the compilers add by themselves.
    std::vector<std::string> options;
};

struct CompileResult {
    Bytes code_object;                // an ELF file
    std::string listing;              // the disassembly, in the format of listing.hpp; empty of a cubin
    std::string log;                  // warnings, with the template's own file names
    double seconds = 0;               // inside the compiler
    std::vector<std::string> loaded;  // paths of every library in the worker that compiled it
};

// What decides the code that comes out; see identity.hpp. The document goes into the build part of a cache
// key.
struct CompilerIdentity {
    std::string document;  // canonical JSON: {"components":[{"build_id" or "sha256", "name"}...]}
};

// Where the compiler and its worker are, and what they may take. Empty members are searched for, as
// toolchain.hpp says.
struct CompilerConfig {
    std::filesystem::path worker;
    std::filesystem::path toolchain_prefix;  // ROCm's
    std::filesystem::path cuda_prefix{};
    // How many at most run at once, of each toolchain; 0 means one per core that this process may use.
    unsigned workers = 0;
    std::chrono::milliseconds time_limit{120'000};   // of one request
    std::chrono::milliseconds start_limit{120'000};  // of the start of a worker
    // After which a worker that nobody needed is ended: one takes about 80 MB. 0: none is kept.
    std::chrono::milliseconds idle_limit{60'000};
    // Address space that a worker may take, in bytes; 0 for no limit. Compiling all shipped shapes takes 0.3
    // GiB, LLVM's libraries among them.
    std::uint64_t memory_limit = std::uint64_t{4} << 30;
    // Compiles inside this process, one request at a time, without a worker and without its protection: no
    // limit of time or memory, and a compiler that crashes takes the process along. Never chosen by itself.
    bool in_process = false;
};

// Thread safe. Workers start at the first request, never before, and end with the object.
class Compiler {
  public:
    // Finds the worker (none in-process) and the toolchains without starting or loading any. Fails with
    // `environment`, and says what was looked for and where, when the worker or both toolchains are missing:
    // a service without a compiler still serves what its cache holds. One toolchain that is missing is looked
    // for again when a target asks for it; then that request fails likewise.
    [[nodiscard]] static Result<std::unique_ptr<Compiler>> create(const CompilerConfig& config);
    virtual ~Compiler() = default;

    // Of what builds for `target`. Read from the files without loading them, memoised: no process is started.
    [[nodiscard]] virtual Result<CompilerIdentity> identity(std::string_view target) = 0;

    // Blocks until a worker is free and has answered. Errors: compile_failed with the compiler's log, which
    // names the template's file and line; worker_failed when the worker crashed, hung past the limit, ran out
    // of memory or answered nonsense (it is replaced, the next request is served); environment when the
    // compiler can not build for that target at all, or no worker can run; invalid_argument for a request
    // that can not be meant. A process that was forked from the one that created the object gets environment:
    // it must create its own.
    [[nodiscard]] virtual Result<CompileResult> compile(const CompileRequest& request) = 0;

    // Builds a kernel of one line for `target`. compile_failed, naming the compiler, when it refuses that: it
    // can not build for the target at all. Any other error says that the question could not be asked.
    [[nodiscard]] virtual Result<void> probe(const std::string& target) = 0;

    // The listing of any code object, compiled by kiln or not: what the simulator executes. Of a cubin, what
    // a CUDA toolkit's own disassembler prints (cuda_disassembly.hpp).
    [[nodiscard]] virtual Result<std::string> disassemble(ByteView code_object) = 0;

    // Ends every request in flight, and refuses later ones: worker_failed, "stopped". In-process, a compile
    // that runs is finished first. Any thread, more than once.
    virtual void stop() noexcept {}

    // For doctor: a line each of what was found and where ("worker", "toolchain", "libhiprtc", ...).
    struct Finding {
        std::string what;
        std::string where;
    };
    [[nodiscard]] virtual std::vector<Finding> findings() const = 0;
};

}  // namespace kiln::compile
