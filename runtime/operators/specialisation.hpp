// A specialisation: what is compiled, and what it is kept under. A pipeline: one bucket of one row turned
// into the specialisations that a launch runs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "runtime/compile/compiler.hpp"
#include "runtime/operators/operator.hpp"

namespace kiln::operators {

// The text of a file of kernel_src/ by its path in there, or nothing. Must give the same answer for as long
// as one specialisation is made.
using SourceLookup = std::function<Result<std::optional<std::string>>(std::string_view path)>;

// A template's text with every header that it reaches, and their digests: the same for every specialisation
// of it.
struct TemplateSource {
    std::string name;  // "linear/small_m.gfx950.hip"
    std::string text;
    std::string digest;  // SHA-256 of the text, hexadecimal
    struct Header {
        compile::Header file;
        std::string digest;
    };
    std::vector<Header> headers;  // ascending by name
};

struct Specialisation {
    const Operator* op = nullptr;
    const KernelTemplate* source_template = nullptr;
    Problem problem;
    Bucket bucket;
    tables::Target target;
    std::string kernel_name;
    std::vector<KernelLaunch> kernels;  // KernelTemplate::kernels()

    compile::CompileRequest request;  // template text, the headers it includes, constants.h, target, options
    std::string request_document;     // the request part of the key: JSON
};

struct SpecialisedStage {
    Specialisation specialisation;
    std::uint32_t kernarg_offset = 0;  // of its arguments in the block that a launch packs
};

// What serves one bucket of a row. Where the bucket's template has a source of its own it has one stage,
// which says the same of itself.
struct Pipeline {
    const Operator* op = nullptr;
    const Template* source_template = nullptr;
    Problem problem;
    Bucket bucket;
    tables::Target target;
    std::string kernel_name;               // Template::kernel_name()
    std::vector<SpecialisedStage> stages;  // at least one, in the order of a launch

    [[nodiscard]] WorkspaceNeed workspace(std::int64_t m) const {
        return source_template->workspace(problem, bucket, m);
    }
    [[nodiscard]] bool is_deterministic() const { return source_template->is_deterministic(problem, bucket); }
};

// What the names of sources for a target end with: "hip", and "cu" for NVIDIA's processors.
[[nodiscard]] std::string_view source_suffix(const tables::Target& target);
// The file that a template has for a target: "linear/small_m" on gfx950:xnack- is
// "linear/small_m.gfx950.hip", on sm_90a "linear/small_m.sm_90a.cu".
[[nodiscard]] std::string template_path(std::string_view template_id, const tables::Target& target);

// The generated header that carries the constants and the kernels' symbols to the template.
[[nodiscard]] std::string constants_header(const KernelTemplate& source_template, const Problem& problem,
                                           const Bucket& bucket);

// The template's file for the target, the headers that it includes by #include "...", and those that they
// include, each once. constants.h is generated, hence not looked up. not_found names the template without a
// file for the target, or the file and line of an include that leads nowhere; bad_input those of an include
// of another form, whose text the key could not hold (include_scan.hpp).
[[nodiscard]] Result<TemplateSource> read_template(std::string_view template_id, const tables::Target& target,
                                                   const SourceLookup& lookup);

// Requires a bucket that the template's check() accepts. not_found where the operator has no such template
// with a source of its own.
[[nodiscard]] Result<Specialisation> specialise(const Operator& op, const Problem& problem,
                                                const Bucket& bucket, const tables::Target& target,
                                                const SourceLookup& lookup);

// The text of a template for a target, as read_template() gives it.
using TemplateReader = std::function<Result<std::shared_ptr<const TemplateSource>>(
    std::string_view template_id, const tables::Target& target)>;

// Requires a bucket that its template's check() accepts. not_found where the operator has no such template.
[[nodiscard]] Result<Pipeline> make_pipeline(const Operator& op, const Problem& problem, const Bucket& bucket,
                                             const tables::Target& target, const TemplateReader& read);
[[nodiscard]] Result<Pipeline> make_pipeline(const Operator& op, const Problem& problem, const Bucket& bucket,
                                             const tables::Target& target, const SourceLookup& lookup);

}  // namespace kiln::operators
