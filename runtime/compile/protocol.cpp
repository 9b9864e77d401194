#include "runtime/compile/protocol.hpp"

#include <fmt/format.h>

#include "runtime/include/kiln/kiln.h"

namespace kiln::compile {
namespace {

constexpr std::string_view kMagic("kilnw1\0\0", 8);

class Encoder {
  public:
    void number(std::uint64_t value) { little_endian(value, 8); }
    void text(std::string_view value) {
        number(value.size());
        body_ += value;
    }
    void texts(const std::vector<std::string>& values) {
        number(values.size());
        for (const auto& value : values) {
            text(value);
        }
    }
    [[nodiscard]] std::string frame(std::uint64_t sequence, std::uint32_t kind) {
        const std::string body = std::exchange(body_, std::string(kMagic));
        number(sequence);
        little_endian(kind, 4);
        text(body);
        return std::move(body_);
    }

  private:
    void little_endian(std::uint64_t value, int bytes) {
        for (int i = 0; i < bytes; ++i) {
            body_ += static_cast<char>(value >> (8 * i) & 0xff);
        }
    }
    std::string body_;
};

// Reads fields in order. After a fault every field is empty and ok() is false.
class Decoder {
  public:
    explicit Decoder(std::string_view body) : rest_(body) {}

    std::uint64_t number() { return little_endian(8); }
    std::uint64_t little_endian(std::size_t bytes) {
        const std::string_view field = take(bytes);
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < field.size(); ++i) {
            value |= std::uint64_t{static_cast<unsigned char>(field[i])} << (8 * i);
        }
        return value;
    }
    std::string_view text() { return take(number()); }
    std::vector<std::string> texts() {
        std::vector<std::string> values;
        // Each text takes eight bytes at least, so a count that can not be true stops at the end of the body.
        for (std::uint64_t left = number(); ok_ && left > 0; --left) {
            values.emplace_back(text());
        }
        return values;
    }
    // True when everything was there and nothing is left over.
    [[nodiscard]] bool ok_to_the_end() const { return ok_ && rest_.empty(); }

  private:
    std::string_view take(std::uint64_t bytes) {
        if (!ok_ || bytes > rest_.size()) {
            ok_ = false;
            return {};
        }
        const auto field = rest_.substr(0, bytes);
        rest_.remove_prefix(bytes);
        return field;
    }
    std::string_view rest_;
    bool ok_ = true;
};

auto bad(std::string message) {
    return fail(ErrorCode::worker_failed, Stage::compile, "compile worker: " + std::move(message));
}

// What a worker may say of a request; anything else is its own failure.
ErrorCode decode_code(std::uint64_t value) {
    for (const auto code : {ErrorCode::compile_failed, ErrorCode::bad_input, ErrorCode::environment}) {
        if (value == static_cast<std::uint64_t>(code)) {
            return code;
        }
    }
    return ErrorCode::worker_failed;
}

}  // namespace

std::string_view own_version() {
    static const std::string version =
        fmt::format("{}.{}.{}", KILN_VERSION_MAJOR, KILN_VERSION_MINOR, KILN_VERSION_PATCH);
    return version;
}

std::string encode_compile(std::uint64_t sequence, const CompileRequest& request) {
    Encoder encoder;
    encoder.text(request.name);
    encoder.text(request.source);
    std::vector<std::string> headers;
    for (const auto& header : request.headers) {
        headers.push_back(header.name);
        headers.push_back(header.text);
    }
    encoder.texts(headers);
    encoder.text(request.target);
    encoder.texts(request.options);
    return encoder.frame(sequence, static_cast<std::uint32_t>(RequestKind::compile));
}

std::string encode_disassemble(std::uint64_t sequence, ByteView code_object) {
    Encoder encoder;
    encoder.text(as_text(code_object));
    return encoder.frame(sequence, static_cast<std::uint32_t>(RequestKind::disassemble));
}

std::string encode_reply(std::uint64_t sequence, const Reply& reply) {
    Encoder encoder;
    switch (reply.kind) {
        case ReplyKind::ready:
            encoder.text(reply.version);
            encoder.number(reply.memory_limit);
            break;
        case ReplyKind::compiled:
            encoder.text(reply.code_object);
            encoder.text(reply.code_lines);
            encoder.text(reply.log);
            encoder.number(reply.nanoseconds);
            encoder.texts(reply.loaded);
            break;
        case ReplyKind::disassembled:
            encoder.text(reply.code_lines);
            break;
        case ReplyKind::failed:
            encoder.number(static_cast<std::uint64_t>(reply.error.code));
            encoder.text(reply.error.message);
            break;
    }
    return encoder.frame(sequence, static_cast<std::uint32_t>(reply.kind));
}

Result<FrameHead> decode_head(std::string_view head) {
    if (head.size() != kFrameHeadBytes || !head.starts_with(kMagic)) {
        return bad(fmt::format("expected a frame that starts with \"{}\", found other bytes", kMagic.data()));
    }
    Decoder decoder(head.substr(kMagic.size()));
    FrameHead decoded;
    decoded.sequence = decoder.number();
    decoded.kind = static_cast<std::uint32_t>(decoder.little_endian(4));
    decoded.body_bytes = decoder.number();
    if (decoded.body_bytes > kMostBodyBytes) {
        return bad(fmt::format("expected a frame of at most {} bytes, found one of {}", kMostBodyBytes,
                               decoded.body_bytes));
    }
    return decoded;
}

Result<CompileRequest> decode_compile(std::string_view body) {
    Decoder decoder(body);
    CompileRequest request;
    request.name = decoder.text();
    request.source = decoder.text();
    const auto headers = decoder.texts();
    request.target = decoder.text();
    request.options = decoder.texts();
    if (!decoder.ok_to_the_end() || headers.size() % 2 != 0) {
        return bad("a compile request that is not as the protocol has it");
    }
    for (std::size_t i = 0; i < headers.size(); i += 2) {
        request.headers.push_back({.name = headers[i], .text = headers[i + 1]});
    }
    return request;
}

Result<std::string_view> decode_disassemble(std::string_view body) {
    Decoder decoder(body);
    const auto code_object = decoder.text();
    if (!decoder.ok_to_the_end()) {
        return bad("a disassemble request that is not as the protocol has it");
    }
    return code_object;
}

Result<Reply> decode_reply(std::uint32_t kind, std::string_view body) {
    Decoder decoder(body);
    Reply reply;
    reply.kind = static_cast<ReplyKind>(kind);
    switch (reply.kind) {
        case ReplyKind::ready:
            reply.version = decoder.text();
            reply.memory_limit = decoder.number();
            break;
        case ReplyKind::compiled:
            reply.code_object = decoder.text();
            reply.code_lines = decoder.text();
            reply.log = decoder.text();
            reply.nanoseconds = decoder.number();
            reply.loaded = decoder.texts();
            break;
        case ReplyKind::disassembled:
            reply.code_lines = decoder.text();
            break;
        case ReplyKind::failed:
            reply.error.code = decode_code(decoder.number());
            reply.error.stage = Stage::compile;
            reply.error.message = decoder.text();
            break;
        default:
            return bad(fmt::format("a reply of the unknown kind {}", kind));
    }
    if (!decoder.ok_to_the_end()) {
        return bad(fmt::format("a reply of kind {} that is not as the protocol has it", kind));
    }
    return reply;
}

}  // namespace kiln::compile
