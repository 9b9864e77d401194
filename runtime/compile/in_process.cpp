#include "runtime/compile/in_process.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/fork_guard.hpp"
#include "base/signals_blocked.hpp"
#include "runtime/compile/backend/backend.hpp"
#include "runtime/compile/backend/library.hpp"
#include "runtime/compile/identity.hpp"

namespace kiln::compile {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kStackBytes = std::size_t{16}
                                    << 20;  // a parser recurses; an engine's thread may have less

// No clang.cfg of the machine's, which a worker's environment says.
const std::vector<std::string> kNoConfiguration{"--no-default-config", "-Wno-unused-command-line-argument"};

auto refuse(std::string message) {
    return fail(ErrorCode::environment, Stage::compile, "compile inside this process: " + std::move(message));
}

// Variables that change what a compiler makes of a request: the key would not know.
struct SteeringVariables {
    std::vector<std::string_view> prefixes;
    std::vector<std::string_view> names;
};

// Of hipRTC, comgr and the clang in it; of NVRTC, as it was seen to ask for them.
const SteeringVariables& steering_variables(Family family) {
    static const SteeringVariables amdgpu{
        .prefixes = {"HIPRTC_", "AMD_COMGR_"},
        .names = {"CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "CCC_OVERRIDE_OPTIONS", "COMPILER_PATH",
                  "GCC_EXEC_PREFIX", "HIP_DEVICE_LIB_PATH", "LLVM_PATH", "SOURCE_DATE_EPOCH"}};
    static const SteeringVariables cuda{
        .prefixes = {"NVRTC_", "NVVM_", "NV_NVVM_", "LIBNVVM_", "EDG_"},
        .names = {"NVRTCWIZ", "CAN_FINALIZE_DEBUG", "LLVM_OVERRIDE_PRODUCER", "SOURCE_DATE_EPOCH"}};
    return family == Family::cuda ? cuda : amdgpu;
}

Result<void> check_environment(Family family) {
    const auto& [prefixes, names] = steering_variables(family);
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view name = std::string_view(*entry).substr(0, std::strcspn(*entry, "="));
        const auto begins = [&, &name = name](std::string_view prefix) { return name.starts_with(prefix); };
        const bool steers = std::any_of(prefixes.begin(), prefixes.end(), begins) ||
                            std::find(names.begin(), names.end(), name) != names.end();
        if (steers && !name.starts_with("AMD_COMGR_CACHE")) {
            return refuse(fmt::format("expected no variable that steers the compiler, found {}", name));
        }
    }
    return {};
}

// None of the compiler's libraries may be in this process from another place: the compiler finds its
// companion by name, and would be given that one.
Result<void> check_loaded(const std::vector<Component>& components) {
    for (const fs::path loaded : backend::loaded_libraries()) {
        for (const Component& component : components) {
            std::error_code error;
            if (loaded.filename() == component.path.filename() &&
                !fs::equivalent(loaded, component.path, error)) {
                return refuse(fmt::format("expected {}, found {} loaded already", component.path.string(),
                                          loaded.string()));
            }
        }
    }
    return {};
}

struct Task {
    std::function<Result<Reply>()> run;
    Result<Reply> reply;
};

// On a thread of its own, for its stack.
Result<Reply> on_large_stack(std::function<Result<Reply>()> run) {
    Task task{.run = std::move(run), .reply = {}};
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstacksize(&attributes, kStackBytes);
    pthread_t thread{};
    const auto body = [](void* argument) -> void* {
        Task& its = *static_cast<Task*>(argument);
        try {
            its.reply = its.run();
        } catch (const std::exception& exception) {
            its.reply = fail(ErrorCode::internal, Stage::compile, exception.what());
        }
        return nullptr;
    };
    int error = 0;
    {
        const SignalsBlocked blocked;
        error = ::pthread_create(&thread, &attributes, body, &task);
    }
    ::pthread_attr_destroy(&attributes);
    if (error != 0) {
        return refuse(fmt::format("start a thread: {}", std::strerror(error)));
    }
    ::pthread_join(thread, nullptr);
    return std::move(task.reply);
}

// The one compiler of its family in this process. Never destroyed: its libraries can not be unloaded.
class LoadedCompiler {
  public:
    static LoadedCompiler& get(Family family) {
        static LoadedCompiler& amdgpu = *new LoadedCompiler;
        static LoadedCompiler& cuda = *new LoadedCompiler;
        return family == Family::cuda ? cuda : amdgpu;
    }

