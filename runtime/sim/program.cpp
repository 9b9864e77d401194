#include "runtime/sim/program.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/digest.hpp"
#include "runtime/compile/listing.hpp"
#include "runtime/sim/decode.hpp"

namespace kiln::sim {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kMaxImage = std::size_t{1} << 30;

struct FreeAligned {
    void operator()(std::byte* pointer) const { ::operator delete (pointer, std::align_val_t{kPage}); }
};

Error load_error(std::string message) {
    return {ErrorCode::load_failed, Stage::load, std::move(message)};
}

class LoadedProgram final : public Program {
  public:
    Result<void> load(ByteView elf, std::string_view listing_text);

    const Kernel* find(std::string_view name) const override {
        const auto found = kernels_.find(name);
        return found == kernels_.end() ? nullptr : &found->second;
    }
    ByteView image() const override { return {image_.get(), image_bytes_}; }

  private:
    Result<void> make_image(const compile::CodeObject& object);
    Result<void> add_kernel(const compile::CodeObject& object, const compile::KernelInfo& info);

    Code code_;
    std::unique_ptr<std::byte, FreeAligned> image_;
    std::size_t image_bytes_ = 0;
    std::uint64_t image_address_ = 0;  // the virtual address of its first byte
    std::map<std::string, Kernel, std::less<>> kernels_;
};

Result<void> LoadedProgram::load(ByteView elf, std::string_view listing_text) {
    auto object = compile::read_code_object(elf);
    if (!object) {
        return tl::unexpected(load_error(std::move(object.error().message)));
    }
    code_.listing = listing_text;
    auto listing = compile::parse_listing(code_.listing);
    if (!listing) {
        return tl::unexpected(load_error(std::move(listing.error().message)));
    }
    const Digest digest = sha256(object->text);
    if (listing->text_digest != digest || listing->text_bytes != object->text.size()) {
        return tl::unexpected(load_error(
            fmt::format("the listing was made from another code object: its .text has {} bytes and digest "
                        "{}, this one {} and {}",
                        listing->text_bytes, listing->text_digest.hex(), object->text.size(), digest.hex())));
    }
    if (!object->target.starts_with("gfx950")) {
        return tl::unexpected(
            load_error(fmt::format("the code object is for {}, not for gfx950", object->target)));
    }
    if (auto made = make_image(*object); !made) {
        return made;
    }
    code_.text_address =
        reinterpret_cast<std::uintptr_t>(image_.get()) + (object->text_address - image_address_);
    decode_listing(code_, listing->lines, listing->text_bytes);
    for (const compile::KernelInfo& info : object->kernels) {
        if (auto added = add_kernel(*object, info); !added) {
            return added;
        }
    }
    return {};
}

Result<void> LoadedProgram::make_image(const compile::CodeObject& object) {
    std::uint64_t low = ~std::uint64_t{0}, high = 0;
    for (const compile::LoadSegment& segment : object.segments) {
        low = std::min(low, segment.address);
        high = std::max(high, segment.address + segment.memory_bytes);
    }
    low -= low % kPage;
    if (object.segments.empty() || high <= low || high - low > kMaxImage || object.text_address < low ||
        object.text_address + object.text.size() > high) {
        return tl::unexpected(
            load_error("the segments of the code object do not hold its .text in at most 1 GiB"));
    }
    image_address_ = low;
    image_bytes_ = static_cast<std::size_t>(high - low);
    image_.reset(static_cast<std::byte*>(::operator new (image_bytes_, std::align_val_t{kPage})));
    std::memset(image_.get(), 0, image_bytes_);
    for (const compile::LoadSegment& segment : object.segments) {
        const std::size_t bytes = std::min<std::uint64_t>(segment.contents.size(), segment.memory_bytes);
        std::memcpy(image_.get() + (segment.address - low), segment.contents.data(), bytes);
    }
    return {};
}

template <class T>
T read_at(const std::byte* base, std::size_t offset) {
    T value;
    std::memcpy(&value, base + offset, sizeof value);
    return value;
}

Result<void> LoadedProgram::add_kernel(const compile::CodeObject& object, const compile::KernelInfo& info) {
    constexpr std::size_t kDescriptorBytes = 64;
    const std::uint64_t at = info.descriptor_address - image_address_;
    if (info.descriptor_address < image_address_ || at > image_bytes_ ||
        image_bytes_ - at < kDescriptorBytes) {
        return tl::unexpected(
            load_error(fmt::format("kernel {}: its descriptor is outside of the image", info.name)));
    }
    const std::byte* d = image_.get() + at;
    Kernel kernel;
    kernel.name = info.name;
    kernel.max_threads = info.max_threads;
    kernel.arguments = info.arguments;
    kernel.object_address = reinterpret_cast<std::uintptr_t>(d);
    kernel.code = &code_;
    Descriptor& k = kernel.descriptor;
    k.lds_bytes = read_at<std::uint32_t>(d, 0);
    k.private_bytes = read_at<std::uint32_t>(d, 4);
    k.kernarg_bytes = read_at<std::uint32_t>(d, 8);
    k.entry_offset = read_at<std::int64_t>(d, 16);
    k.rsrc3 = read_at<std::uint32_t>(d, 44);
    k.rsrc1 = read_at<std::uint32_t>(d, 48);
    k.rsrc2 = read_at<std::uint32_t>(d, 52);
    k.properties = read_at<std::uint16_t>(d, 56);
    k.preload = read_at<std::uint16_t>(d, 58);
    // With preloaded arguments the hardware skips the 256 bytes of code that load them where it can not
    // preload.
    const std::uint64_t skipped = k.preload_dwords() != 0 ? 256 : 0;
    const std::uint64_t entry =
        info.descriptor_address + static_cast<std::uint64_t>(k.entry_offset) + skipped;
    const std::int32_t index = entry < object.text_address ? -1 : code_.index_of(entry - object.text_address);
    if (index < 0) {
        return tl::unexpected(load_error(fmt::format("kernel {}: no instruction at its entry", info.name)));
    }
    kernel.entry = static_cast<std::uint32_t>(index);
    kernels_.emplace(info.name, std::move(kernel));
    return {};
}

}  // namespace

Result<std::shared_ptr<const Program>> Program::load(ByteView code_object, std::string_view listing) {
    auto program = std::make_shared<LoadedProgram>();
    if (auto loaded = program->load(code_object, listing); !loaded) {
        return fail(loaded);
    }
    return std::shared_ptr<const Program>(std::move(program));
}

}  // namespace kiln::sim
