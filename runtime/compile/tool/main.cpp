// kiln-compile-file: compiles one template from the shell, through the same pool and worker as the library
// does. For those who write kernels; not installed.

#include <chrono>
#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/file.hpp"
#include "runtime/compile/code_object.hpp"
#include "runtime/compile/compiler.hpp"
#include "runtime/compile/target_family.hpp"

namespace {

namespace fs = std::filesystem;
namespace compile = kiln::compile;
using kiln::Result;
using kiln::Stage;

struct Arguments {
    fs::path source;
    std::string name;
    std::string target = "gfx950";
    std::vector<fs::path> include_folders;
    std::vector<std::string> options;
    fs::path code_object;
    fs::path listing;
    fs::path disassemble;
};

// Every *.h below the folder, under its path from there: headers reach the compiler in memory, as the library
// hands them.
Result<void> add_headers(const fs::path& folder, std::vector<compile::Header>& headers) {
    std::error_code error;
    for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
        if (it->path().extension() == ".h") {
            auto text = kiln::read_text_file(it->path(), Stage::compile);
            if (!text) {
                return kiln::fail(text);
            }
            headers.push_back(
                {.name = it->path().lexically_relative(folder).generic_string(), .text = *text});
        }
    }
    if (error) {
        return kiln::fail(kiln::ErrorCode::io, Stage::compile,
                          fmt::format("{}: {}", folder.string(), error.message()));
    }
    return {};
}

void describe_amdgpu(const compile::KernelInfo& kernel) {
    fmt::print(
        "{}: {} vgprs ({} accumulation), {} sgprs, {} + {} spills, {} bytes of LDS, {} of scratch, "
        "kernargs of {} bytes\n",
        kernel.name, kernel.vgprs, kernel.agprs, kernel.sgprs, kernel.vgpr_spills, kernel.sgpr_spills,
        kernel.lds_bytes, kernel.scratch_bytes, kernel.kernarg_bytes);
}

void describe(const compile::CodeObject& object) {
    const bool cubin = compile::family_of(object.target) == compile::Family::cuda;
    for (const auto& kernel : object.kernels) {
        if (cubin) {
            fmt::print(
                "{}: {} registers, {} bytes of static shared memory, {} of stack, at most {} threads, "
                "clusters of {}, arguments of {} bytes\n",
                kernel.name, kernel.vgprs, kernel.lds_bytes, kernel.scratch_bytes, kernel.max_threads,
                kernel.cluster, kernel.kernarg_bytes);
        } else {
            describe_amdgpu(kernel);
        }
        for (const auto& argument : kernel.arguments) {
            fmt::print("  {:4} {:3} {} {}\n", argument.offset, argument.size, argument.value_kind,
                       argument.name);
        }
    }
}

Result<void> write_if_asked(const fs::path& path, kiln::ByteView bytes) {
    return path.empty() ? Result<void>() : kiln::publish_file(path, bytes, Stage::compile);
}

Result<void> run(const Arguments& arguments) {
    auto compiler = compile::Compiler::create({});
    if (!compiler) {
        return kiln::fail(compiler);
    }
    kiln::Bytes code_object;
    std::string listing;
    if (!arguments.disassemble.empty()) {
        auto bytes = kiln::read_file(arguments.disassemble, Stage::compile);
        if (!bytes) {
            return kiln::fail(bytes);
        }
        auto lines = (*compiler)->disassemble(*bytes);
        if (!lines) {
            return kiln::fail(lines);
        }
        code_object = std::move(*bytes);
        listing = std::move(*lines);
    } else {
        auto source = kiln::read_text_file(arguments.source, Stage::compile);
        if (!source) {
            return kiln::fail(source);
        }
        compile::CompileRequest request{
            .name = arguments.name.empty() ? arguments.source.filename().string() : arguments.name,
            .source = std::move(*source),
            .headers = {},
            .target = arguments.target,
            .options = arguments.options};
        for (const auto& folder : arguments.include_folders) {
            if (auto added = add_headers(folder, request.headers); !added) {
                return kiln::fail(added);
            }
        }
        auto result = (*compiler)->compile(request);
        if (!result) {
            return kiln::fail(result);
        }
        fmt::print(stderr, "{}", result->log);
        fmt::print("{} for {}: {} bytes in {:.1f} ms\n", request.name, request.target,
                   result->code_object.size(), 1e3 * result->seconds);
        code_object = std::move(result->code_object);
        listing = std::move(result->listing);
    }
    auto object = compile::read_code_object(code_object);
    if (!object) {
        return kiln::fail(object);
    }
    describe(*object);
    if (auto written = write_if_asked(arguments.code_object, code_object); !written) {
        return kiln::fail(written);
    }
    return write_if_asked(arguments.listing, kiln::as_bytes(listing));
}

}  // namespace

int main(int argc, char** argv) {
    Arguments arguments;
    CLI::App app(
        "Compiles one kernel template with kiln's own compile worker, or disassembles a code object.");
    auto* source = app.add_option("source", arguments.source, "template to compile");
    app.add_option("--name", arguments.name, "what diagnostics call it; its file name where left out");
    app.add_option("--target", arguments.target, "what to compile for")->capture_default_str();
    app.add_option("-I,--include", arguments.include_folders,
                   "hand over every *.h below this folder, under its path from there")
        ->take_all();
    app.add_option("--option", arguments.options, "option for the compiler; again for each")->take_all();
    app.add_option("-o,--code-object", arguments.code_object, "where to write the code object");
    app.add_option("--listing", arguments.listing, "where to write the listing; a cubin has none");
    app.add_option("--disassemble", arguments.disassemble, "code object to list instead of compiling")
        ->excludes(source);
    CLI11_PARSE(app, argc, argv);
    if (arguments.source.empty() && arguments.disassemble.empty()) {
        fmt::print(stderr, "{}", app.help());
        return 2;
    }
    if (auto done = run(arguments); !done) {
        fmt::print(stderr, "{}\n", done.error().message);
        return done.error().code == kiln::ErrorCode::environment ? 3 : 1;
    }
    return 0;
}
