#include "runtime/compile/backend/backend.hpp"

#include "runtime/compile/backend/log_names.hpp"

namespace kiln::compile::backend {

Result<void> Backend::load_companion() {
    if (companion_loaded_) {
        return {};
    }
    if (config_.family == Family::cuda) {
        if (auto opened = Library::open(config_.companion); !opened) {
            return fail(opened);
        }
    } else {
        auto opened = Disassembler::open(config_.companion);
        if (!opened) {
            return fail(opened);
        }
        disassembler_ = std::move(*opened);
    }
    companion_loaded_ = true;
    return {};
}

// The companion comes first: the compiler asks for it by name, and must get the one that stands beside it.
Result<void> Backend::load_compiler() {
    if (auto loaded = load_companion(); !loaded) {
        return fail(loaded);
    }
    if (!rtc_) {
        auto opened = Rtc::open(config_.family, config_.rtc);
        if (!opened) {
            return fail(opened);
        }
        rtc_ = std::move(*opened);
    }
    return {};
}

Result<Reply> Backend::compile(const CompileRequest& request) {
    if (auto loaded = load_compiler(); !loaded) {
        return fail(loaded);
    }
    auto compiled = rtc_->compile(request, config_.more_options);
    if (!compiled) {
        auto& error = compiled.error();
        error.message = with_template_names(error.message, config_.temporary_folder.native());
        return fail(compiled);
    }
    Reply reply;
    if (disassembler_) {
        auto lines = disassembler_->code_lines(as_bytes(compiled->code_object));
        if (!lines) {
            lines.error().code = ErrorCode::compile_failed;  // it compiled to what kiln can not load
            return fail(lines);
        }
        reply.code_lines = std::move(*lines);
    }
    reply.kind = ReplyKind::compiled;
    reply.log = with_template_names(compiled->log, config_.temporary_folder.native());
    reply.code_object = std::move(compiled->code_object);
    reply.nanoseconds = compiled->nanoseconds;
    reply.loaded = loaded_libraries();
    return reply;
}

Result<Reply> Backend::disassemble(ByteView code_object) {
    if (auto loaded = load_companion(); !loaded) {
        return fail(loaded);
    }
    if (!disassembler_) {
        return fail(ErrorCode::environment, Stage::compile, "NVRTC does not disassemble");
    }
    auto lines = disassembler_->code_lines(code_object);
    if (!lines) {
        return fail(lines);
    }
    Reply reply;
    reply.kind = ReplyKind::disassembled;
    reply.code_lines = std::move(*lines);
    return reply;
}

}  // namespace kiln::compile::backend
