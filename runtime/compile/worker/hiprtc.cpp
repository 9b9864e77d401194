#include "runtime/compile/worker/hiprtc.hpp"

#include <chrono>
#include <vector>

#include <fmt/format.h>

namespace kiln::compile::worker {
namespace {

constexpr int kSuccess = 0;           // HIPRTC_SUCCESS
constexpr int kInvalidOption = 5;     // HIPRTC_ERROR_INVALID_OPTION
constexpr int kCompilationError = 6;  // HIPRTC_ERROR_COMPILATION

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
    find("hiprtcCreateProgram", hiprtc.create_);
    find("hiprtcCompileProgram", hiprtc.compile_);
    find("hiprtcDestroyProgram", hiprtc.destroy_);
    find("hiprtcGetProgramLogSize", hiprtc.log_size_);
    find("hiprtcGetProgramLog", hiprtc.log_);
    find("hiprtcGetCodeSize", hiprtc.code_size_);
    find("hiprtcGetCode", hiprtc.code_);
    find("hiprtcGetErrorString", hiprtc.error_string_);
    if (!found) {
        return fail(found);
    }
    return hiprtc;
}

std::string Hiprtc::log_of(Program program) const {
    std::size_t bytes = 0;
    if (log_size_(program, &bytes) != kSuccess || bytes == 0) {
        return {};
    }
    std::string log(bytes, '\0');
    if (log_(program, log.data()) != kSuccess) {
        return {};
    }
    log.resize(log.find_last_not_of('\0') + 1);  // the size may or may not count the final zero
    return log;
}

Result<Hiprtc::Compiled> Hiprtc::compile(const CompileRequest& request) const {
    const auto refuse = [&](const char* step, int result) {
        return fail(ErrorCode::environment, Stage::compile,
                    fmt::format("{}: {} failed: {} ({})", request.name, step, error_string_(result), result));
    };
    std::vector<const char*> texts;
    std::vector<const char*> names;
    for (const auto& header : request.headers) {
        texts.push_back(header.text.c_str());
        names.push_back(header.name.c_str());
    }
    const std::string architecture = "--offload-arch=" + request.target;
    std::vector<const char*> options{architecture.c_str()};
    for (const auto& option : request.options) {
        options.push_back(option.c_str());
    }

    const auto start = std::chrono::steady_clock::now();
    Program program = nullptr;
    int result = create_(&program, request.source.c_str(), request.name.c_str(),
                         static_cast<int>(texts.size()), texts.data(), names.data());
    if (result != kSuccess) {
        return refuse("hiprtcCreateProgram", result);
    }
    const AtExit destroy([&] { destroy_(&program); });
    result = compile_(program, static_cast<int>(options.size()), options.data());
    std::string log = log_of(program);
    if (result == kCompilationError || result == kInvalidOption) {
        return fail(ErrorCode::compile_failed, Stage::compile,
                    log.empty() ? error_string_(result) : std::move(log));
    }
    if (result != kSuccess) {
        return refuse("hiprtcCompileProgram", result);
    }
    std::size_t bytes = 0;
    if (result = code_size_(program, &bytes); result != kSuccess) {
        return refuse("hiprtcGetCodeSize", result);
    }
    std::string code_object(bytes, '\0');
    if (result = code_(program, code_object.data()); result != kSuccess) {
        return refuse("hiprtcGetCode", result);
    }
    const auto elapsed = std::chrono::steady_clock::now() - start;
    return Compiled{.code_object = std::move(code_object),
                    .log = std::move(log),
                    .nanoseconds = static_cast<std::uint64_t>(
                        std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count())};
}

}  // namespace kiln::compile::worker
