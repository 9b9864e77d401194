#include "runtime/compile/backend/hiprtc.hpp"

#include <chrono>
#include <vector>

#include <fmt/format.h>

namespace kiln::compile::backend {
namespace {

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

Result<Hiprtc> Hiprtc::open(const std::filesystem::path& path) {
    auto library = Library::open(path);
    if (!library) {
        return fail(library);
    }
    Hiprtc hiprtc(*library);
    Result<void> found;
    const auto find = [&](const char* name, auto*& function) {
        if (found) {
            found = hiprtc.library_.find(name, function);
        }
    };
    find("hiprtcCreateProgram", hiprtc.api_.hiprtcCreateProgram);
    find("hiprtcCompileProgram", hiprtc.api_.hiprtcCompileProgram);
    find("hiprtcDestroyProgram", hiprtc.api_.hiprtcDestroyProgram);
    find("hiprtcGetProgramLogSize", hiprtc.api_.hiprtcGetProgramLogSize);
    find("hiprtcGetProgramLog", hiprtc.api_.hiprtcGetProgramLog);
    find("hiprtcGetCodeSize", hiprtc.api_.hiprtcGetCodeSize);
    find("hiprtcGetCode", hiprtc.api_.hiprtcGetCode);
    find("hiprtcGetErrorString", hiprtc.api_.hiprtcGetErrorString);
    if (!found) {
        return fail(found);
    }
    return hiprtc;
}

std::string Hiprtc::log_of(HiprtcApi::Program program) const {
    std::size_t bytes = 0;
    if (api_.hiprtcGetProgramLogSize(program, &bytes) != HiprtcApi::kSuccess || bytes == 0) {
        return {};
    }
    std::string log(bytes, '\0');
    if (api_.hiprtcGetProgramLog(program, log.data()) != HiprtcApi::kSuccess) {
        return {};
    }
    log.resize(log.find_last_not_of('\0') + 1);  // the size may or may not count the final zero
    return log;
}

Result<Hiprtc::Compiled> Hiprtc::compile(const CompileRequest& request,
                                         const std::vector<std::string>& more_options) const {
    const auto refuse = [&](const char* step, int result) {
        return fail(ErrorCode::environment, Stage::compile,
                    fmt::format("{}: {} failed: {} ({})", request.name, step,
                                api_.hiprtcGetErrorString(result), result));
    };
    std::vector<const char*> texts;
    std::vector<const char*> names;
    for (const auto& header : request.headers) {
        texts.push_back(header.text.c_str());
        names.push_back(header.name.c_str());
    }
    const std::string architecture = "--offload-arch=" + request.target;
    std::vector<const char*> options{architecture.c_str()};
    for (const auto* const list : {&request.options, &more_options}) {
        for (const auto& option : *list) {
            options.push_back(option.c_str());
        }
    }

    const auto start = std::chrono::steady_clock::now();
    HiprtcApi::Program program = nullptr;
    int result = api_.hiprtcCreateProgram(&program, request.source.c_str(), request.name.c_str(),
                                          static_cast<int>(texts.size()), texts.data(), names.data());
    if (result != HiprtcApi::kSuccess) {
        return refuse("hiprtcCreateProgram", result);
    }
    const AtExit destroy([&] { api_.hiprtcDestroyProgram(&program); });
    result = api_.hiprtcCompileProgram(program, static_cast<int>(options.size()), options.data());
    std::string log = log_of(program);
    if (result == HiprtcApi::kCompilationError || result == HiprtcApi::kInvalidOption) {
        return fail(ErrorCode::compile_failed, Stage::compile,
                    log.empty() ? api_.hiprtcGetErrorString(result) : std::move(log));
    }
    if (result != HiprtcApi::kSuccess) {
        return refuse("hiprtcCompileProgram", result);
    }
    std::size_t bytes = 0;
    if (result = api_.hiprtcGetCodeSize(program, &bytes); result != HiprtcApi::kSuccess) {
        return refuse("hiprtcGetCodeSize", result);
    }
    std::string code_object(bytes, '\0');
    if (result = api_.hiprtcGetCode(program, code_object.data()); result != HiprtcApi::kSuccess) {
        return refuse("hiprtcGetCode", result);
    }
    const auto elapsed = std::chrono::steady_clock::now() - start;
    return Compiled{.code_object = std::move(code_object),
                    .log = std::move(log),
                    .nanoseconds = static_cast<std::uint64_t>(
                        std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count())};
}

}  // namespace kiln::compile::backend
