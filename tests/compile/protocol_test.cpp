#include "runtime/compile/protocol.hpp"

#include <doctest/doctest.h>

#include <random>

using kiln::ErrorCode;
using namespace kiln::compile;

namespace {

CompileRequest small_request() {
    return {.name = "n", .source = "s", .headers = {{"h", "t"}}, .target = "g", .options = {"-O3"}};
}

std::string_view body_of(const std::string& frame) {
    return std::string_view(frame).substr(kFrameHeadBytes);
}

}  // namespace

TEST_CASE("ProtocolBytesAreAsTheGrammarSays") {
    const auto number = [](char value) { return std::string(1, value) + std::string(7, '\0'); };
    const std::string body = number(1) + "n" + number(1) + "s" + number(2) + number(1) + "h" + number(1) +
                             "t" + number(1) + "g" + number(1) + number(3) + "-O3";
    const std::string frame = std::string("kilnw1\0\0", 8) + number(5) + std::string("\1\0\0\0", 4) +
                              number(static_cast<char>(body.size())) + body;
    CHECK(encode_compile(5, small_request()) == frame);
}

TEST_CASE("ProtocolReadsTheRequestThatItWrote") {
    const std::string frame = encode_compile(7, small_request());
    const auto head = decode_head(std::string_view(frame).substr(0, kFrameHeadBytes));
    REQUIRE(head);
    CHECK(head->sequence == 7);
    CHECK(head->body_bytes == frame.size() - kFrameHeadBytes);
    const auto request = decode_compile(body_of(frame));
    REQUIRE(request);
    CHECK(request->name == "n");
    CHECK(request->headers.at(0).text == "t");
    CHECK(request->options == std::vector<std::string>{"-O3"});
}

TEST_CASE("ProtocolReadsTheRepliesThatItWrote") {
    Reply reply;
    reply.kind = ReplyKind::compiled;
    reply.code_object = std::string("\0ELF", 4);
    reply.code_lines = "0 00000000 s_nop\n";
    reply.log = "warning";
    reply.nanoseconds = std::uint64_t{1} << 40;
    reply.loaded = {"/a", "/b"};
    const auto compiled = decode_reply(101, body_of(encode_reply(1, reply)));
    REQUIRE(compiled);
    CHECK(compiled->code_object == reply.code_object);
    CHECK(compiled->nanoseconds == reply.nanoseconds);
    CHECK(compiled->loaded == reply.loaded);

    reply.kind = ReplyKind::ready;
    reply.version = own_version();
    reply.memory_limit = std::uint64_t{3} << 40;
    const auto ready = decode_reply(100, body_of(encode_reply(0, reply)));
    REQUIRE(ready);
    CHECK(ready->version == own_version());
    CHECK(ready->memory_limit == reply.memory_limit);

    reply.kind = ReplyKind::failed;
    reply.error = {ErrorCode::compile_failed, kiln::Stage::compile, "no"};
    const auto failed = decode_reply(103, body_of(encode_reply(1, reply)));
    REQUIRE(failed);
    CHECK(failed->error.code == ErrorCode::compile_failed);
    CHECK(failed->error.message == "no");
}

TEST_CASE("ProtocolBelievesNoLengthThatTheBytesDoNotHold") {
    const std::string frame = encode_compile(1, small_request());
    for (std::size_t bytes = 0; bytes < body_of(frame).size(); ++bytes) {
        CHECK(!decode_compile(body_of(frame).substr(0, bytes)));
    }
    CHECK(!decode_compile(std::string(body_of(frame)) + "x"));
    std::string huge(body_of(frame));
    huge.replace(0, 8, std::string(8, '\xff'));
    CHECK(!decode_compile(huge));
    std::string head = frame.substr(0, kFrameHeadBytes);
    head[27] = '\x01';
    CHECK(!decode_head(head));
    head = frame.substr(0, kFrameHeadBytes);
    head[5] = '2';  // another version of the grammar
    CHECK(!decode_head(head));
}

TEST_CASE("ProtocolSurvivesRandomBytes") {
    const auto seed = std::random_device()();
    CAPTURE(seed);
    std::mt19937 random(seed);
    int accepted = 0;
    for (int i = 0; i < 20'000; ++i) {
        std::string body(random() % 120, '\0');
        for (auto& byte : body) {
            byte = static_cast<char>(random() % 4 == 0 ? random() : 0);
        }
        // What is accepted is exactly what its own bytes say.
        for (const std::uint32_t kind : {101u, 102u, 103u, 104u}) {
            if (const auto reply = decode_reply(kind, body)) {
                const std::size_t code = kind == 103 ? 8 : 0;  // those that nobody sends become one
                CHECK(body_of(encode_reply(1, *reply)).substr(code) == body.substr(code));
                ++accepted;
            }
        }
        if (const auto request = decode_compile(body)) {
            CHECK(body_of(encode_compile(1, *request)) == body);
            ++accepted;
        }
    }
    CHECK(accepted > 0);
}
