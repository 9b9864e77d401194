// Cubins: one that is kept (written by fuzz_seeds), so that their reader is tested on every machine, and what
// this machine's NVRTC makes.

#include "runtime/compile/cubin.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include "base/file.hpp"
#include "runtime/compile/cubin_info.hpp"
#include "runtime/compile/target_family.hpp"
#include "support.hpp"

using kiln::Bytes;
using kiln::ByteView;
using kiln::ErrorCode;
using namespace kiln::compile;

namespace {

// Two kernels: add(float*, const float*, int) and clear(float*).
const Bytes& kept() {
    static const Bytes bytes = [] {
        auto read = kiln::read_file(KILN_CUBIN, kiln::Stage::compile);
        REQUIRE_MESSAGE(read, (read ? "" : read.error().message));
        return *std::move(read);
    }();
    return bytes;
}

CodeObject read_well(ByteView bytes) {
    auto object = read_code_object(bytes);
    REQUIRE_MESSAGE(object, (object ? "" : object.error().message));
    return *std::move(object);
}

const KernelInfo& kernel_of(const CodeObject& object, std::string_view name) {
    const auto found = std::find_if(object.kernels.begin(), object.kernels.end(),
                                    [&](const KernelInfo& kernel) { return kernel.name == name; });
    REQUIRE(found != object.kernels.end());
    return *found;
}

std::size_t find(const Bytes& bytes, std::string_view what, std::size_t from = 0) {
    const auto at = kiln::as_text(bytes).find(what, from);
    REQUIRE(at != std::string_view::npos);
    return at;
}

void check_arguments(const KernelInfo& kernel,
                     const std::vector<std::pair<std::uint32_t, std::uint32_t>>& expected) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
    for (const KernelArgument& argument : kernel.arguments) {
        CHECK(argument.name.empty());  // a cubin holds none
        CHECK(!argument.is_hidden());
        found.emplace_back(argument.offset, argument.size);
    }
    CHECK(found == expected);
}

CompileResult compile_here(const std::string& source) {
    auto request = test::cuda_request();
    request.source = source;
    auto compiled = test::make_compiler()->compile(request);
    REQUIRE_MESSAGE(compiled, (compiled ? "" : compiled.error().message));
    return *std::move(compiled);
}

}  // namespace

TEST_CASE("CubinThatIsKeptIsReadWhole") {
    const CodeObject object = read_well(kept());
    CHECK(object.target == "sm_90a");
    CHECK(family_of(object.target) == Family::cuda);
    CHECK(object.segments.empty());
    REQUIRE(object.kernels.size() == 2);
    const KernelInfo& add = kernel_of(object, "add");
    check_arguments(add, {{0, 8}, {8, 8}, {16, 4}});
    CHECK(add.kernarg_bytes == 20);
    CHECK(explicit_bytes(add.arguments) == 20);
    CHECK(add.vgprs > 0);
    CHECK(add.lds_bytes == 0);
    CHECK(add.scratch_bytes == 0);
    CHECK(add.max_threads == 1024);
    CHECK(add.wavefront == 32);
    CHECK(add.cluster == 1);
    const KernelInfo& clear = kernel_of(object, "clear");
    check_arguments(clear, {{0, 8}});
    CHECK(clear.kernarg_bytes == 8);
    CHECK(clear.entry_address != add.entry_address);
    CHECK(std::max(clear.entry_address, add.entry_address) < object.text.size());
    CHECK(object.text.size() % 128 == 0);  // instructions of 16 bytes, sections of 128
}

TEST_CASE("CubinOfThisMachinesNvrtcSaysWhatItsSourceAsksFor") {
    if (!test::has_cuda()) {
        return;
    }
    const auto compiled = compile_here(
        "struct Args { const float* x; float* out; int n; long s; };\n"
        "extern \"C\" __global__ void __launch_bounds__(256) __cluster_dims__(4) many(\n"
        "    float* values, int count, Args args, unsigned char index) {\n"
        "    __shared__ float first[64];\n"
        "    extern __shared__ float rest[];\n"
        "    volatile float stack[200];\n"
        "    first[threadIdx.x % 64] = values[threadIdx.x];\n"
        "    rest[threadIdx.x] = args.x[index];\n"
        "    __syncthreads();\n"
        "    for (int i = 0; i < 200; ++i) stack[i] = first[i % 64] + rest[i];\n"
        "    args.out[threadIdx.x] = stack[count];\n"
        "}\n"
        "template <int N> struct Large { char bytes[N]; };\n"
        "extern \"C\" __global__ void large(Large<5000> first, int n, char* out) { *out = first.bytes[n]; }\n"
        "extern \"C\" __global__ void none() {}\n"
        "__device__ __noinline__ int twice(int n) { return n < 2 ? n : twice(n - 1) + twice(n - 2); }\n"
        "__constant__ int table[3] = {1, 2, 3};\n"
        "extern \"C\" __global__ void calls(int* out) { *out = twice(*out) + table[*out]; }\n");
    const CodeObject object = read_well(compiled.code_object);
    CHECK(object.target == "sm_90a");
    REQUIRE(object.kernels.size() == 4);  // a function that is no entry is none
    const KernelInfo& many = kernel_of(object, "many");
    check_arguments(many, {{0, 8}, {8, 4}, {16, 32}, {48, 1}});
    CHECK(many.kernarg_bytes == 49);
    CHECK(many.max_threads == 256);
    CHECK(many.cluster == 4);
    CHECK(many.lds_bytes == 256);  // of the kernel's own: neither the dynamic part nor the system's kilobyte
    CHECK(many.scratch_bytes == 800);
    const KernelInfo& large = kernel_of(object, "large");
    check_arguments(large, {{0, 5000}, {5000, 4}, {5008, 8}});
    CHECK(large.max_threads == 1024);
    CHECK(large.lds_bytes == 0);
    check_arguments(kernel_of(object, "none"), {});
    CHECK(kernel_of(object, "none").kernarg_bytes == 0);
    CHECK(kernel_of(object, "calls").scratch_bytes == 0);  // recursion: how deep is not known
}

