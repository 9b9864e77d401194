#include "runtime/compile/request_check.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include <fmt/format.h>

namespace kiln::compile {
namespace {

auto refuse(std::string message) {
    return fail(ErrorCode::invalid_argument, Stage::compile, "compile request: " + std::move(message));
}

// The compiler writes source and headers to files of these names below a folder of its own.
bool stays_below(std::string_view name) {
    const std::filesystem::path path(name);
    return !name.empty() && name.size() < 512 && name.back() != '/' && path.is_relative() &&
           std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c <= '~'; }) &&
           std::none_of(path.begin(), path.end(),
                        [](const auto& part) { return part == ".." || part == "."; });
}

bool has_zero(std::string_view text) {
    return text.find('\0') != std::string_view::npos;
}

Result<void> check_target(const std::string& target) {
    const bool word = std::all_of(target.begin(), target.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '+' || c == ':' ||
               c == '_';
    });
    if (target.empty() || !word || target.front() == '-') {
        return refuse(fmt::format("expected a target such as gfx950:xnack- or sm_90a, found \"{}\"", target));
    }
    return {};
}

}  // namespace

Result<void> check_request(const CompileRequest& request) {
    if (!stays_below(request.name)) {
        return refuse(
            fmt::format("expected a relative file name of printable characters, found \"{}\"", request.name));
    }
    if (request.source.empty() || has_zero(request.source)) {
        return refuse(fmt::format("{}: the source is empty or holds a zero byte", request.name));
    }
    for (const auto& header : request.headers) {
        if (!stays_below(header.name) || has_zero(header.text)) {
            return refuse(
                fmt::format("{}: header \"{}\": expected a relative file name and a text without zero bytes",
                            request.name, header.name));
        }
    }
    for (const auto& option : request.options) {
        if (option.empty() || has_zero(option) || option.starts_with("--offload-arch") ||
            option.starts_with("--gpu-architecture") || option.starts_with("-arch")) {
            return refuse(
                fmt::format("{}: option \"{}\": the target is a member of its own, and no option is empty",
                            request.name, option));
        }
    }
    return check_target(request.target);
}

}  // namespace kiln::compile
