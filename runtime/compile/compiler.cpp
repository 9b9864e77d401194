#include "runtime/compile/compiler.hpp"

#include <algorithm>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "base/cores.hpp"
#include "runtime/compile/code_object.hpp"
#include "runtime/compile/exchange.hpp"
#include "runtime/compile/identity.hpp"
#include "runtime/compile/in_process.hpp"
#include "runtime/compile/listing.hpp"
#include "runtime/compile/request_check.hpp"
#include "runtime/compile/toolchain.hpp"

namespace kiln::compile {
namespace {

CompileRequest one_line_kernel(const std::string& target) {
    return {.name = "probe.hip",
            .source = "extern \"C\" __global__ void kiln_probe(int* out) { *out = 1; }\n",
            .headers = {},
            .target = target,
            .options = {"-O3", "-std=c++20"}};
}

class CheckingCompiler final : public Compiler {
  public:
    CheckingCompiler(Toolchain toolchain, std::unique_ptr<Exchange> exchange)
        : toolchain_(std::move(toolchain)), exchange_(std::move(exchange)) {}

    Result<CompilerIdentity> identity() override {
        auto components = identify(toolchain_);
        if (!components) {
            return fail(components);
        }
        return CompilerIdentity{.document = identity_document(*components)};
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
                        fmt::format("the compiler {} can not build for {}: {}", toolchain_.hiprtc.string(),
                                    target, result.error().message));
        }
        return {};
    }

    Result<std::string> disassemble(ByteView code_object) override {
        auto object = read_code_object(code_object);
        if (!object) {
            return fail(object);
        }
        const std::string subject = "disassembly for " + object->target;
        auto reply = ask([&](const std::string& generation) {
            return exchange_->disassemble(code_object, subject, generation);
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

    void stop() noexcept override { exchange_->stop(); }

    std::vector<Finding> findings() const override {
        std::vector<Finding> list = exchange_->findings();
        list.push_back({"toolchain", fmt::format("{} ({})", toolchain_.folder.string(), toolchain_.origin)});
        const auto components = identify(toolchain_);
        if (!components) {
            list.push_back({"identity", components.error().message});
            return list;
        }
        for (const auto& component : *components) {
            const bool has_id = !component.build_id.empty();
            list.push_back({component.name,
                            fmt::format("{} ({} {})", component.path.string(), has_id ? "build id" : "sha256",
                                        has_id ? component.build_id : component.sha256)});
        }
        return list;
    }

  private:
    static tl::unexpected<Error> nonsense(std::string_view subject, std::string_view what) {
        return fail(ErrorCode::worker_failed, Stage::compile,
                    fmt::format("{}: the compiler's answer does not hold: {}", subject, what));
    }
    static tl::unexpected<Error> answered_otherwise(std::string_view subject) {
        return nonsense(subject, "it is the answer to another kind of request");
    }

    // A reply that is no failure.
    Result<Reply> ask(const std::function<Result<Reply>(const std::string&)>& exchange) {
        // What still holds a library which has been replaced since must not build under the new one's name.
        auto current = identity();
        if (!current) {
            return fail(current);
        }
        auto reply = exchange(current->document);
        if (reply && reply->kind == ReplyKind::failed) {
            return tl::unexpected<Error>(std::move(reply->error));
        }
        return reply;
    }

    Result<CompileResult> compile_once(const CompileRequest& request) {
        if (auto checked = check_request(request); !checked) {
            return fail(checked);
        }
        auto reply =
            ask([&](const std::string& generation) { return exchange_->compile(request, generation); });
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
        auto listing = make_listing(*object, reply->code_lines);
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

    const Toolchain toolchain_;
    const std::unique_ptr<Exchange> exchange_;
    std::mutex mutex_;
    std::set<std::string> able_;  // targets that this compiler has built for; protected by mutex_
};

}  // namespace

Result<std::unique_ptr<Compiler>> Compiler::create(const CompilerConfig& config) {
    auto worker = config.in_process ? Result<std::filesystem::path>() : find_worker(config);
    if (!worker) {
        return fail(worker);
    }
    auto toolchain = find_toolchain(config);
    if (!toolchain) {
        return fail(toolchain);
    }
    auto exchange =
        config.in_process
            ? make_in_process_exchange(*toolchain)
            : make_worker_exchange({.worker = {.toolchain = *toolchain,
                                               .worker = std::move(*worker),
                                               .start_limit = config.start_limit,
                                               .time_limit = config.time_limit,
                                               .memory_limit = config.memory_limit},
                                    .workers = config.workers != 0 ? config.workers : cores_of_this_process(),
                                    .idle_limit = config.idle_limit});
    return std::make_unique<CheckingCompiler>(std::move(*toolchain), std::move(exchange));
}

}  // namespace kiln::compile
