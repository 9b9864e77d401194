#include "runtime/compile/cubin_info.hpp"

#include <cstring>

#include <fmt/format.h>

namespace kiln::compile {
namespace {

constexpr std::size_t kHeadBytes = 4;
constexpr std::uint8_t kSized = 4;  // the format whose bytes follow

std::uint8_t byte_at(ByteView bytes, std::size_t at) {
    return std::to_integer<std::uint8_t>(bytes[at]);
}

}  // namespace

Result<std::vector<InfoAttribute>> read_info(ByteView section) {
    const auto bad = [&](std::size_t at) {
        return fail(
            ErrorCode::bad_input, Stage::load,
            fmt::format("code object: no attribute of .nv.info at byte {} of {}", at, section.size()));
    };
    std::vector<InfoAttribute> attributes;
    for (std::size_t at = 0; at < section.size();) {
        if (section.size() - at < kHeadBytes) {
            return bad(at);
        }
        const std::uint8_t format = byte_at(section, at);
        InfoAttribute attribute{
            .code = static_cast<InfoCode>(byte_at(section, at + 1)), .value = 0, .words = {}};
        std::memcpy(&attribute.value, section.data() + at + 2, sizeof attribute.value);
        std::size_t bytes = kHeadBytes;
        if (format == kSized) {
            bytes += attribute.value;
            if (bytes > section.size() - at) {
                return bad(at);
            }
            attribute.words.resize(attribute.value / sizeof(std::uint32_t));
            if (!attribute.words.empty()) {
                std::memcpy(attribute.words.data(), section.data() + at + kHeadBytes,
                            attribute.words.size() * sizeof(std::uint32_t));
            }
        } else if (format < 1 || format > 3) {
            return bad(at);
        }
        attributes.push_back(std::move(attribute));
        at += bytes;
    }
    return attributes;
}

}  // namespace kiln::compile
