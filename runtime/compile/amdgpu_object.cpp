#include "runtime/compile/amdgpu_object.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "runtime/compile/code_object_metadata.hpp"

namespace kiln::compile {
namespace {

constexpr std::uint8_t kOsAbiAmdHsa = 64;       // ELFOSABI_AMDGPU_HSA
constexpr std::uint32_t kNoteMetadata = 32;     // NT_AMDGPU_METADATA
constexpr std::uint64_t kDescriptorBytes = 64;  // llvm::amdhsa::kernel_descriptor_t
constexpr std::uint64_t kEntryOffsetAt = 16;    // its kernel_code_entry_byte_offset, a signed 64-bit number
constexpr std::uint64_t kMostImageBytes = 1u << 30;  // of all segments together, as loaded

auto bad(std::string message) {
    return fail(ErrorCode::bad_input, Stage::load, "code object: " + std::move(message));
}

Result<void> check_header(const Elf64_Ehdr& header) {
    if (header.e_machine != kMachineAmdGpu || header.e_ident[EI_OSABI] != kOsAbiAmdHsa ||
        header.e_type != ET_DYN) {
        return bad(fmt::format(
            "expected a shared object for AMDGPU under the HSA ABI (machine {}, ABI {}, type {}), "
            "found machine {}, ABI {}, type {}",
            kMachineAmdGpu, kOsAbiAmdHsa, ET_DYN, header.e_machine, header.e_ident[EI_OSABI], header.e_type));
    }
    return {};
}

Result<std::vector<LoadSegment>> load_segments(const ElfFile& file, const MemorySource& source) {
    std::vector<LoadSegment> segments;
    std::uint64_t image_end = 0;
    for (const auto& header : file.segments()) {
        if (header.p_type != PT_LOAD) {
            continue;
        }
        const auto contents = source.view(header.p_offset, header.p_filesz);
        if (!contents || header.p_memsz < header.p_filesz) {
            return bad(
                fmt::format("segment at address {:#x} claims {} bytes at offset {} of a file of {} bytes",
                            header.p_vaddr, header.p_filesz, header.p_offset, source.size()));
        }
        if (header.p_vaddr < image_end || header.p_vaddr > kMostImageBytes ||
            header.p_memsz > kMostImageBytes - header.p_vaddr) {
            return bad(fmt::format(
                "segment at address {:#x} of {} bytes overlaps the one before it, or ends beyond {} "
                "bytes",
                header.p_vaddr, header.p_memsz, kMostImageBytes));
        }
        image_end = header.p_vaddr + header.p_memsz;
        segments.push_back({.address = header.p_vaddr,
                            .memory_bytes = header.p_memsz,
                            .contents = *contents,
                            .executable = (header.p_flags & PF_X) != 0});
    }
    return segments;
}

Result<void> refuse_relocations(const ElfFile& file) {
    auto entries = file.dynamic_entries();
    if (!entries) {
        return fail(entries);
    }
    for (const auto& entry : *entries) {
        if ((entry.d_tag == DT_RELASZ || entry.d_tag == DT_RELSZ || entry.d_tag == DT_PLTRELSZ ||
             entry.d_tag == DT_RELRSZ) &&
            entry.d_un.d_val != 0) {
            return bad(
                fmt::format("expected no dynamic relocations, found {} bytes of them", entry.d_un.d_val));
        }
    }
    return {};
}

Result<void> find_text(const ElfFile& file, CodeObject& object) {
    for (const auto& section : file.sections()) {
        if (section.sh_type != SHT_PROGBITS || file.section_name(section) != ".text") {
            continue;
        }
        // The bytes that are disassembled must be the bytes that are loaded, so they are taken from the
        // segment.
        for (const auto& segment : object.segments) {
            const std::uint64_t within = section.sh_addr - segment.address;
            if (segment.executable && section.sh_addr >= segment.address &&
                within <= segment.contents.size() && section.sh_size <= segment.contents.size() - within) {
                object.text_address = section.sh_addr;
                object.text = segment.contents.subspan(within, section.sh_size);
                return {};
            }
        }
        return bad(fmt::format(".text at address {:#x} of {} bytes lies in no executable segment",
                               section.sh_addr, section.sh_size));
    }
    return bad("expected a section .text, found none");
}

// The address that a symbol of .dynsym has, or nothing.
std::optional<std::uint64_t> find_symbol(const ElfFile& file, const MemorySource& source,
                                         std::string_view name) {
    for (const auto& section : file.sections()) {
        if (section.sh_type != SHT_DYNSYM || section.sh_link >= file.sections().size()) {
            continue;
        }
        const auto& strings = file.sections()[section.sh_link];
        const auto table = source.view(section.sh_offset, section.sh_size);
        for (std::size_t at = 0; table && table->size() - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
            Elf64_Sym symbol{};
            std::memcpy(&symbol, table->data() + at, sizeof symbol);
            if (symbol.st_shndx == SHN_UNDEF || symbol.st_name >= strings.sh_size) {
                continue;
            }
            // Compared in place: a table of many symbols with long names must not be copied string by string.
            const auto candidate = source.view(strings.sh_offset + symbol.st_name, name.size() + 1);
            if (candidate && as_text(*candidate).substr(0, name.size()) == name &&
                as_text(*candidate)[name.size()] == '\0') {
                return symbol.st_value;
            }
        }
    }
    return std::nullopt;
}

Result<void> locate_kernel(const ElfFile& file, const MemorySource& source, const CodeObject& object,
                           std::string_view descriptor_symbol, KernelInfo& kernel) {
    const auto address = find_symbol(file, source, descriptor_symbol);
    if (!address) {
        return bad(fmt::format("kernel {}: there is no symbol {}", kernel.name, descriptor_symbol));
    }
    for (const auto& segment : object.segments) {
        const std::uint64_t within = *address - segment.address;
        if (*address < segment.address || within > segment.contents.size() ||
            segment.contents.size() - within < kDescriptorBytes) {
            continue;
        }
        std::uint64_t entry_offset = 0;  // two's complement: the sum below wraps as a signed one would
        std::memcpy(&entry_offset, segment.contents.data() + within + kEntryOffsetAt, sizeof entry_offset);
        kernel.descriptor_address = *address;
        kernel.entry_address = *address + entry_offset;
        const std::uint64_t in_text = kernel.entry_address - object.text_address;
        if (kernel.entry_address < object.text_address || in_text >= object.text.size() || in_text % 4 != 0) {
            return bad(fmt::format("kernel {}: entry {:#x} is no instruction of .text ({:#x}, {} bytes)",
                                   kernel.name, kernel.entry_address, object.text_address,
                                   object.text.size()));
        }
        return {};
    }
    return bad(fmt::format("kernel {}: no segment holds its descriptor of {} bytes at {:#x}", kernel.name,
                           kDescriptorBytes, *address));
}

}  // namespace

Result<CodeObject> read_amdgpu_object(const ElfFile& file, const MemorySource& source) {
    if (auto checked = check_header(file.header()); !checked) {
        return fail(checked);
    }
    CodeObject object;
    auto segments = load_segments(file, source);
    if (!segments) {
        return fail(segments);
    }
    object.segments = std::move(*segments);
    if (auto checked = refuse_relocations(file); !checked) {
        return fail(checked);
    }
    if (auto found = find_text(file, object); !found) {
        return fail(found);
    }
    const auto note = file.note("AMDGPU", kNoteMetadata);
    if (!note) {
        return bad(fmt::format("expected a note of owner AMDGPU and type {}, found none", kNoteMetadata));
    }
    auto metadata = read_metadata(*note);
    if (!metadata) {
        return fail(metadata);
    }
    object.target = std::move(metadata->target);
    for (auto& record : metadata->kernels) {
        if (auto located = locate_kernel(file, source, object, record.descriptor_symbol, record.info);
            !located) {
            return fail(located);
        }
        object.kernels.push_back(std::move(record.info));
    }
    return object;
}

}  // namespace kiln::compile
