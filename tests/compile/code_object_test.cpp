#include "runtime/compile/code_object.hpp"

#include <cstring>
#include <random>

#include "runtime/compile/code_object_metadata.hpp"
#include "runtime/compile/listing.hpp"
#include "support.hpp"

using kiln::Bytes;
using kiln::ByteView;
using kiln::ErrorCode;
using namespace kiln::compile;

namespace {

const CompileResult& compiled() {
    static const CompileResult result = [] {
        auto compiler = test::make_compiler();
        auto outcome = compiler->compile(test::kernel_request());
        REQUIRE_MESSAGE(outcome, (outcome ? "" : outcome.error().message));
        return *outcome;
    }();
    return result;
}

// Touches everything that a reader handed out, so that a sanitizer sees where it points.
std::size_t touch(const CodeObject& object) {
    std::size_t sum = object.target.size() + object.kernels.size();
    for (const auto byte : object.text) {
        sum += std::to_integer<std::size_t>(byte);
    }
    for (const auto& segment : object.segments) {
        for (const auto byte : segment.contents) {
            sum += std::to_integer<std::size_t>(byte);
        }
    }
    return sum;
}

// Finds the bytes of `what` in a code object.
std::size_t find(const Bytes& bytes, std::string_view what) {
    const auto at = kiln::as_text(bytes).find(what);
    REQUIRE(at != std::string_view::npos);
    return at;
}

}  // namespace

TEST_CASE("CodeObjectOfARealKernelIsReadWhole") {
    const auto object = read_code_object(compiled().code_object);
    REQUIRE_MESSAGE(object, (object ? "" : object.error().message));
    CHECK(object->target == "gfx950");
    REQUIRE(object->kernels.size() == 1);
    const KernelInfo& kernel = object->kernels[0];
    CHECK(kernel.name == "scale_all");
    CHECK(kernel.wavefront == 64);
    CHECK(kernel.lds_bytes == 256);
    CHECK(kernel.scratch_bytes == 0);
    CHECK(kernel.vgprs > 0);
    CHECK(kernel.sgprs > 0);
    CHECK(kernel.vgpr_spills == 0);
    CHECK(kernel.max_threads == 1024);
    CHECK(kernel.kernarg_align >= 8);
    REQUIRE(kernel.arguments.size() >= 2);
    CHECK(kernel.arguments[0].name == "values");
    CHECK(kernel.arguments[0].value_kind == "global_buffer");
    CHECK(kernel.arguments[1].name == "count");
    CHECK(kernel.arguments[1].value_kind == "by_value");
    CHECK(kernel.arguments[1].offset == 8);
    CHECK(kernel.arguments[1].size == 4);
    CHECK(kernel.kernarg_bytes >= 12);
    CHECK(kernel.entry_address == object->text_address);
    CHECK(kernel.descriptor_address % 64 == 0);
    CHECK(object->text.size() % 4 == 0);
}

TEST_CASE("CodeObjectCutAnywhereIsRefusedOrWhole") {
    const Bytes& whole = compiled().code_object;
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
        const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(bytes));
        const auto object = read_code_object(cut);
        // The section headers stand at the end, so a file that lacks any byte of them can not be read.
        CHECK(!object);
    }
}

TEST_CASE("CodeObjectWithFlippedBytesIsNeverReadOutOfBounds") {
    const auto seed = std::random_device()();
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::size_t sum = 0;
    std::size_t refused = 0;
    for (int i = 0; i < 4000; ++i) {
        Bytes bytes = compiled().code_object;
        const std::size_t flips = 1 + random() % 4;
        for (std::size_t flip = 0; flip < flips; ++flip) {
            // Half of them where the headers and the note are.
            const std::size_t range = random() % 2 == 0 ? bytes.size() : 0x600;
            bytes[random() % range] ^= static_cast<std::byte>(1 + random() % 255);
        }
        const auto object = read_code_object(bytes);
        if (object) {
            sum += touch(*object);
        } else {
            CHECK(object.error().code == ErrorCode::bad_input);
            CHECK(!object.error().message.empty());
            ++refused;
        }
    }
    CHECK(sum > 0);
    CHECK(refused > 100);
}

TEST_CASE("CodeObjectOfAnotherKindIsRefused") {
    Bytes bytes = compiled().code_object;
    bytes[18] = std::byte{62};  // EM_X86_64
    const auto object = read_code_object(bytes);
    REQUIRE(!object);
    CHECK(object.error().message.find("machine 62") != std::string::npos);
    CHECK(!read_code_object(
        kiln::as_bytes("not an ELF file, but longer than the header of one would have to be")));
    CHECK(!read_code_object({}));
}

TEST_CASE("CodeObjectMetadataThatNestsTooDeepIsRefused") {
    // Arrays in arrays, well-formed to the last: a reader that recurses without a limit ends on its stack.
    Bytes document(4'000'000, std::byte{0x91});
    document.back() = std::byte{0xc0};
    const auto metadata = read_metadata(document);
    REQUIRE(!metadata);
    CHECK(metadata.error().code == ErrorCode::bad_input);
    CHECK(metadata.error().message.find("at most 16 levels") != std::string::npos);
}

TEST_CASE("CodeObjectMetadataMustHaveEveryMember") {
    for (const char* member :
         {".vgpr_count", ".kernarg_segment_size", ".symbol", "amdhsa.target", ".offset"}) {
        Bytes bytes = compiled().code_object;
        bytes[find(bytes, member) + 2] = std::byte{'#'};
        const auto object = read_code_object(bytes);
        CAPTURE(member);
        REQUIRE(!object);
        CHECK_MESSAGE(object.error().message.find(member) != std::string::npos, object.error().message);
    }
}

TEST_CASE("ListingBelongsToItsCodeObject") {
    const auto object = read_code_object(compiled().code_object);
    const auto listing = parse_listing(compiled().listing);
    REQUIRE(object);
    REQUIRE_MESSAGE(listing, (listing ? "" : listing.error().message));
    CHECK(listing->text_digest == kiln::sha256(object->text));
    CHECK(listing->text_bytes == object->text.size());
    REQUIRE(listing->kernels.size() == 1);
    CHECK(listing->kernels[0].name == "scale_all");
    CHECK(listing->kernels[0].offset == object->kernels[0].entry_address - object->text_address);

    int branches = 0;
    int ends = 0;
    for (const auto& line : listing->lines) {
        std::uint32_t words[4] = {};
        std::memcpy(words, object->text.data() + line.offset, 4u * line.num_words);
        CHECK(std::equal(words, words + 4, line.words));
        if (line.text.starts_with("s_cbranch") || line.text.starts_with("s_branch")) {
            // Left as the number in the encoding: no symbol, no address.
            const auto operand = line.text.substr(line.text.find(' ') + 1);
            CHECK(operand == std::to_string(line.words[0] & 0xffff));
            ++branches;
        }
        ends += line.text == "s_endpgm" ? 1 : 0;
    }
    CHECK(branches > 0);
    CHECK(ends > 0);
}
