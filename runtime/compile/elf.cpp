#include "runtime/compile/elf.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace kiln::compile {
namespace {

constexpr std::uint64_t kMostNoteBytes = 64u << 20;
constexpr std::uint64_t kMostDynamicEntries = 4096;
constexpr std::size_t kMostStringBytes = 4096;

template <class Record>
bool read_record(const ByteSource& source, std::uint64_t offset, Record& record) {
    return source.read(offset, std::as_writable_bytes(std::span<Record, 1>(&record, 1)));
}

// True when [offset, offset + bytes) lies in a file of `size` bytes; none of the sums can wrap.
bool lies_within(std::uint64_t size, std::uint64_t offset, std::uint64_t bytes) {
    return offset <= size && bytes <= size - offset;
}

template <class Record>
bool read_table(const ByteSource& source, std::uint64_t offset, std::uint64_t count,
                std::vector<Record>& table) {
    if (count == 0) {
        return true;
    }
    if (!lies_within(source.size(), offset,
                     count * sizeof(Record))) {  // count comes from 16 bits: no overflow
        return false;
    }
    table.resize(count);
    return source.read(offset, std::as_writable_bytes(std::span<Record>(table)));
}

auto bad(std::string message) {
    return fail(ErrorCode::bad_input, Stage::load, std::move(message));
}

std::uint64_t padded(std::uint64_t bytes, std::uint64_t alignment) {
    return (bytes + alignment - 1) / alignment * alignment;
}

}  // namespace

bool MemorySource::read(std::uint64_t offset, std::span<std::byte> out) const {
    const auto bytes = view(offset, out.size());
    if (!bytes) {
        return false;
    }
    if (!out.empty()) {
        std::memcpy(out.data(), bytes->data(), out.size());
    }
    return true;
}

std::optional<ByteView> MemorySource::view(std::uint64_t offset, std::uint64_t bytes) const {
    if (!lies_within(bytes_.size(), offset, bytes)) {
        return std::nullopt;
    }
    return bytes_.subspan(offset, bytes);
}

bool FileSource::read(std::uint64_t offset, std::span<std::byte> out) const {
    if (!lies_within(size_, offset, out.size())) {
        return false;
    }
    std::size_t used = 0;
    while (used < out.size()) {
        const ssize_t got =
            ::pread(fd_, out.data() + used, out.size() - used, static_cast<off_t>(offset + used));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return false;
        }
        used += static_cast<std::size_t>(got);
    }
    return true;
}

Result<ElfFile> ElfFile::read(const ByteSource& source) {
    ElfFile file(source);
    Elf64_Ehdr& header = file.header_;
    if (!read_record(source, 0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
        return bad(fmt::format("expected an ELF file, found {} bytes without its mark", source.size()));
    }
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB) {
        return bad(
            fmt::format("expected a 64-bit little-endian ELF file, found class {} and data encoding {}",
                        header.e_ident[EI_CLASS], header.e_ident[EI_DATA]));
    }
    if ((header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr)) ||
        !read_table(source, header.e_phoff, header.e_phnum, file.segments_)) {
        return bad(
            fmt::format("ELF file of {} bytes does not hold the {} program headers that it claims at {}",
                        source.size(), header.e_phnum, header.e_phoff));
    }
    if ((header.e_shnum != 0 && header.e_shentsize != sizeof(Elf64_Shdr)) ||
        !read_table(source, header.e_shoff, header.e_shnum, file.sections_)) {
        return bad(
            fmt::format("ELF file of {} bytes does not hold the {} section headers that it claims at {}",
                        source.size(), header.e_shnum, header.e_shoff));
    }
    return file;
}

std::optional<Bytes> ElfFile::note_within(std::uint64_t at, std::uint64_t bytes, std::uint64_t alignment,
                                          std::string_view owner, std::uint32_t type) const {
    if (bytes > kMostNoteBytes || !lies_within(source_->size(), at, bytes)) {
        return std::nullopt;
    }
    const std::uint64_t step = alignment == 8 ? 8 : 4;
    const std::uint64_t end = at + bytes;
    Elf64_Nhdr head{};
    while (end - at >= sizeof head && read_record(*source_, at, head)) {
        const std::uint64_t name_at = at + sizeof head;
        const std::uint64_t contents_at = name_at + padded(head.n_namesz, step);
        if (contents_at > end || head.n_descsz > end - contents_at) {
            break;
        }
        std::string name(head.n_namesz, '\0');
        Bytes contents(head.n_descsz);
        if (head.n_type == type && head.n_namesz == owner.size() + 1 &&
            source_->read(name_at, std::as_writable_bytes(std::span<char>(name))) && name.c_str() == owner &&
            source_->read(contents_at, contents)) {
            return contents;
        }
        at = contents_at + padded(head.n_descsz, step);
        if (at > end) {
            break;
        }
    }
    return std::nullopt;
}

