// What the pool and the worker say to each other, over one stream socket: the worker says first what it is
// (ready), then a request, then its reply, one at a time.
//
// clang-format off
//   frame        = magic sequence kind length body
//   magic        = "kilnw1\0\0"    8 bytes; names the version of this grammar: it changes when the grammar does
//   sequence     = u64             of the request; its reply repeats it; 0 of ready
//   kind         = u32             a RequestKind or a ReplyKind
//   length       = u64             of the body, at most kMostBodyBytes
//   number       = u64             all numbers are little-endian
//   text         = number byte*    length first
//   texts        = number text*
//
//   compile      = name:text source:text headers:texts target:text options:texts
//                  headers are name, text, name, text, ...
//   disassemble  = code_object:text
//   ready        = version:text memory_limit:number
//                  of kiln, which must be the host's own; bytes of address space that it may use, 0 for no limit
//   compiled     = code_object:text code_lines:text log:text nanoseconds:number loaded:texts
//   disassembled = code_lines:text
//                  as disassembly.hpp formats them; the head of a listing is the host's to write
//   failed       = code:number message:text
//                  code is an ErrorCode: compile_failed (the message is the compiler's log), bad_input, environment,
//                  worker_failed (the compiler says that it ran out of memory)
// clang-format on
//
// Nothing here trusts the other side: lengths are checked before anything is allocated for them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "runtime/compile/compiler.hpp"

namespace kiln::compile {

enum class RequestKind : std::uint32_t { compile = 1, disassemble = 2 };
enum class ReplyKind : std::uint32_t { ready = 100, compiled = 101, disassembled = 102, failed = 103 };

// What a worker's own words on stderr start with; libraries print there as well.
constexpr const char* kWorkerSays = "kiln-compile: ";
// How its last words say that it died of its memory limit; "N MiB" follows.
constexpr const char* kOutOfMemoryWords = "ran out of its";

constexpr std::uint64_t kMostBodyBytes = std::uint64_t{256} << 20;
constexpr std::size_t kFrameHeadBytes = 28;

struct FrameHead {
    std::uint64_t sequence = 0;
    std::uint32_t kind = 0;
    std::uint64_t body_bytes = 0;
};

struct Reply {
    ReplyKind kind = ReplyKind::failed;
    std::string version;             // of ready
    std::uint64_t memory_limit = 0;  // of ready
    std::string code_object;
    std::string code_lines;
    std::string log;
    std::uint64_t nanoseconds = 0;
    std::vector<std::string> loaded;  // paths of the libraries in the worker
    Error error;                      // of failed
};

// The version of kiln that this code was built as.
[[nodiscard]] std::string_view own_version();

// Head and body in one.
[[nodiscard]] std::string encode_compile(std::uint64_t sequence, const CompileRequest& request);
[[nodiscard]] std::string encode_disassemble(std::uint64_t sequence, ByteView code_object);
[[nodiscard]] std::string encode_reply(std::uint64_t sequence, const Reply& reply);

// worker_failed when the bytes are not as the grammar has them; `head` must hold kFrameHeadBytes.
[[nodiscard]] Result<FrameHead> decode_head(std::string_view head);
[[nodiscard]] Result<CompileRequest> decode_compile(std::string_view body);
[[nodiscard]] Result<std::string_view> decode_disassemble(std::string_view body);
[[nodiscard]] Result<Reply> decode_reply(std::uint32_t kind, std::string_view body);

}  // namespace kiln::compile
