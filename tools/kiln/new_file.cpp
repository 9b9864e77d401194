#include "tools/kiln/new_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/file.hpp"

namespace kiln::cli {

Result<std::filesystem::path> make_folder_of(const std::string& path) {
    const auto folder = std::filesystem::path(path).parent_path();
    if (folder.empty()) {
        return ".";
    }
    std::error_code error;
    if (std::filesystem::create_directories(folder, error); error) {
        return fail(ErrorCode::io, Stage::table, system_message("create", folder, error.value()));
    }
    return folder;
}

Result<void> check_folder_of(const std::string& path, std::string_view option) {
    const auto parent = std::filesystem::path(path).parent_path();
    const std::filesystem::path folder = parent.empty() ? "." : parent;
    if (::access(folder.c_str(), W_OK | X_OK) != 0) {
        return fail(ErrorCode::io, Stage::configure,
                    system_message(fmt::format("{}: write into", option), folder, errno));
    }
    return {};
}

Result<void> write_new_file(const std::string& path, std::string_view text) {
    if (auto folder = make_folder_of(path); !folder) {
        return fail(folder);
    }
    const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file.valid()) {
        return errno == EEXIST ? fail(ErrorCode::bad_input, Stage::table,
                                      fmt::format("{}: expected no file of that name, found one", path))
                               : fail(ErrorCode::io, Stage::table, system_message("create", path, errno));
    }
    while (!text.empty()) {
        const auto written = ::write(file.get(), text.data(), text.size());
        if (written < 0 && errno != EINTR) {
            const int error = errno;
            ::unlink(path.c_str());
            return fail(ErrorCode::io, Stage::table, system_message("write", path, error));
        }
        text.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
    }
    return {};
}

}  // namespace kiln::cli
