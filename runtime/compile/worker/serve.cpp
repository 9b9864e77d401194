#include "runtime/compile/worker/serve.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <thread>

#include "runtime/compile/backend/backend.hpp"
#include "runtime/compile/protocol.hpp"
#include "runtime/compile/worker/crash.hpp"

namespace kiln::compile::worker {
namespace {

bool read_exactly(int fd, std::string& bytes) {
    for (std::size_t used = 0; used < bytes.size();) {
        const ssize_t got = ::read(fd, bytes.data() + used, bytes.size() - used);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        used += static_cast<std::size_t>(got);
    }
    return true;
}

bool write_all(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        const ssize_t written = ::write(fd, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return false;
        }
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

void remove_scratch(const std::filesystem::path& scratch) {
    std::error_code ignored;  // the host sweeps it as well
    std::filesystem::remove_all(scratch, ignored);
}

// Of a process that may have ended before this one could ask; invalid then, and where the kernel has none.
UniqueFd watch_process(pid_t pid) {
    return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

// A compile may take minutes, or forever: when the other side goes away meanwhile, so does this process. The
// socket alone does not tell: children that the host forked may hold its other end.
[[nodiscard]] bool end_with_the_host(int requests, const ServeOptions& options) {
    UniqueFd host = watch_process(options.host);
    if (::getppid() != options.host) {
        return false;
    }
    try {
        std::thread([requests, host = std::move(host), scratch = options.scratch] {
            pollfd watched[2] = {{.fd = requests, .events = POLLRDHUP, .revents = 0},
                                 {.fd = host.get(), .events = POLLIN, .revents = 0}};
            while (::poll(watched, 2, -1) < 0 && errno == EINTR) {
            }
            remove_scratch(scratch);
            ::_exit(0);
        }).detach();
    } catch (const std::system_error& error) {
        std::fprintf(stderr, "kiln-compile: start a thread: %s\n", error.what());
        return false;
    }
    return true;
}

class Server {
  public:
    explicit Server(const ServeOptions& options)
        : backend_({.family = options.family,
                    .rtc = options.rtc,
                    .companion = options.companion,
                    .temporary_folder = options.scratch,
                    .more_options = {}}) {}

    Reply answer(const FrameHead& head, std::string_view body) {
        auto reply = dispatch(head, body);
        if (reply) {
            return std::move(*reply);
        }
        Reply failed;
        failed.kind = ReplyKind::failed;
        failed.error = std::move(reply.error());
        return failed;
    }

  private:
    Result<Reply> dispatch(const FrameHead& head, std::string_view body) {
        switch (static_cast<RequestKind>(head.kind)) {
            case RequestKind::compile:
                return compile(body);
            case RequestKind::disassemble:
                return disassemble(body);
        }
        return fail(ErrorCode::worker_failed, Stage::compile, "a request of an unknown kind");
    }

    Result<Reply> compile(std::string_view body) {
        auto request = decode_compile(body);
        if (!request) {
            return fail(request);
        }
        const CrashNote note("compiling", request->name);
        return backend_.compile(*request);
    }

    Result<Reply> disassemble(std::string_view body) {
        auto code_object = decode_disassemble(body);
        if (!code_object) {
            return fail(code_object);
        }
        const CrashNote note("disassembling", "a code object");
        return backend_.disassemble(as_bytes(*code_object));
    }

    backend::Backend backend_;
};

}  // namespace

int serve(UniqueFd requests, UniqueFd replies, const ServeOptions& options) {
    if (!end_with_the_host(requests.get(), options)) {
        remove_scratch(options.scratch);
        return 1;
    }
    Reply ready;
    ready.kind = ReplyKind::ready;
    ready.version = own_version();
    ready.memory_limit = options.memory_limit;
    Server server(options);
    std::string head(kFrameHeadBytes, '\0');
    bool connected = write_all(replies.get(), encode_reply(0, ready));
    while (connected && read_exactly(requests.get(), head)) {
        const auto decoded = decode_head(head);
        if (!decoded) {
            std::fprintf(stderr, "kiln-compile: %s\n", decoded.error().message.c_str());
            return 1;
        }
        std::string body(decoded->body_bytes, '\0');
        connected = read_exactly(requests.get(), body) &&
                    write_all(replies.get(), encode_reply(decoded->sequence, server.answer(*decoded, body)));
    }
    remove_scratch(options.scratch);
    return 0;
}

}  // namespace kiln::compile::worker
