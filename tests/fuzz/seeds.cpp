// Writes the seeds of the fuzz corpora, "valid-*", from real parts: fuzz_seeds CORPUS-FOLDER. To be run again
// when a format changes; inputs of other names are the fuzzer's finds and stay as they are.

#include <cstdio>
#include <filesystem>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "cache/bundle.hpp"
#include "cache/entry.hpp"
#include "cache/entry_layout.hpp"
#include "runtime/compile/code_object.hpp"
#include "runtime/compile/compiler.hpp"
#include "runtime/compile/elf.hpp"
#include "runtime/compile/protocol.hpp"
#include "runtime/embedded/embedded.hpp"

namespace {

namespace fs = std::filesystem;
using kiln::Bytes;
using kiln::ByteView;

constexpr std::uint32_t kNoteMetadata = 32;  // NT_AMDGPU_METADATA

// The value, or the end of the program.
template <class T>
T need(kiln::Result<T> result) {
    if (!result) {
        std::fprintf(stderr, "fuzz_seeds: %s\n", result.error().message.c_str());
        std::exit(1);
    }
    if constexpr (!std::is_void_v<T>) {
        return std::move(*result);
    }
}

class Corpus {
  public:
    explicit Corpus(fs::path folder) : folder_(std::move(folder)) {}
    void write(const std::string& target, const std::string& name, ByteView bytes) const {
        const auto path = folder_ / target / ("valid-" + name);
        need(kiln::publish_file(path, bytes, kiln::Stage::configure));
        fmt::print("{} bytes {}\n", bytes.size(), path.string());
    }

