#include "runtime/compile/worker/serve.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>

#include "runtime/compile/protocol.hpp"
#include "runtime/compile/worker/crash.hpp"
#include "runtime/compile/worker/disassembler.hpp"
#include "runtime/compile/worker/hiprtc.hpp"
#include "runtime/compile/worker/log_names.hpp"

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

// A compile may take minutes, or forever: when the other side goes away meanwhile, so does this process.
void end_with_the_host(int requests, std::filesystem::path scratch) {
    std::thread([requests, scratch = std::move(scratch)] {
        pollfd watched{.fd = requests, .events = POLLRDHUP, .revents = 0};
        while (::poll(&watched, 1, -1) < 0 && errno == EINTR) {
        }
        remove_scratch(scratch);
        ::_exit(0);
    }).detach();
}

class Server {
  public:
    explicit Server(const ServeOptions& options) : options_(options) {}

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

    // comgr comes first: hipRTC asks for it by name, and must get the one that stands beside it.
    Result<void> load_disassembler() {
        if (!disassembler_) {
            auto opened = Disassembler::open(options_.comgr);
            if (!opened) {
                return fail(opened);
            }
            disassembler_ = std::move(*opened);
        }
        return {};
    }
    Result<void> load_compiler() {
        if (auto loaded = load_disassembler(); !loaded) {
            return fail(loaded);
        }
        if (!hiprtc_) {
            auto opened = Hiprtc::open(options_.hiprtc);
            if (!opened) {
                return fail(opened);
            }
            hiprtc_ = std::move(*opened);
        }
        return {};
    }

    Result<Reply> compile(std::string_view body) {
        auto request = decode_compile(body);
        if (!request) {
            return fail(request);
        }
        if (auto loaded = load_compiler(); !loaded) {
            return fail(loaded);
        }
        const CrashNote note("compiling", request->name);
        auto compiled = hiprtc_->compile(*request);
        if (!compiled) {
            auto& error = compiled.error();
            error.message = with_template_names(error.message, options_.scratch.native());
            return fail(compiled);
        }
        auto lines = disassembler_->code_lines(as_bytes(compiled->code_object));
        if (!lines) {
            lines.error().code = ErrorCode::compile_failed;  // it compiled to what kiln can not load
            return fail(lines);
        }
        Reply reply;
        reply.kind = ReplyKind::compiled;
        reply.log = with_template_names(compiled->log, options_.scratch.native());
        reply.code_object = std::move(compiled->code_object);
        reply.code_lines = std::move(*lines);
        reply.nanoseconds = compiled->nanoseconds;
        reply.loaded = loaded_libraries();
        return reply;
    }

    Result<Reply> disassemble(std::string_view body) {
        auto code_object = decode_disassemble(body);
        if (!code_object) {
            return fail(code_object);
        }
        if (auto loaded = load_disassembler(); !loaded) {
            return fail(loaded);
        }
        const CrashNote note("disassembling", "a code object");
        auto lines = disassembler_->code_lines(as_bytes(*code_object));
        if (!lines) {
            return fail(lines);
        }
        Reply reply;
        reply.kind = ReplyKind::disassembled;
        reply.code_lines = std::move(*lines);
        return reply;
    }

    const ServeOptions& options_;
    std::optional<Disassembler> disassembler_;
    std::optional<Hiprtc> hiprtc_;
};

}  // namespace

int serve(UniqueFd requests, UniqueFd replies, const ServeOptions& options) {
    end_with_the_host(requests.get(), options.scratch);
    Server server(options);
    std::string head(kFrameHeadBytes, '\0');
    while (read_exactly(requests.get(), head)) {
        const auto decoded = decode_head(head);
        if (!decoded) {
            std::fprintf(stderr, "kiln-compile: %s\n", decoded.error().message.c_str());
            return 1;
        }
        std::string body(decoded->body_bytes, '\0');
        if (!read_exactly(requests.get(), body) ||
            !write_all(replies.get(), encode_reply(decoded->sequence, server.answer(*decoded, body)))) {
            break;
        }
    }
    remove_scratch(options.scratch);
    return 0;
}

}  // namespace kiln::compile::worker
