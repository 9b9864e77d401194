// The reader of code objects and of the MessagePack document in their metadata note: an ELF file takes the
// first way, anything else is taken for the bare document.

#include "runtime/compile/code_object.hpp"

#include <cstdint>
#include <string_view>

#include "runtime/compile/code_object_metadata.hpp"
#include "runtime/compile/target_family.hpp"
#include "tests/fuzz/target.hpp"

namespace kiln::fuzz {
namespace {

bool lies_in(ByteView part, ByteView whole) {
    return part.empty() ||
           (part.data() >= whole.data() && part.size() <= whole.size() &&
            part.data() - whole.data() <= static_cast<std::ptrdiff_t>(whole.size() - part.size()));
}

// One word, for messages, listings and the lookup of a symbol.
bool is_word(std::string_view text) {
    for (const char c : text) {
        if (c <= ' ' || c > '~') {
            return false;
        }
    }
    return !text.empty();
}

bool run_metadata(ByteView document) {
    const auto read = compile::read_metadata(document);
    if (!read) {
        KILN_FUZZ_PROMISE(read.error().code == ErrorCode::bad_input);
        return false;
    }
    for (const auto& kernel : read->kernels) {
        KILN_FUZZ_PROMISE(is_word(kernel.info.name));
        KILN_FUZZ_PROMISE(is_word(kernel.descriptor_symbol));
    }
    return true;
}

}  // namespace

bool run(ByteView input) {
    if (!as_text(input).starts_with("\x7f"
                                    "ELF")) {
        return run_metadata(input);
    }
    const auto object = compile::read_code_object(input);
    if (!object) {
        KILN_FUZZ_PROMISE(object.error().code == ErrorCode::bad_input);
        return false;
    }
    KILN_FUZZ_PROMISE(lies_in(object->text, input));
    std::uint64_t image_end = 0;
    bool text_is_loaded = false;
    for (const auto& segment : object->segments) {
        KILN_FUZZ_PROMISE(lies_in(segment.contents, input));
        KILN_FUZZ_PROMISE(segment.contents.size() <= segment.memory_bytes);
        KILN_FUZZ_PROMISE(segment.address >= image_end);
        image_end = segment.address + segment.memory_bytes;
        text_is_loaded = text_is_loaded || (segment.executable && lies_in(object->text, segment.contents));
    }
    const bool is_cubin = compile::family_of(object->target) == compile::Family::cuda;
    KILN_FUZZ_PROMISE(is_word(object->target));
    KILN_FUZZ_PROMISE(text_is_loaded != is_cubin);  // a cubin gets its addresses from the driver
    for (const auto& kernel : object->kernels) {
        KILN_FUZZ_PROMISE(is_word(kernel.name));
        KILN_FUZZ_PROMISE(kernel.entry_address - object->text_address < object->text.size());
        KILN_FUZZ_PROMISE(compile::explicit_bytes(kernel.arguments) <= std::uint64_t{2} << 32);
        KILN_FUZZ_PROMISE(!is_cubin || compile::explicit_bytes(kernel.arguments) <= kernel.kernarg_bytes);
    }
    return true;
}

}  // namespace kiln::fuzz
