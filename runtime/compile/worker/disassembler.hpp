// The disassembler of libamd_comgr. The signatures are those of amd_comgr/amd_comgr.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "runtime/compile/worker/library.hpp"

namespace kiln::compile::worker {

class Disassembler {
  public:
    [[nodiscard]] static Result<Disassembler> open(const std::filesystem::path& library);

    // The lines of code (disassembly.hpp) of a whole code object. bad_input when it is none; environment when
    // comgr does not know its target.
    [[nodiscard]] Result<std::string> code_lines(ByteView code_object) const;

  private:
    struct Handle {  // amd_comgr_disassembly_info_t, passed by value
        std::uint64_t value = 0;
    };

    explicit Disassembler(Library library) : library_(std::move(library)) {}

    Library library_;
    int (*create_)(const char* isa, std::uint64_t (*read)(std::uint64_t, char*, std::uint64_t, void*),
                   void (*print)(const char*, void*), void (*annotate)(std::uint64_t, void*),
                   Handle*) = nullptr;
    int (*destroy_)(Handle) = nullptr;
    int (*disassemble_)(Handle, std::uint64_t address, void* user_data, std::uint64_t* size) = nullptr;
};

}  // namespace kiln::compile::worker
