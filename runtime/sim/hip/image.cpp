#include "runtime/sim/hip/image.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace kiln::sim::hip {
namespace {

constexpr std::string_view kElfMagic(ELFMAG, SELFMAG);
constexpr std::string_view kBundleMagic = "__CLANG_OFFLOAD_BUNDLE__";

// Stops at the first byte that differs: there may be no more.
bool starts_with(ByteView bytes, std::string_view magic) {
    for (std::size_t i = 0; i < magic.size(); ++i) {
        if (i >= bytes.size() || static_cast<char>(bytes[i]) != magic[i]) {
            return false;
        }
    }
    return true;
}

// A part of `bytes`; an empty view when it is not all there.
ByteView part(ByteView bytes, std::uint64_t offset, std::uint64_t size) {
    const bool there = offset <= bytes.size() && size <= bytes.size() - offset;
    return there ? bytes.subspan(offset, size) : ByteView();
}

template <class T>
bool read(ByteView bytes, std::uint64_t offset, T& value) {
    const ByteView source = part(bytes, offset, sizeof value);
    if (source.empty()) {
        return false;
    }
    std::memcpy(&value, source.data(), sizeof value);
    return true;
}

// The bytes of the ELF file at the start of `image`, or none when its headers make no sense.
ByteView elf_file(ByteView image) {
    Elf64_Ehdr header;
    if (!starts_with(image, kElfMagic) || !read(image, 0, header) || header.e_ident[EI_CLASS] != ELFCLASS64) {
        return {};
    }
    std::uint64_t end = sizeof header;
    bool sound = true;
    const auto extend = [&](std::uint64_t offset, std::uint64_t size) {
        sound = sound && offset <= image.size() && size <= image.size() - offset;
        end = sound ? std::max(end, offset + size) : end;
        return sound;
    };
    extend(header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr));
    extend(header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
    Elf64_Phdr segment;
    for (std::uint64_t i = 0; sound && i < header.e_phnum; ++i) {
        sound = read(image, header.e_phoff + i * sizeof segment, segment) &&
                extend(segment.p_offset, segment.p_filesz);
    }
    Elf64_Shdr section;
    for (std::uint64_t i = 0; sound && i < header.e_shnum; ++i) {
        sound = read(image, header.e_shoff + i * sizeof section, section) &&
                (section.sh_type == SHT_NOBITS || extend(section.sh_offset, section.sh_size));
    }
    return sound ? image.first(end) : ByteView();
}

// Magic and a count, then per entry: offset and size in the bundle, the length of a name, and the name:
// "hipv4-amdgcn-amd-amdhsa--gfx950:xnack-".
FoundImage find_in_bundle(ByteView bundle) {
    std::uint64_t at = kBundleMagic.size();
    const auto take = [&](std::uint64_t& value) {
        const bool there = read(bundle, at, value);
        at += sizeof value;
        return there;
    };
    std::uint64_t count = 0;
    bool sound = take(count);
    for (std::uint64_t i = 0; sound && i < count; ++i) {
        std::uint64_t offset = 0;
        std::uint64_t size = 0;
        std::uint64_t name_bytes = 0;
        sound = take(offset) && take(size) && take(name_bytes);
        const std::string_view name = as_text(part(bundle, at, sound ? name_bytes : 0));
        at += name.size();
        const auto dashes = name.find("--");
        if (name.starts_with("hip") && dashes != std::string_view::npos &&
            serves_device(name.substr(dashes + 2))) {
            const ByteView elf = elf_file(part(bundle, offset, size));
            return {elf.empty() ? hipErrorInvalidImage : hipSuccess, elf};
        }
    }
    return {sound ? hipErrorNoBinaryForGpu : hipErrorInvalidImage, {}};
}

}  // namespace

FoundImage find_image(ByteView image) {
    if (starts_with(image, kBundleMagic)) {
        return find_in_bundle(image);
    }
    const ByteView elf = elf_file(image);
    return {elf.empty() ? hipErrorInvalidImage : hipSuccess, elf};
}

bool serves_device(std::string_view target) {
    const auto cut = [](std::string_view& text) {
        const auto colon = text.find(':');
        const auto word = text.substr(0, colon);
        text = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
        return word;
    };
    std::string_view device = kDeviceTarget;
    if (cut(target) != cut(device)) {
        return false;
    }
    while (!target.empty()) {
        const auto wanted = cut(target);
        bool agrees = false;
        for (std::string_view rest = device; !rest.empty();) {
            const auto feature = cut(rest);
            agrees = agrees || feature == wanted;
        }
        if (!agrees) {
            return false;
        }
    }
    return true;
}

}  // namespace kiln::sim::hip
