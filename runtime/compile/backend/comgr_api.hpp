// The entry points of libamd_comgr that the disassembler needs, with the signatures of amd_comgr/amd_comgr.h.
#pragma once

#include <cstdint>

namespace kiln::compile::backend {

struct ComgrApi {
    struct Handle {  // amd_comgr_disassembly_info_t, passed by value
        std::uint64_t value = 0;
    };

    int (*amd_comgr_create_disassembly_info)(
        const char* isa, std::uint64_t (*read)(std::uint64_t, char*, std::uint64_t, void*),
        void (*print)(const char*, void*), void (*annotate)(std::uint64_t, void*), Handle*) = nullptr;
    int (*amd_comgr_destroy_disassembly_info)(Handle) = nullptr;
    int (*amd_comgr_disassemble_instruction)(Handle, std::uint64_t address, void* user_data,
                                             std::uint64_t* size) = nullptr;

    static constexpr int kSuccess = 0;  // AMD_COMGR_STATUS_SUCCESS
};

}  // namespace kiln::compile::backend
