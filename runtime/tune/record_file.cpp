#include "runtime/tune/record_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

namespace kiln::tune {

namespace {

auto refused(const std::filesystem::path& path, const std::string& message) {
    return fail(ErrorCode::bad_input, Stage::configure, fmt::format("{}: {}", path.string(), message));
}

auto system_refused(std::string_view what, const std::filesystem::path& path) {
    return fail(ErrorCode::io, Stage::configure, system_message(what, path, errno));
}

}  // namespace

Result<std::unique_ptr<RecordFile>> RecordFile::open(const std::filesystem::path& path, GoOn go_on,
                                                     const Conditions& conditions) {
    auto opened = std::make_unique<RecordFile>();
    if (path.empty()) {
        return opened;
    }
    opened->path_ = path;
    opened->file_ =
        above_standard_streams(UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666)));
    if (!opened->file_.valid()) {
        return system_refused("open", path);
    }
    if (::flock(opened->file_.get(), LOCK_EX | LOCK_NB) != 0) {
        return errno == EWOULDBLOCK
                   ? refused(path, "expected a file that no other tune writes, found one that does")
                   : system_refused("lock", path);
    }
    const Result<std::string> text = read_text_file(path, Stage::configure);
    if (!text) {
        return tl::unexpected<Error>(text.error());
    }
    if (!text->empty() && go_on == GoOn::no) {
        return refused(path, "expected no file or an empty one, found results (--resume goes on from them)");
    }
    Result<Records> records = parse_records(*text, path.string());
    if (!records) {
        return fail(records);
    }
    for (const CandidateRecord& candidate : records->candidates) {
        if (const std::string other = conditions.difference(candidate.conditions); !other.empty()) {
            return refused(path, fmt::format("expected results under the same conditions, found {}", other));
        }
    }
    const std::size_t whole = text->rfind('\n') == std::string::npos ? 0 : text->rfind('\n') + 1;
    if (whole < text->size() && ::ftruncate(opened->file_.get(), static_cast<off_t>(whole)) != 0) {
        return system_refused("truncate", path);
    }
    opened->found_ = *std::move(records);
    return opened;
}

Result<void> RecordFile::append(const std::string& line) {
    if (!file_.valid()) {
        return {};
    }
    std::string_view rest = line;
    while (!rest.empty()) {
        const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
        if (written < 0 && errno != EINTR) {
            return system_refused("write", path_);
        }
        rest.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
    }
    return {};
}

}  // namespace kiln::tune
