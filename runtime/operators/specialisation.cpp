#include "runtime/operators/specialisation.hpp"

#include <cctype>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/digest.hpp"
#include "runtime/compile/target_family.hpp"
#include "runtime/operators/include_scan.hpp"

namespace kiln::operators {

namespace {

// Version of the request part of the key: raised when the same request must no longer find what it found.
constexpr int kRequestSchema = 1;

constexpr std::string_view kConstantsName = "constants.h";

// Follows the includes of one file, depth first, into `found`.
Result<void> collect(const std::string& name, const std::string& text, const SourceLookup& lookup,
                     std::map<std::string, std::string>& found) {
    const Result<std::vector<Include>> includes = find_includes(name, text);
    if (!includes) {
        return tl::unexpected<Error>(includes.error());
    }
    for (const Include& include : *includes) {
        if (include.name == kConstantsName || found.contains(include.name)) {
            continue;
        }
        Result<std::optional<std::string>> header = lookup(include.name);
        if (!header) {
            return fail(header);
        }
        if (!header->has_value()) {
            return fail(ErrorCode::not_found, Stage::compile,
                        fmt::format("{}:{}: \"{}\" is no file of the kernel sources", name, include.line,
                                    include.name));
        }
        const std::string& header_text = found.emplace(include.name, std::move(**header)).first->second;
        if (Result<void> deeper = collect(include.name, header_text, lookup, found); !deeper) {
            return deeper;
        }
    }
    return {};
}

// What constants.h calls a kernel: KILN_KERNEL_NAME, or KILN_KERNEL_NAME_GATE_UP for the one of several whose
// symbol is the kernel's name and "_gate_up".
std::string kernel_macro(const std::string& kernel_name, const std::string& symbol) {
    std::string macro = "KILN_KERNEL_NAME";
    for (const char letter : std::string_view(symbol).substr(kernel_name.size())) {
        macro += static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    }
    return macro;
}

std::string request_document(const Specialisation& specialisation, const TemplateSource& source) {
    const compile::CompileRequest& request = specialisation.request;
    nlohmann::json headers = nlohmann::json::object();
    for (const TemplateSource::Header& header : source.headers) {
        headers[header.file.name] = header.digest;
    }
    headers[kConstantsName] = sha256(request.headers.back().text).hex();
    nlohmann::json constants = nlohmann::json::object();
    for (const auto& [name, value] :
         specialisation.source_template->constants(specialisation.problem, specialisation.bucket)) {
        constants[name] = value;
    }
    nlohmann::json kernargs = nlohmann::json::array();
    for (const KernelArgument& argument : specialisation.source_template->kernargs().arguments) {
        kernargs.push_back({{"name", argument.name}, {"offset", argument.offset}, {"size", argument.size}});
    }
    nlohmann::json document{
        {"schema", kRequestSchema},
        {"operator", specialisation.op->name()},
        {"template", specialisation.source_template->id()},
        {"source", source.digest},
        {"headers", std::move(headers)},
        {"constants", std::move(constants)},
        {"kernel", specialisation.kernel_name},
        {"kernargs", std::move(kernargs)},
        {"target", request.target},
        {"options", request.options},
    };
    if (specialisation.kernels.size() > 1) {
        for (const KernelLaunch& kernel : specialisation.kernels) {
            document["kernels"].push_back(kernel.symbol);
        }
    }
    return document.dump();
}

}  // namespace

std::string_view source_suffix(const tables::Target& target) {
    return compile::family_of(target.processor) == compile::Family::cuda ? "cu" : "hip";
}

std::string template_path(std::string_view template_id, const tables::Target& target) {
    return fmt::format("{}.{}.{}", template_id, target.processor, source_suffix(target));
}

std::string constants_header(const KernelTemplate& source_template, const Problem& problem,
                             const Bucket& bucket) {
    std::string text = fmt::format(
        "// Generated: the constants of one specialisation of {}.\n"
        "#pragma once\n\n",
        source_template.id());
    const std::string kernel_name = source_template.kernel_name(problem, bucket);
    for (const KernelLaunch& kernel : source_template.kernels(problem, bucket)) {
        text += fmt::format("#define {} {}\n", kernel_macro(kernel_name, kernel.symbol), kernel.symbol);
    }
    text += "\nnamespace kiln::constants {\n";
    for (const auto& [name, value] : source_template.constants(problem, bucket)) {
        text += fmt::format("inline constexpr int {} = {};\n", name, value);
    }
    text += "}  // namespace kiln::constants\n";
    return text;
}

Result<TemplateSource> read_template(std::string_view template_id, const tables::Target& target,
                                     const SourceLookup& lookup) {
    TemplateSource source;
    source.name = template_path(template_id, target);
    Result<std::optional<std::string>> text = lookup(source.name);
    if (!text) {
        return fail(text);
    }
    if (!text->has_value()) {
        return fail(ErrorCode::not_found, Stage::compile,
                    fmt::format("the template {} has no source for {}: {} is no file of the kernel sources",
                                template_id, target.processor, source.name));
    }
    source.text = std::move(**text);
    source.digest = sha256(source.text).hex();
    std::map<std::string, std::string> headers;
    if (Result<void> collected = collect(source.name, source.text, lookup, headers); !collected) {
        return fail(collected);
    }
    for (auto& [name, header] : headers) {
        std::string digest = sha256(header).hex();
        source.headers.push_back({{name, std::move(header)}, std::move(digest)});
    }
    return source;
}

namespace {

tl::unexpected<Error> no_template(const Operator& op, const Bucket& bucket, const tables::Target& target) {
    return fail(ErrorCode::not_found, Stage::table,
                fmt::format("{} has no template {} for {}", op.name(), bucket.template_id, target.processor));
}

Specialisation specialise(const Operator& op, const KernelTemplate& source_template, const Problem& problem,
                          const Bucket& bucket, const tables::Target& target, const TemplateSource& source) {
    Specialisation result;
    result.op = &op;
    result.source_template = &source_template;
    result.problem = problem;
    result.bucket = bucket;
    result.target = target;
    result.kernel_name = source_template.kernel_name(problem, bucket);
    result.kernels = source_template.kernels(problem, bucket);

    compile::CompileRequest& request = result.request;
    request.name = source.name;
    request.source = source.text;
    for (const TemplateSource::Header& header : source.headers) {
        request.headers.push_back(header.file);
    }
    request.headers.push_back(
        {std::string(kConstantsName), constants_header(source_template, problem, bucket)});
    request.target = target.text();
    request.options = source_template.options();
    result.request_document = request_document(result, source);
    return result;
}

}  // namespace

Result<Specialisation> specialise(const Operator& op, const Problem& problem, const Bucket& bucket,
                                  const tables::Target& target, const SourceLookup& lookup) {
    const auto* known =
        dynamic_cast<const KernelTemplate*>(op.find_template(bucket.template_id, target.processor));
    if (known == nullptr) {
        return no_template(op, bucket, target);
    }
    const Result<TemplateSource> source = read_template(bucket.template_id, target, lookup);
    return source ? specialise(op, *known, problem, bucket, target, *source)
                  : Result<Specialisation>(tl::unexpected<Error>(source.error()));
}

Result<Pipeline> make_pipeline(const Operator& op, const Problem& problem, const Bucket& bucket,
                               const tables::Target& target, const TemplateReader& read) {
    Pipeline result;
    result.op = &op;
    result.source_template = op.find_template(bucket.template_id, target.processor);
    if (result.source_template == nullptr) {
        return no_template(op, bucket, target);
    }
    result.problem = problem;
    result.bucket = bucket;
    result.target = target;
    result.kernel_name = result.source_template->kernel_name(problem, bucket);
    for (const PipelineStage& stage : result.source_template->stages(problem, bucket)) {
        const auto source = read(stage.source->id(), target);
        if (!source) {
            return tl::unexpected<Error>(source.error());
        }
        result.stages.push_back({specialise(stage.op != nullptr ? *stage.op : op, *stage.source,
                                            stage.problem, stage.bucket, target, **source),
                                 stage.kernarg_offset});
    }
    return result;
}

Result<Pipeline> make_pipeline(const Operator& op, const Problem& problem, const Bucket& bucket,
                               const tables::Target& target, const SourceLookup& lookup) {
    const TemplateReader read =
        [&lookup](std::string_view id,
                  const tables::Target& of) -> Result<std::shared_ptr<const TemplateSource>> {
        Result<TemplateSource> source = read_template(id, of, lookup);
        return source ? std::make_shared<const TemplateSource>(*std::move(source))
                      : Result<std::shared_ptr<const TemplateSource>>(fail(source));
    };
    return make_pipeline(op, problem, bucket, target, read);
}

}  // namespace kiln::operators