TEST_CASE("CubinCutAnywhereIsRefused") {
    for (std::size_t bytes = 0; bytes < kept().size(); ++bytes) {
        // The program headers stand at the end.
        CHECK(!read_code_object(ByteView(kept()).first(bytes)));
    }
}

TEST_CASE("CubinWithFlippedBytesIsNeverReadOutOfBounds") {
    const auto seed = std::random_device()();
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::size_t sum = 0;
    std::size_t refused = 0;
    for (int i = 0; i < 4000; ++i) {
        Bytes bytes = kept();
        const std::size_t flips = 1 + random() % 4;
        for (std::size_t flip = 0; flip < flips; ++flip) {
            bytes[random() % bytes.size()] ^= static_cast<std::byte>(1 + random() % 255);
        }
        const auto object = read_code_object(bytes);
        if (object) {
            for (const auto byte : object->text) {
                sum += std::to_integer<std::size_t>(byte);
            }
            for (const KernelInfo& kernel : object->kernels) {
                CHECK(explicit_bytes(kernel.arguments) <= kernel.kernarg_bytes);
            }
        } else {
            CHECK(object.error().code == ErrorCode::bad_input);
            CHECK(!object.error().message.empty());
            ++refused;
        }
    }
    CHECK(sum > 0);
    CHECK(refused > 100);
}

TEST_CASE("CubinWithoutTheNoteOfItsToolIsKnownByTheFlagsOfTheOlderAbi") {
    Bytes bytes = kept();
    bytes[find(bytes, "-arch sm_90a")] = std::byte{'#'};
    CHECK_MESSAGE(!read_code_object(bytes), "expected no target where neither note nor flags have one");
    bytes[EI_ABIVERSION] = std::byte{7};
    const std::uint32_t flags = 0x5a0d5a;  // accelerated, 64-bit addresses, processor 90
    std::memcpy(bytes.data() + offsetof(Elf64_Ehdr, e_flags), &flags, sizeof flags);
    CHECK(read_well(bytes).target == "sm_90a");
    bytes[offsetof(Elf64_Ehdr, e_flags) + 1] = std::byte{0x05};
    CHECK(read_well(bytes).target == "sm_90");
}

TEST_CASE("CubinThatContradictsItselfIsRefused") {
    const auto refused = [](const Bytes& bytes, std::string_view message) {
        const auto object = read_code_object(bytes);
        REQUIRE(!object);
        CHECK(object.error().code == ErrorCode::bad_input);
        CHECK_MESSAGE(object.error().message.find(message) != std::string::npos, object.error().message);
    };
    // The bytes of all parameters, of either kernel: an attribute of format 3.
    for (const char bytes : {20, 8}) {
        Bytes changed = kept();
        const std::string attribute{3, 0x19, bytes, 0};
        changed[find(changed, attribute) + 2] = std::byte{4};
        refused(changed, "is not the next of 4 bytes");
    }
    Bytes renamed = kept();
    renamed[find(renamed, std::string("\0.nv.info.clear\0", 16)) + 10] = std::byte{'x'};
    refused(renamed, "expected a section .nv.info.clear");
    Bytes relocatable = kept();
    relocatable[offsetof(Elf64_Ehdr, e_type)] = std::byte{ET_REL};
    refused(relocatable, "expected a cubin that is linked");
}

TEST_CASE("CubinAttributesEndWithTheirSection") {
    const auto read = [](const std::string& bytes) { return read_info(kiln::as_bytes(bytes)); };
    const auto whole =
        read(std::string("\x03\x19\x28\x00\x04\x05\x0c\x00\x80\x01\0\0\x01\0\0\0\x01\0\0\0", 20));
    REQUIRE(whole);
    REQUIRE(whole->size() == 2);
    CHECK((*whole)[0].code == InfoCode::parameters_bytes);
    CHECK((*whole)[0].value == 40);
    CHECK((*whole)[1].code == InfoCode::max_threads);
    CHECK((*whole)[1].words == std::vector<std::uint32_t>{0x180, 1, 1});
    CHECK(read("")->empty());
    CHECK(!read(std::string("\x03\x19\x28", 3)));
    CHECK(!read(std::string("\x04\x05\x0c\x00\x80", 5)));
    CHECK(!read(std::string("\x05\x19\x28\x00", 4)));
    CHECK(!read(std::string("\x00\x19\x28\x00", 4)));
}
