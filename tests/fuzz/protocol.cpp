// The worker protocol, from both ends: what the worker does with a request before it compiles, and what the
// host does with a reply before anything of it is kept.
//
// An input is a frame. The magic and the length of the body are put right first, as they would otherwise be
// all that is ever refused; the decoder of heads is tried on the bytes as they stand too.

#include "runtime/compile/protocol.hpp"

#include <algorithm>
#include <string>

#include "runtime/compile/code_object.hpp"
#include "runtime/compile/listing.hpp"
#include "runtime/compile/request_check.hpp"
#include "tests/fuzz/target.hpp"

namespace kiln::fuzz {
namespace {

using compile::FrameHead;
using compile::kFrameHeadBytes;
using compile::ReplyKind;
using compile::RequestKind;

constexpr std::size_t kMagicBytes = 8;
constexpr std::size_t kLengthAt = 20;

// The worker's side. The grammar has one way to write a request.
bool run_request(const FrameHead& head, std::string_view frame, std::string_view body) {
    if (head.kind == static_cast<std::uint32_t>(RequestKind::disassemble)) {
        const auto code_object = compile::decode_disassemble(body);
        KILN_FUZZ_PROMISE(!code_object ||
                          compile::encode_disassemble(head.sequence, as_bytes(*code_object)) == frame);
        return code_object.has_value();
    }
    const auto request = compile::decode_compile(body);
    if (!request) {
        KILN_FUZZ_PROMISE(request.error().code == ErrorCode::worker_failed);
        return false;
    }
    KILN_FUZZ_PROMISE(compile::encode_compile(head.sequence, *request) == frame);
    const auto checked = compile::check_request(*request);
    KILN_FUZZ_PROMISE(checked || checked.error().code == ErrorCode::invalid_argument);
    return true;
}

// The host's side, up to the listing that would go into the cache.
bool run_reply(const FrameHead& head, std::string_view frame, std::string_view body) {
    const auto reply = compile::decode_reply(head.kind, body);
    if (!reply) {
        KILN_FUZZ_PROMISE(reply.error().code == ErrorCode::worker_failed);
        return false;
    }
    if (reply->kind == ReplyKind::failed) {
        // A code that no worker may send reads as the worker's own failure; all else comes back as it was.
        const bool foreign = reply->error.code == ErrorCode::worker_failed;
        KILN_FUZZ_PROMISE(foreign || compile::encode_reply(head.sequence, *reply) == frame);
        return true;
    }
    KILN_FUZZ_PROMISE(compile::encode_reply(head.sequence, *reply) == frame);
    const auto object = compile::read_code_object(as_bytes(reply->code_object));
    if (object) {
        const auto listing = compile::make_listing(*object, reply->code_lines);
        if (listing) {
            const auto parsed = compile::parse_listing(*listing);
            KILN_FUZZ_PROMISE(parsed);
            KILN_FUZZ_PROMISE(parsed->text_bytes == object->text.size());
            KILN_FUZZ_PROMISE(parsed->text_digest == sha256(object->text));
        }
    }
    // A listing may come from a cache as well.
    static_cast<void>(compile::parse_listing(reply->code_lines));
    return true;
}

}  // namespace

bool run(ByteView input) {
    std::string frame(as_text(input));
    const auto as_it_stands = compile::decode_head(frame.substr(0, kFrameHeadBytes));
    if (frame.size() < kFrameHeadBytes) {
        KILN_FUZZ_PROMISE(!as_it_stands);
        return false;
    }
    const std::string magic = compile::encode_disassemble(0, {}).substr(0, kMagicBytes);
    frame.replace(0, kMagicBytes, magic);
    const std::uint64_t body_bytes = frame.size() - kFrameHeadBytes;
    for (std::size_t i = 0; i < 8; ++i) {
        frame[kLengthAt + i] = static_cast<char>(body_bytes >> (8 * i));
    }
    const auto head = compile::decode_head(std::string_view(frame).substr(0, kFrameHeadBytes));
    KILN_FUZZ_PROMISE(head);
    KILN_FUZZ_PROMISE(head->body_bytes == body_bytes);
    const auto body = std::string_view(frame).substr(kFrameHeadBytes);
    switch (head->kind) {
        case static_cast<std::uint32_t>(RequestKind::compile):
        case static_cast<std::uint32_t>(RequestKind::disassemble):
            return run_request(*head, frame, body);
        default:
            return run_reply(*head, frame, body);
    }
}

}  // namespace kiln::fuzz
