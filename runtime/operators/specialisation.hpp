// A specialisation: one bucket of one row turned into what is compiled and what it is kept under.
#pragma once

#include <cstdint>
#include <functional>
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

struct Specialisation {
    const Operator* op = nullptr;
    const Template* source_template = nullptr;
    Problem problem;
    Bucket bucket;
    tables::Target target;
    std::string kernel_name;

    compile::CompileRequest request;  // template text, the headers it includes, constants.h, target, options
    std::string request_document;     // the request part of the key: JSON
};

// The file that a template has for a target: "linear/small_m" on gfx950:xnack- is
// "linear/small_m.gfx950.hip".
[[nodiscard]] std::string template_path(std::string_view template_id, const tables::Target& target);

// The generated header that carries the constants to the template.
[[nodiscard]] std::string constants_header(const Template& source_template, const Problem& problem,
                                           const Bucket& bucket);

// The headers that `text` includes by #include "...", and those that they include, each once, ascending by
// name. constants.h is generated, hence not looked up. not_found names the file and line of an include that
// leads nowhere.
[[nodiscard]] Result<std::vector<compile::Header>> included_headers(const std::string& name,
                                                                    const std::string& text,
                                                                    const SourceLookup& lookup);

// Requires a bucket that the template's check() accepts.
[[nodiscard]] Result<Specialisation> specialise(const Operator& op, const Problem& problem,
                                                const Bucket& bucket, const tables::Target& target,
                                                const SourceLookup& lookup);

}  // namespace kiln::operators