std::optional<Bytes> ElfFile::note(std::string_view owner, std::uint32_t type) const {
    for (const auto& segment : segments_) {
        if (segment.p_type != PT_NOTE) {
            continue;
        }
        if (auto found = note_within(segment.p_offset, segment.p_filesz, segment.p_align, owner, type)) {
            return found;
        }
    }
    return std::nullopt;
}

std::optional<Bytes> ElfFile::section_note(std::string_view owner, std::uint32_t type) const {
    for (const auto& section : sections_) {
        if (section.sh_type != SHT_NOTE) {
            continue;
        }
        if (auto found = note_within(section.sh_offset, section.sh_size, section.sh_addralign, owner, type)) {
            return found;
        }
    }
    return std::nullopt;
}

std::string ElfFile::section_name(const Elf64_Shdr& section) const {
    if (header_.e_shstrndx >= sections_.size()) {
        return {};
    }
    const auto& table = sections_[header_.e_shstrndx];
    if (section.sh_name >= table.sh_size) {
        return {};
    }
    return string_at(table.sh_offset + section.sh_name).value_or(std::string());
}

Result<std::vector<Elf64_Dyn>> ElfFile::dynamic_entries() const {
    std::vector<Elf64_Dyn> entries;
    for (const auto& segment : segments_) {
        if (segment.p_type != PT_DYNAMIC) {
            continue;
        }
        const std::uint64_t count = segment.p_filesz / sizeof(Elf64_Dyn);
        if (count > kMostDynamicEntries || !read_table(*source_, segment.p_offset, count, entries)) {
            return bad(
                fmt::format("ELF file of {} bytes does not hold the {} dynamic entries that it claims at {}",
                            source_->size(), count, segment.p_offset));
        }
        for (std::size_t i = 0; i < entries.size(); ++i) {
            if (entries[i].d_tag == DT_NULL) {
                entries.resize(i);
                break;
            }
        }
        return entries;
    }
    return entries;
}

Result<std::vector<std::string>> ElfFile::needed() const {
    auto entries = dynamic_entries();
    if (!entries) {
        return fail(entries);
    }
    std::optional<std::uint64_t> strings;
    for (const auto& entry : *entries) {
        if (entry.d_tag == DT_STRTAB) {
            strings = file_offset(entry.d_un.d_ptr);
        }
    }
    std::vector<std::string> names;
    for (const auto& entry : *entries) {
        if (entry.d_tag != DT_NEEDED) {
            continue;
        }
        const auto name = strings && lies_within(source_->size(), *strings, entry.d_un.d_val)
                              ? string_at(*strings + entry.d_un.d_val)
                              : std::nullopt;
        if (!name) {
            return bad("ELF file needs a library whose name lies outside of the file");
        }
        names.push_back(*name);
    }
    return names;
}

std::optional<std::uint64_t> ElfFile::file_offset(std::uint64_t address) const {
    for (const auto& segment : segments_) {
        if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
            address - segment.p_vaddr < segment.p_filesz) {
            const std::uint64_t within = address - segment.p_vaddr;
            if (lies_within(source_->size(), segment.p_offset, within)) {
                return segment.p_offset + within;
            }
        }
    }
    return std::nullopt;
}

std::optional<std::string> ElfFile::string_at(std::uint64_t offset) const {
    if (offset >= source_->size()) {
        return std::nullopt;
    }
    std::string text(std::min<std::uint64_t>(kMostStringBytes, source_->size() - offset), '\0');
    if (!source_->read(offset, std::as_writable_bytes(std::span<char>(text)))) {
        return std::nullopt;
    }
    const auto end = text.find('\0');
    if (end == std::string::npos) {
        return std::nullopt;
    }
    text.resize(end);
    return text;
}

}  // namespace kiln::compile