  private:
    const fs::path folder_;
};

kiln::compile::CompileRequest small_request() {
    return {.name = "seed.hip",
            .source =
                "#include \"seed.h\"\n"
                "extern \"C\" __global__ void add(float* out, const float* in, int n) {\n"
                "    if (int i = kFirst + threadIdx.x; i < n) out[i] += in[i];\n"
                "}\n"
                "extern \"C\" __global__ void clear(float* out) { out[threadIdx.x] = 0; }\n",
            .headers = {{"seed.h", "#pragma once\nconstexpr int kFirst = 0;\n"}},
            .target = "gfx950",
            .options = {"-O3", "-std=c++20"}};
}

// Where this machine has NVRTC; else the seed that is there stays.
void write_cubin(const Corpus& corpus, kiln::compile::Compiler& compiler) {
    auto request = small_request();
    request.name = "seed.cu";
    request.target = "sm_90a";
    request.options = {"-std=c++20"};
    const auto compiled = compiler.compile(request);
    if (compiled) {
        corpus.write("code_object", "cubin", compiled->code_object);
    } else {
        fmt::print("no cubin: {}\n", compiled.error().message);
    }
}

void write_entries(const Corpus& corpus, const kiln::compile::CompileResult& compiled) {
    const auto key = need(kiln::cache::Key::make(
        R"({"schema":1,"template":"seed","constants":{"n":16},"target":"gfx950","options":["-O3"]})",
        R"({"components":[{"name":"libamd_comgr.so.3","build_id":"00ff"}]})"));
    const auto write = [&](const std::string& name, const kiln::cache::Entry& entry,
                           kiln::cache::Compression compression) {
        const auto file = need(kiln::cache::serialise(key, entry, compression));
        corpus.write("entry", name, ByteView(file).first(file.size() - kiln::cache::kFooterBytes));
    };
    const kiln::cache::Entry whole{compiled.code_object, R"({"kernel":"add","vgprs":4})", compiled.listing};
    write("whole", whole, kiln::cache::Compression::where_it_pays);
    write("raw", {Bytes(8), R"({"a":[1,{"b":null}]})", "kiln-listing 1\n"}, kiln::cache::Compression::off);
    write("bare", {}, kiln::cache::Compression::off);
}

void write_bundles(const Corpus& corpus) {
    using namespace kiln::cache;
    const auto entry = [](int number, const char* build, const Entry& content) {
        const auto key =
            need(Key::make(fmt::format(R"({{"schema":1,"constants":{{"n":{}}}}})", number), build));
        return need(serialise(key, content, Compression::off));
    };
    BundleWriter writer;
    corpus.write("bundle", "empty", need(writer.write("{}")));
    for (int number = 0; number < 3; ++number) {
        need(writer.add(entry(number, R"({"compiler":"a"})", {Bytes(8), "{}", "kiln-listing 1\n"})));
    }
    need(writer.add(entry(2, R"({"compiler":"b"})", {})));
    need(writer.add_document("linear.json", R"({"schema":1,"rows":[]})"));
    need(writer.add_document("router.json", "{}"));
    corpus.write("bundle", "entries", need(writer.write(R"({"kiln":"0.1.0","targets":["gfx950"]})")));
}

void write_frames(const Corpus& corpus, const kiln::compile::CompileResult& compiled) {
    using namespace kiln::compile;
    const auto write = [&](const std::string& name, std::string_view frame) {
        corpus.write("protocol", name, kiln::as_bytes(frame));
    };
    write("compile", encode_compile(1, small_request()));
    write("disassemble", encode_disassemble(2, compiled.code_object));
    constexpr std::string_view kCode = "\ncode\n";
    Reply reply;
    reply.kind = ReplyKind::compiled;
    reply.code_object = kiln::as_text(compiled.code_object);
    reply.code_lines = compiled.listing.substr(compiled.listing.find(kCode) + kCode.size());
    reply.log = "seed.hip:1:1: warning: w\n";
    reply.nanoseconds = 20'000'000;
    reply.loaded = {"/opt/rocm/lib/libhiprtc.so.7"};
    write("compiled", encode_reply(1, reply));
    reply.kind = ReplyKind::disassembled;
    reply.code_lines = compiled.listing;
    write("disassembled", encode_reply(2, reply));
    reply.kind = ReplyKind::ready;
    reply.version = "0.1.0";
    reply.memory_limit = std::uint64_t{8} << 30;
    write("ready", encode_reply(0, reply));
    reply.kind = ReplyKind::failed;
    reply.error = {kiln::ErrorCode::compile_failed, kiln::Stage::compile, "seed.hip:1:1: error: e"};
    write("failed", encode_reply(3, reply));
}

void write_tables(const Corpus& corpus) {
    using nlohmann::ordered_json;
    const auto* shipped = kiln::embedded::find(kiln::embedded::shape_files(), "linear.json");
    auto table = ordered_json::parse(shipped == nullptr ? "{}" : shipped->text);
    auto rows = ordered_json::array({table.at("rows").at(0), table.at("rows").at(1)});
    table["rows"] = rows;
    corpus.write("table", "rows", kiln::as_bytes(table.dump(1)));
    rows.erase(1);
    rows[0]["target"] = "gfx950:xnack-";
    rows[0]["buckets"] = ordered_json::array({table["rows"][0]["buckets"][0]});
    table["rows"] = rows;
    corpus.write("table", "pinned", kiln::as_bytes(table.dump()));
    // One step away from a row that is there twice.
    rows.push_back(rows[0]);
    rows[1]["target"] = "gfx950";
    table["rows"] = rows;
    corpus.write("table", "same-problem", kiln::as_bytes(table.dump()));
    corpus.write("table", "empty", kiln::as_bytes(R"({"schema":1,"rows":[]})"));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
        return 2;
    }
    const Corpus corpus(argv[1]);
    const auto compiler = need(kiln::compile::Compiler::create({}));
    const auto compiled = need(compiler->compile(small_request()));
    corpus.write("code_object", "two-kernels", compiled.code_object);
    const kiln::compile::MemorySource source(compiled.code_object);
    const auto elf = need(kiln::compile::ElfFile::read(source));
    const auto note = elf.note("AMDGPU", kNoteMetadata);
    corpus.write("code_object", "metadata", note.value_or(Bytes()));
    write_cubin(corpus, *compiler);
    write_entries(corpus, compiled);
    write_bundles(corpus);
    write_frames(corpus, compiled);
    write_tables(corpus);
}
