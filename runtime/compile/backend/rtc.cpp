#include "runtime/compile/backend/rtc.hpp"

#include <chrono>
#include <vector>

#include <fmt/format.h>

namespace kiln::compile::backend {
namespace {

constexpr const char* kOutOfMemoryInLog =
    "catastrophic error: out of memory";  // NVRTC's, with another result

template <class F>
class AtExit {
  public:
    explicit AtExit(F action) : action_(std::move(action)) {}
    AtExit(const AtExit&) = delete;
    AtExit& operator=(const AtExit&) = delete;
    ~AtExit() { action_(); }

  private:
    F action_;
};

}  // namespace

Result<Rtc> Rtc::open(Family family, const std::filesystem::path& path) {
    auto library = Library::open(path);
    if (!library) {
        return fail(library);
    }
    Rtc rtc(family, *library);
    Result<void> found;
    const auto find = [&](const char* name, auto*& function) {
        if (found) {
            found = rtc.library_.find((std::string(rtc.names_.prefix) + name).c_str(), function);
        }
    };
    find("CreateProgram", rtc.api_.CreateProgram);
    find("CompileProgram", rtc.api_.CompileProgram);
    find("DestroyProgram", rtc.api_.DestroyProgram);
    find("GetProgramLogSize", rtc.api_.GetProgramLogSize);
    find("GetProgramLog", rtc.api_.GetProgramLog);
    find(rtc.names_.code_size, rtc.api_.GetCodeSize);
    find(rtc.names_.code, rtc.api_.GetCode);
    find("GetErrorString", rtc.api_.GetErrorString);
    if (!found) {
        return fail(found);
    }
    return rtc;
}

std::string Rtc::log_of(RtcApi::Program program) const {
    std::size_t bytes = 0;
    if (api_.GetProgramLogSize(program, &bytes) != RtcApi::kSuccess || bytes == 0) {
        return {};
    }
    std::string log(bytes, '\0');
    if (api_.GetProgramLog(program, log.data()) != RtcApi::kSuccess) {
        return {};
    }
    log.resize(log.find_last_not_of('\0') + 1);  // the size may or may not count the final zero
    return log;
}

Result<Rtc::Compiled> Rtc::compile(const CompileRequest& request,
                                   const std::vector<std::string>& more_options) {
    if (names_.no_cache_option == nullptr) {
        return compile_with(request, more_options);
    }
    std::vector<std::string> options = more_options;
    options.emplace_back(names_.no_cache_option);
    auto compiled = compile_with(request, options);
    const bool refused = !compiled && compiled.error().code == ErrorCode::compile_failed &&
                         compiled.error().message.find(
                             fmt::format("unrecognized option {}", options.back())) != std::string::npos;
    if (refused) {  // an older one, which has no cache
        names_.no_cache_option = nullptr;
        return compile_with(request, more_options);
    }
    return compiled;
}

Result<Rtc::Compiled> Rtc::compile_with(const CompileRequest& request,
                                        const std::vector<std::string>& more_options) const {
    const auto refuse = [&](const char* step, int result) {
        return fail(ErrorCode::environment, Stage::compile,
                    fmt::format("{}: {}{} failed: {} ({})", request.name, names_.prefix, step,
                                api_.GetErrorString(result), result));
    };
    std::vector<const char*> texts;
    std::vector<const char*> names;
    for (const auto& header : request.headers) {
        texts.push_back(header.text.c_str());
        names.push_back(header.name.c_str());
    }
    const std::string architecture = names_.architecture_option + request.target;
    std::vector<const char*> options{architecture.c_str()};
    for (const auto* const list : {&request.options, &more_options}) {
        for (const auto& option : *list) {
            options.push_back(option.c_str());
        }
    }

    const auto start = std::chrono::steady_clock::now();
    RtcApi::Program program = nullptr;
    int result = api_.CreateProgram(&program, request.source.c_str(), request.name.c_str(),
                                    static_cast<int>(texts.size()), texts.data(), names.data());
    if (result != RtcApi::kSuccess) {
        return refuse("CreateProgram", result);
    }
    const AtExit destroy([&] { api_.DestroyProgram(&program); });
    result = api_.CompileProgram(program, static_cast<int>(options.size()), options.data());
    std::string log = log_of(program);
    // NVRTC is told that there is no memory left and lives on: the template is not to blame.
    if (result == RtcApi::kOutOfMemory || log.find(kOutOfMemoryInLog) != std::string::npos) {
        return fail(ErrorCode::worker_failed, Stage::compile,
                    fmt::format("{}: {} ran out of memory: {}", request.name, names_.prefix, log));
    }
    if (result == RtcApi::kCompilationError || result == RtcApi::kInvalidOption) {
        return fail(ErrorCode::compile_failed, Stage::compile,
                    log.empty() ? api_.GetErrorString(result) : std::move(log));
    }
    if (result != RtcApi::kSuccess) {
        return refuse("CompileProgram", result);
    }
    std::size_t bytes = 0;
    if (result = api_.GetCodeSize(program, &bytes); result != RtcApi::kSuccess) {
        return refuse(names_.code_size, result);
    }
    std::string code_object(bytes, '\0');
    if (result = api_.GetCode(program, code_object.data()); result != RtcApi::kSuccess) {
        return refuse(names_.code, result);
    }
    const auto elapsed = std::chrono::steady_clock::now() - start;
    return Compiled{.code_object = std::move(code_object),
                    .log = std::move(log),
                    .nanoseconds = static_cast<std::uint64_t>(
                        std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count())};
}

}  // namespace kiln::compile::backend
