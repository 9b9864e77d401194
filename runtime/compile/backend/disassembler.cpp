#include "runtime/compile/backend/disassembler.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <vector>

#include <fmt/format.h>

#include "runtime/compile/code_object.hpp"
#include "runtime/compile/disassembly.hpp"

namespace kiln::compile::backend {
namespace {

constexpr std::uint64_t kWordBytes = 4;
constexpr std::uint64_t kMostInstructionBytes = 16;

// What the callbacks of one instruction work on. Addresses count from the start of .text.
struct Cursor {
    ByteView text;
    std::string printed;
    bool out_of_memory = false;  // told in this way, because no exception may pass comgr's frames
};

std::uint64_t read_text(std::uint64_t from, char* to, std::uint64_t bytes, void* cursor) {
    const ByteView text = static_cast<Cursor*>(cursor)->text;
    if (from >= text.size()) {
        return 0;
    }
    const std::uint64_t there = std::min<std::uint64_t>(bytes, text.size() - from);
    std::memcpy(to, text.data() + from, there);
    return there;
}

void take_instruction(const char* instruction, void* cursor) {
    Cursor& its = *static_cast<Cursor*>(cursor);
    try {
        its.printed += instruction;
    } catch (const std::exception&) {
        its.out_of_memory = true;
    }
}

// Branch targets are left as the numbers that the encoding holds.
void ignore_address(std::uint64_t, void*) {}

// comgr's, destroyed whatever happens.
class DisassemblyInfo {
  public:
    DisassemblyInfo(const ComgrApi& api, ComgrApi::Handle handle) : api_(api), handle_(handle) {}
    ~DisassemblyInfo() { api_.amd_comgr_destroy_disassembly_info(handle_); }
    DisassemblyInfo(const DisassemblyInfo&) = delete;
    DisassemblyInfo& operator=(const DisassemblyInfo&) = delete;

  private:
    const ComgrApi& api_;
    const ComgrApi::Handle handle_;
};

// Runs of white space become single spaces, those at the ends vanish.
std::string tidied(const std::string& printed) {
    std::string text;
    for (const char c : printed) {
        if (c != ' ' && c != '\t' && c != '\n') {
            text += c;
        } else if (!text.empty() && text.back() != ' ') {
            text += ' ';
        }
    }
    if (!text.empty() && text.back() == ' ') {
        text.pop_back();
    }
    return text;
}

}  // namespace

Result<Disassembler> Disassembler::open(const std::filesystem::path& path) {
    auto library = Library::open(path);
    if (!library) {
        return fail(library);
    }
    Disassembler disassembler(*library);
    Result<void> found;
    const auto find = [&](const char* name, auto*& function) {
        if (found) {
            found = disassembler.library_.find(name, function);
        }
    };
    find("amd_comgr_create_disassembly_info", disassembler.api_.amd_comgr_create_disassembly_info);
    find("amd_comgr_destroy_disassembly_info", disassembler.api_.amd_comgr_destroy_disassembly_info);
    find("amd_comgr_disassemble_instruction", disassembler.api_.amd_comgr_disassemble_instruction);
    if (!found) {
        return fail(found);
    }
    return disassembler;
}

Result<std::string> Disassembler::code_lines(ByteView code_object) const {
    auto object = read_code_object(code_object);
    if (!object) {
        return fail(object);
    }
    const std::string isa = "amdgcn-amd-amdhsa--" + object->target;
    ComgrApi::Handle handle;
    if (const int status = api_.amd_comgr_create_disassembly_info(isa.c_str(), read_text, take_instruction,
                                                                  ignore_address, &handle);
        status != ComgrApi::kSuccess) {
        return fail(ErrorCode::environment, Stage::compile,
                    fmt::format("the disassembler does not know {} (status {})", isa, status));
    }
    const DisassemblyInfo owner(api_, handle);
    Cursor cursor{.text = object->text, .printed = {}};
    std::vector<Instruction> instructions;
    for (std::uint64_t at = 0; at < object->text.size();) {
        cursor.printed.clear();
        std::uint64_t bytes = 0;
        const int status = api_.amd_comgr_disassemble_instruction(handle, at, &cursor, &bytes);
        if (cursor.out_of_memory) {
            throw std::bad_alloc();
        }
        std::string text = tidied(cursor.printed);
        const bool known = status == ComgrApi::kSuccess && !text.empty() && bytes % kWordBytes == 0 &&
                           bytes > 0 && bytes <= kMostInstructionBytes && bytes <= object->text.size() - at;
        if (!known) {
            text = ".word";
            bytes = kWordBytes;
        }
        instructions.push_back(
            {.num_words = static_cast<std::uint8_t>(bytes / kWordBytes), .text = std::move(text)});
        at += bytes;
    }
    return format_code_lines(object->text, instructions);
}

}  // namespace kiln::compile::backend
