// What kiln reads of ELF files: 64-bit, little-endian, as code objects and the host's own libraries are.
//
// Every read is checked against the size of the file, so no byte pattern makes this read out of bounds; what
// a header claims is believed only as far as the bytes are there.
#pragma once

#include <elf.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "base/error.hpp"

namespace kiln::compile {

// Where the bytes of a file come from.
class ByteSource {
  public:
    virtual ~ByteSource() = default;
    [[nodiscard]] virtual std::uint64_t size() const = 0;
    // Fills `out` from `offset` on; false when the bytes are not there or can not be read.
    [[nodiscard]] virtual bool read(std::uint64_t offset, std::span<std::byte> out) const = 0;
};

// Does not own the bytes.
class MemorySource final : public ByteSource {
  public:
    explicit MemorySource(ByteView bytes) : bytes_(bytes) {}
    [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
    [[nodiscard]] bool read(std::uint64_t offset, std::span<std::byte> out) const override;
    // The bytes themselves, without a copy; nothing when they are not all there.
    [[nodiscard]] std::optional<ByteView> view(std::uint64_t offset, std::uint64_t bytes) const;

  private:
    ByteView bytes_;
};

// Does not own the descriptor. Reads with pread: a file that shrinks meanwhile gives false, never SIGBUS.
class FileSource final : public ByteSource {
  public:
    FileSource(int fd, std::uint64_t size) : fd_(fd), size_(size) {}
    [[nodiscard]] std::uint64_t size() const override { return size_; }
    [[nodiscard]] bool read(std::uint64_t offset, std::span<std::byte> out) const override;

  private:
    int fd_;
    std::uint64_t size_;
};

// The headers of one file. Keeps a reference to its source, which must outlive it.
class ElfFile {
  public:
    // bad_input when it is no 64-bit little-endian ELF file or its header tables are not all there.
    [[nodiscard]] static Result<ElfFile> read(const ByteSource& source);

    [[nodiscard]] const Elf64_Ehdr& header() const { return header_; }
    [[nodiscard]] const std::vector<Elf64_Phdr>& segments() const { return segments_; }
    [[nodiscard]] const std::vector<Elf64_Shdr>& sections() const { return sections_; }

    // The descriptor bytes of the first note of that owner and type in any PT_NOTE segment.
    [[nodiscard]] std::optional<Bytes> note(std::string_view owner, std::uint32_t type) const;
    // The same, in any section of notes: a cubin has no such segment.
    [[nodiscard]] std::optional<Bytes> section_note(std::string_view owner, std::uint32_t type) const;
    // Empty where the table of names is not where the header says, or has no such name.
    [[nodiscard]] std::string section_name(const Elf64_Shdr& section) const;
    // The entries of PT_DYNAMIC up to DT_NULL; none when there is no such segment.
    [[nodiscard]] Result<std::vector<Elf64_Dyn>> dynamic_entries() const;
    // The names that DT_NEEDED lists.
    [[nodiscard]] Result<std::vector<std::string>> needed() const;
    // File offset of a virtual address that some PT_LOAD segment takes from the file.
    [[nodiscard]] std::optional<std::uint64_t> file_offset(std::uint64_t address) const;
    // The zero-terminated string at a file offset, of at most 4096 bytes.
    [[nodiscard]] std::optional<std::string> string_at(std::uint64_t offset) const;

  private:
    explicit ElfFile(const ByteSource& source) : source_(&source) {}
    [[nodiscard]] std::optional<Bytes> note_within(std::uint64_t at, std::uint64_t bytes,
                                                   std::uint64_t alignment, std::string_view owner,
                                                   std::uint32_t type) const;

    const ByteSource* source_;
    Elf64_Ehdr header_{};
    std::vector<Elf64_Phdr> segments_;
    std::vector<Elf64_Shdr> sections_;
};

}  // namespace kiln::compile
