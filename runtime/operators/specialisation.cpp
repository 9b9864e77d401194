#include "runtime/operators/specialisation.hpp"

#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/digest.hpp"

namespace kiln::operators {

namespace {

// Version of the request part of the key: raised when the same request must no longer find what it found.
constexpr int kRequestSchema = 1;

constexpr std::string_view kConstantsName = "constants.h";

struct Include {
    std::string name;
    int line;
};

// The directives #include "NAME" of a text. Names in <> are the compiler's own headers.
std::vector<Include> find_includes(std::string_view text) {
    std::vector<Include> includes;
    constexpr std::string_view kBlank = " \t";
    for (int line = 1; !text.empty(); ++line) {
        std::string_view rest = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(rest.size() + 1, text.size()));
        const auto skip = [&rest](std::string_view word) {
            rest.remove_prefix(std::min(rest.find_first_not_of(kBlank), rest.size()));
            const bool found = rest.starts_with(word);
            rest.remove_prefix(found ? word.size() : 0);
            return found;
        };
        if (skip("#") && skip("include") && skip("\"")) {
            includes.push_back({std::string(rest.substr(0, rest.find('"'))), line});
        }
    }
    return includes;
}

// Follows the includes of one file, depth first, into `found`.
Result<void> collect(const std::string& name, const std::string& text, const SourceLookup& lookup,
                     std::map<std::string, std::string>& found) {
    for (const Include& include : find_includes(text)) {
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

std::string request_document(const Specialisation& specialisation) {
    const compile::CompileRequest& request = specialisation.request;
    nlohmann::json headers = nlohmann::json::object();
    for (const compile::Header& header : request.headers) {
        headers[header.name] = sha256(header.text).hex();
    }
    nlohmann::json constants = nlohmann::json::object();
    for (const auto& [name, value] :
         specialisation.source_template->constants(specialisation.problem, specialisation.bucket)) {
        constants[name] = value;
    }
    nlohmann::json kernargs = nlohmann::json::array();
    for (const KernelArgument& argument : specialisation.source_template->kernargs()) {
        kernargs.push_back({{"name", argument.name}, {"offset", argument.offset}, {"size", argument.size}});
    }
    const nlohmann::json document{
        {"schema", kRequestSchema},
        {"operator", specialisation.op->name()},
        {"template", specialisation.source_template->id()},
        {"source", sha256(request.source).hex()},
        {"headers", std::move(headers)},
        {"constants", std::move(constants)},
        {"kernel", specialisation.kernel_name},
        {"kernargs", std::move(kernargs)},
        {"target", request.target},
        {"options", request.options},
    };
    return document.dump();
}

}  // namespace

std::string template_path(std::string_view template_id, const tables::Target& target) {
    return fmt::format("{}.{}.hip", template_id, target.processor);
}

std::string constants_header(const Template& source_template, const Problem& problem, const Bucket& bucket) {
    std::string text = fmt::format(
        "// Generated: the constants of one specialisation of {}.\n"
        "#pragma once\n\n"
        "#define KILN_KERNEL_NAME {}\n\n"
        "namespace kiln::constants {{\n",
        source_template.id(), source_template.kernel_name(problem, bucket));
    for (const auto& [name, value] : source_template.constants(problem, bucket)) {
        text += fmt::format("inline constexpr int {} = {};\n", name, value);
    }
    text += "}  // namespace kiln::constants\n";
    return text;
}

Result<std::vector<compile::Header>> included_headers(const std::string& name, const std::string& text,
                                                      const SourceLookup& lookup) {
    std::map<std::string, std::string> found;
    if (Result<void> collected = collect(name, text, lookup, found); !collected) {
        return fail(collected);
    }
    std::vector<compile::Header> headers;
    for (auto& [header, header_text] : found) {
        headers.push_back({header, std::move(header_text)});
    }
    return headers;
}

Result<Specialisation> specialise(const Operator& op, const Problem& problem, const Bucket& bucket,
                                  const tables::Target& target, const SourceLookup& lookup) {
    Specialisation result;
    result.op = &op;
    result.source_template = op.find_template(bucket.template_id);
    if (result.source_template == nullptr) {
        return fail(ErrorCode::not_found, Stage::table,
                    fmt::format("{} is no template of {}", bucket.template_id, op.name()));
    }
    result.problem = problem;
    result.bucket = bucket;
    result.target = target;
    result.kernel_name = result.source_template->kernel_name(problem, bucket);

    compile::CompileRequest& request = result.request;
    request.name = template_path(bucket.template_id, target);
    Result<std::optional<std::string>> source = lookup(request.name);
    if (!source) {
        return fail(source);
    }
    if (!source->has_value()) {
        return fail(ErrorCode::not_found, Stage::compile,
                    fmt::format("the template {} has no source for {}: {} is no file of the kernel sources",
                                bucket.template_id, target.processor, request.name));
    }
    request.source = std::move(**source);
    Result<std::vector<compile::Header>> headers = included_headers(request.name, request.source, lookup);
    if (!headers) {
        return fail(headers);
    }
    request.headers = *std::move(headers);
    request.headers.push_back(
        {std::string(kConstantsName), constants_header(*result.source_template, problem, bucket)});
    request.target = target.text();
    request.options = result.source_template->options();
    result.request_document = request_document(result);
    return result;
}

}  // namespace kiln::operators
