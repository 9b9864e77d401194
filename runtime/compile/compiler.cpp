#include "runtime/compile/compiler.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "base/cores.hpp"
#include "base/fork_guard.hpp"
#include "runtime/compile/code_object.hpp"
#include "runtime/compile/cuda_disassembly.hpp"
#include "runtime/compile/exchange.hpp"
#include "runtime/compile/identity.hpp"
#include "runtime/compile/in_process.hpp"
#include "runtime/compile/listing.hpp"
#include "runtime/compile/request_check.hpp"
#include "runtime/compile/toolchain.hpp"

namespace kiln::compile {
namespace {

CompileRequest one_line_kernel(const std::string& target) {
    const bool cuda = family_of(target) == Family::cuda;
    CompileRequest request;
    request.name = cuda ? "probe.cu" : "probe.hip";
    request.source = "extern \"C\" __global__ void kiln_probe(int* out) { *out = 1; }\n";
    request.target = target;
    request.options = {"-std=c++20"};
    if (!cuda) {
        request.options.insert(request.options.begin(), "-O3");
    }
    return request;
}

// One toolchain, and where its requests are answered.
struct Side {
    Toolchain toolchain;
    std::unique_ptr<Exchange> exchange;
};

std::unique_ptr<Exchange> make_exchange(const CompilerConfig& config, const Toolchain& toolchain) {
    if (config.in_process) {
        return make_in_process_exchange(toolchain);
    }
    return make_worker_exchange({.worker = {.toolchain = toolchain,
                                            .worker = config.worker,
                                            .start_limit = config.start_limit,
                                            .time_limit = config.time_limit,
                                            .memory_limit = config.memory_limit},
                                 .workers = config.workers != 0 ? config.workers : cores_of_this_process(),
                                 .idle_limit = config.idle_limit});
}

class CheckingCompiler final : public Compiler {
  public:
    // The configuration names the worker.
    explicit CheckingCompiler(CompilerConfig config)
        : config_(std::move(config)), fork_generation_((watch_forks(), fork_generation())) {}

    // That of the family, looked for where it is not known yet.
    Result<Side*> side(Family family) {
        std::atomic<Side*>& known = sides_[static_cast<std::size_t>(family)];
        if (Side* const found = known.load(std::memory_order_acquire)) {
            return found;
        }
        if (fork_generation() != fork_generation_) {  // before any lock: it may have been held at the fork
            return forked();
        }
        const std::lock_guard lock(mutex_);
        if (Side* const found = known.load(std::memory_order_relaxed)) {
            return found;
        }
        auto toolchain = find_toolchain(config_, family);
        if (!toolchain) {
            return fail(toolchain);
        }
        auto exchange = make_exchange(config_, *toolchain);
        if (stopped_) {
            exchange->stop();
        }
        owned_.push_back(std::make_unique<Side>(Side{*std::move(toolchain), std::move(exchange)}));
        known.store(owned_.back().get(), std::memory_order_release);
        return owned_.back().get();
    }

    Result<CompilerIdentity> identity(std::string_view target) override {
        auto found = side(family_of(target));
        if (!found) {
            return fail(found);
        }
        return identity_of(**found);
    }

    Result<CompileResult> compile(const CompileRequest& request) override {
        auto result = compile_once(request);
        if (!result && result.error().code == ErrorCode::compile_failed) {
            // The template's fault, unless the compiler can not do anything for this target.
            auto able = probe(request.target);
            if (!able && able.error().code == ErrorCode::compile_failed) {
                able.error().code = ErrorCode::environment;
                return fail(able);
            }
        }
        return result;
    }

    Result<void> probe(const std::string& target) override {
        auto found = side(family_of(target));
        if (!found) {
            return fail(found);
        }
        if (fork_generation() != fork_generation_) {
            return forked();
        }
        {
            const std::lock_guard lock(mutex_);
            if (able_.contains(target)) {
                return {};
            }
        }
        auto result = compile_once(one_line_kernel(target));
        if (!result) {
            if (result.error().code != ErrorCode::compile_failed) {
                return fail(result);
            }
            return fail(ErrorCode::compile_failed, Stage::compile,
                        fmt::format("the compiler {} can not build for {}: {}",
                                    (*found)->toolchain.rtc.string(), target, result.error().message));
        }
        return {};
    }

    Result<std::string> disassemble(ByteView code_object) override {
        auto object = read_code_object(code_object);
        if (!object) {
            return fail(object);
        }
        if (family_of(object->target) == Family::cuda) {
            return disassemble_cubin(code_object, config_);
        }
        auto found = side(Family::amdgpu);
        if (!found) {
            return fail(found);
        }
        const std::string subject = "disassembly for " + object->target;
        auto reply = ask(**found, [&](Exchange& exchange, const std::string& generation) {
            return exchange.disassemble(code_object, subject, generation);
        });
        if (!reply) {
            return fail(reply);
        }
        if (reply->kind != ReplyKind::disassembled) {
            return answered_otherwise("disassembly");
        }
        auto listing = make_listing(*object, reply->code_lines);
        if (!listing) {
            return nonsense("disassembly", listing.error().message);
        }
        return listing;
    }

    void stop() noexcept override {
        if (fork_generation() != fork_generation_) {
            return;
        }
        const std::lock_guard lock(mutex_);
        stopped_ = true;
        for (const auto& side : owned_) {
            side->exchange->stop();
        }
    }