    Result<Reply> answer(const Toolchain& toolchain, const std::string& generation,
                         const std::atomic<bool>& stopped,
                         const std::function<Result<Reply>(backend::Backend&)>& request) {
        if (fork_generation() != fork_generation_) {
            return refuse(
                "the process that this one was forked from has loaded the compiler, which does not "
                "survive that");
        }
        const std::lock_guard lock(mutex_);
        if (stopped) {
            return fail(ErrorCode::worker_failed, Stage::compile, "compile inside this process: stopped");
        }
        if (auto checked = check_environment(toolchain.family); !checked) {
            return fail(checked);
        }
        return on_large_stack([&]() -> Result<Reply> {
            if (auto loaded = load(toolchain, generation); !loaded) {
                return fail(loaded);
            }
            auto reply = request(*backend_);
            if (!reply) {
                Reply failed;
                failed.error = std::move(reply.error());
                return failed;
            }
            return reply;
        });
    }

  private:
    // Invariant: once generation_ is set, what is loaded is what that names.
    Result<void> load(const Toolchain& toolchain, const std::string& generation) {
        if (!generation_.empty()) {
            return generation_ == generation && rtc_ == toolchain.rtc
                       ? Result<void>()
                       : refuse(fmt::format("{} is not, or no longer, the compiler that this process has "
                                            "loaded ({}); it takes a new process",
                                            toolchain.rtc.string(), rtc_.string()));
        }
        const auto components = identify(toolchain);
        if (!components) {
            return tl::unexpected<Error>(components.error());
        }
        if (auto checked = check_loaded(*components); !checked) {
            return checked;
        }
        std::error_code error;
        const bool has_clang = toolchain.family == Family::amdgpu;
        backend_.emplace(backend::BackendConfig{
            .family = toolchain.family,
            .rtc = toolchain.rtc,
            .companion = toolchain.companion,
            .temporary_folder = fs::temp_directory_path(error),
            .more_options = has_clang ? kNoConfiguration : std::vector<std::string>()});
        if (auto loaded = backend_->load_compiler(); !loaded) {
            return refuse(fmt::format(
                "this process can not load the compiler (a worker can, it has a loader of its own): {}",
                loaded.error().message));
        }
        rtc_ = toolchain.rtc;
        if (auto checked = check_loaded(*components); !checked) {
            return checked;
        }
        generation_ = generation;
        return {};
    }

    const std::uint32_t fork_generation_ = fork_generation();  // of the process that used it first
    std::mutex mutex_;
    // Protected by mutex_.
    std::optional<backend::Backend> backend_;
    fs::path rtc_;
    std::string generation_;
};

class InProcessExchange final : public Exchange {
  public:
    explicit InProcessExchange(Toolchain toolchain)
        : toolchain_(std::move(toolchain)), fork_generation_((watch_forks(), fork_generation())) {}

    Result<Reply> compile(const CompileRequest& request, const std::string& generation) override {
        return answer(generation, [&](backend::Backend& backend) { return backend.compile(request); });
    }

    Result<Reply> disassemble(ByteView code_object, const std::string&,
                              const std::string& generation) override {
        return answer(generation,
                      [&](backend::Backend& backend) { return backend.disassemble(code_object); });
    }

    void stop() noexcept override { stopped_ = true; }

    std::vector<Compiler::Finding> findings() const override {
        return {{"worker", "none: compiles inside this process, as it was asked to"}};
    }

  private:
    Result<Reply> answer(const std::string& generation,
                         const std::function<Result<Reply>(backend::Backend&)>& request) {
        if (fork_generation() != fork_generation_) {
            return fail(
                ErrorCode::environment, Stage::compile,
                "this process was forked from the one that created the compiler; it must create its own");
        }
        return LoadedCompiler::get(toolchain_.family).answer(toolchain_, generation, stopped_, request);
    }

    const Toolchain toolchain_;
    const std::uint32_t fork_generation_;
    std::atomic<bool> stopped_{false};
};

}  // namespace

std::unique_ptr<Exchange> make_in_process_exchange(const Toolchain& toolchain) {
    return std::make_unique<InProcessExchange>(toolchain);
}

}  // namespace kiln::compile
