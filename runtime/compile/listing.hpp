// The listing: the disassembly of one code object's .text, as text that a person can read and the simulator
// executes.
//
// clang-format off
//   kiln-listing 1
//   target gfx950
//   text-sha256 9f86d0...            digest of the bytes of .text: ties the listing to exactly one code object
//   text-bytes 5120
//   kernel 0 kiln_linear_n5120_k4096_m16   offset in .text of each kernel's entry, ascending; a line each
//   code
//   0 c00a0000 00000010 s_load_dwordx4 s[0:3], s[4:5], 0x10
//   8 bf8cc07f s_waitcnt lgkmcnt(0)
// clang-format on
//
// A line of code is: the byte offset in .text (decimal), the encoding as one to four little-endian 32-bit
// words of 8 hexadecimal digits each, then the instruction exactly as LLVM's assembly printer writes it,
// without symbols: a branch shows its 16-bit operand as a number of dwords counted from the instruction that
// follows it. Bytes that are no instruction are listed as ".word" with their encoding, and must never be
// executed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/digest.hpp"
#include "base/error.hpp"
#include "runtime/compile/code_object.hpp"

namespace kiln::compile {

struct ListingLine {
    std::uint32_t offset = 0;     // bytes from the start of .text
    std::uint8_t num_words = 0;   // of the encoding, 1 to 4
    std::uint32_t words[4] = {};  // the encoding
    std::string_view text;        // mnemonic and operands; points into the listing
};

struct ListingKernel {
    std::uint32_t offset = 0;
    std::string_view name;
};

struct Listing {
    std::string_view target;
    Digest text_digest;
    std::uint32_t text_bytes = 0;
    std::vector<ListingKernel> kernels;
    std::vector<ListingLine> lines;  // ascending offsets
};

// The views point into `text`, which must outlive the result. bad_input names the line that is malformed.
// Whether the listing belongs to some code object is the caller's to check: text_digest against its .text.
[[nodiscard]] Result<Listing> parse_listing(std::string_view text);

// The whole listing: the head from what the code object says, then `code_lines`. The result parses, or it is
// an error.
[[nodiscard]] Result<std::string> make_listing(const CodeObject& object, std::string_view code_lines);

}  // namespace kiln::compile