    std::vector<Finding> findings() const override {
        std::vector<Finding> list;
        for (const auto& known : sides_) {
            if (const Side* const side = known.load(std::memory_order_acquire)) {
                add_findings(*side, list);
            }
        }
        return list;
    }

  private:
    static tl::unexpected<Error> forked() {
        return fail(ErrorCode::environment, Stage::compile,
                    "this process was forked from the one that created the compiler; it must create its own");
    }
    static tl::unexpected<Error> nonsense(std::string_view subject, std::string_view what) {
        return fail(ErrorCode::worker_failed, Stage::compile,
                    fmt::format("{}: the compiler's answer does not hold: {}", subject, what));
    }
    static tl::unexpected<Error> answered_otherwise(std::string_view subject) {
        return nonsense(subject, "it is the answer to another kind of request");
    }

    static Result<CompilerIdentity> identity_of(const Side& side) {
        auto components = identify(side.toolchain);
        if (!components) {
            return fail(components);
        }
        return CompilerIdentity{.document = identity_document(*components)};
    }

    static void add_findings(const Side& side, std::vector<Finding>& list) {
        for (auto& finding : side.exchange->findings()) {
            const bool known = std::any_of(list.begin(), list.end(), [&](const Finding& other) {
                return other.what == finding.what && other.where == finding.where;
            });
            if (!known) {
                list.push_back(std::move(finding));
            }
        }
        const Toolchain& toolchain = side.toolchain;
        const std::string_view name = toolchain_name(toolchain.family);
        list.push_back({fmt::format("{} toolchain", name),
                        fmt::format("{} ({})", toolchain.folder.string(), toolchain.origin)});
        const auto components = identify(toolchain);
        if (!components) {
            list.push_back({fmt::format("{} identity", name), components.error().message});
            return;
        }
        for (const auto& component : *components) {
            const bool has_id = !component.build_id.empty();
            list.push_back({component.name,
                            fmt::format("{} ({} {})", component.path.string(), has_id ? "build id" : "sha256",
                                        has_id ? component.build_id : component.sha256)});
        }
    }

    // A reply that is no failure.
    static Result<Reply> ask(Side& side,
                             const std::function<Result<Reply>(Exchange&, const std::string&)>& exchange) {
        // What still holds a library which has been replaced since must not build under the new one's name.
        auto current = identity_of(side);
        if (!current) {
            return fail(current);
        }
        auto reply = exchange(*side.exchange, current->document);
        if (reply && reply->kind == ReplyKind::failed) {
            return tl::unexpected<Error>(std::move(reply->error));
        }
        return reply;
    }

    Result<CompileResult> compile_once(const CompileRequest& request) {
        if (auto checked = check_request(request); !checked) {
            return fail(checked);
        }
        auto found = side(family_of(request.target));
        if (!found) {
            return fail(found);
        }
        auto reply = ask(**found, [&](Exchange& exchange, const std::string& generation) {
            return exchange.compile(request, generation);
        });
        if (!reply) {
            return fail(reply);
        }
        if (reply->kind != ReplyKind::compiled) {
            return answered_otherwise(request.name);
        }
        const ByteView bytes = as_bytes(reply->code_object);
        auto object = read_code_object(bytes);
        if (!object) {
            return nonsense(request.name, object.error().message);
        }
        if (object->target != request.target) {
            return nonsense(request.name, fmt::format("asked for target {}, got one for {}", request.target,
                                                      object->target));
        }
        Result<std::string> listing;
        if (family_of(object->target) == Family::amdgpu) {
            listing = make_listing(*object, reply->code_lines);
        }
        if (!listing) {
            return nonsense(request.name, listing.error().message);
        }
        {
            const std::lock_guard lock(mutex_);
            able_.insert(request.target);
        }
        return CompileResult{.code_object = Bytes(bytes.begin(), bytes.end()),
                             .listing = std::move(*listing),
                             .log = std::move(reply->log),
                             .seconds = static_cast<double>(reply->nanoseconds) * 1e-9,
                             .loaded = std::move(reply->loaded)};
    }

    const CompilerConfig config_;
    const std::uint32_t fork_generation_;
    // By family; null until its toolchain was found. Set once, with mutex_ held.
    std::array<std::atomic<Side*>, 2> sides_{};
    std::mutex mutex_;
    // Protected by mutex_.
    std::vector<std::unique_ptr<Side>> owned_;
    std::set<std::string> able_;  // targets that this compiler has built for
    bool stopped_ = false;
};

}  // namespace

Result<std::unique_ptr<Compiler>> Compiler::create(const CompilerConfig& config) {
    CompilerConfig complete = config;
    if (!config.in_process) {
        auto worker = find_worker(config);
        if (!worker) {
            return fail(worker);
        }
        complete.worker = *std::move(worker);
    }
    auto compiler = std::make_unique<CheckingCompiler>(std::move(complete));
    const auto rocm = compiler->side(Family::amdgpu);
    const auto cuda = compiler->side(Family::cuda);
    if (!rocm && !cuda) {
        return fail(ErrorCode::environment, Stage::compile,
                    fmt::format("{}; {}", rocm.error().message, cuda.error().message));
    }
    return compiler;
}

}  // namespace kiln::compile
