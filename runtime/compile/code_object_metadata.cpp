#include "runtime/compile/code_object_metadata.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln::compile {
namespace {

using nlohmann::json;

constexpr int kMostNesting = 16;  // real metadata nests five deep

auto bad(std::string message) {
    return fail(ErrorCode::bad_input, Stage::load, "code object metadata: " + std::move(message));
}

// Follows a document without building it, and stops where it nests too deep: the library reads recursively,
// so a hostile document could otherwise use up the stack.
class NestingCheck : public nlohmann::json_sax<json> {
  public:
    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool string(string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool key(string_t&) override { return true; }
    bool start_object(std::size_t) override { return ++depth_ <= kMostNesting; }
    bool start_array(std::size_t) override { return ++depth_ <= kMostNesting; }
    bool end_object() override { return --depth_, true; }
    bool end_array() override { return --depth_, true; }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
        return false;
    }

  private:
    int depth_ = 0;
};

// Reads members of one JSON object and remembers the first that is not as it must be.
class Members {
  public:
    Members(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

    std::uint32_t number(const char* name) { return read_number(name, /*required=*/true); }
    std::uint32_t number_or_zero(const char* name) { return read_number(name, /*required=*/false); }

    std::string text(const char* name) { return read_text(name, /*required=*/true); }
    std::string text_or_empty(const char* name) { return read_text(name, /*required=*/false); }

    // A text that stands in listings and messages as one word.
    std::string word(const char* name) {
        std::string value = text(name);
        const bool printable =
            std::all_of(value.begin(), value.end(), [](char c) { return c > ' ' && c <= '~'; });
        if (problem_.empty() && (value.empty() || !printable)) {
            note(name, "expected printable characters without white space");
        }
        return value;
    }

    // An empty array when there is none and none is required.
    const json& array_or_empty(const char* name) {
        static const json empty = json::array();
        const json* member = find(name);
        if (member != nullptr && !member->is_array()) {
            note(name, fmt::format("expected an array, found {}", member->type_name()));
            return empty;
        }
        return member == nullptr ? empty : *member;
    }

    const std::string& problem() const { return problem_; }

  private:
    const json* find(const char* name) const {
        const auto found = object_.find(name);
        return found == object_.end() ? nullptr : &*found;
    }
    void note(const char* name, std::string_view what) {
        if (problem_.empty()) {
            problem_ = fmt::format("{}: {}: {}", where_, name, what);
        }
    }
    std::uint32_t read_number(const char* name, bool required) {
        const json* member = find(name);
        if (member == nullptr) {
            if (required) {
                note(name, "expected a number, found nothing");
            }
            return 0;
        }
        if (!member->is_number_unsigned() ||
            member->get<std::uint64_t>() > std::numeric_limits<std::uint32_t>::max()) {
            note(name, "expected a number of 32 bits without sign");
            return 0;
        }
        return static_cast<std::uint32_t>(member->get<std::uint64_t>());
    }
    std::string read_text(const char* name, bool required) {
        const json* member = find(name);
        if (member == nullptr || !member->is_string()) {
            if (required || member != nullptr) {
                note(name, "expected a text");
            }
            return {};
        }
        return member->get<std::string>();
    }

    const json& object_;
    std::string where_;
    std::string problem_;
};

Result<KernelArgument> read_argument(const json& record, const std::string& where) {
    if (!record.is_object()) {
        return bad(where + ": expected a map");
    }
    Members members(record, where);
    KernelArgument argument{.name = members.text_or_empty(".name"),
                            .value_kind = members.text(".value_kind"),
                            .offset = members.number(".offset"),
                            .size = members.number(".size")};
    if (!members.problem().empty()) {
        return bad(members.problem());
    }
    return argument;
}

Result<Metadata::Kernel> read_kernel(const json& record, const std::string& where) {
    if (!record.is_object()) {
        return bad(where + ": expected a map");
    }
    Members members(record, where);
    Metadata::Kernel kernel;
    kernel.info = {.name = members.word(".name"),
                   .kernarg_bytes = members.number(".kernarg_segment_size"),
                   .kernarg_align = members.number(".kernarg_segment_align"),
                   .vgprs = members.number(".vgpr_count"),
                   .agprs = members.number_or_zero(".agpr_count"),
                   .sgprs = members.number(".sgpr_count"),
                   .vgpr_spills = members.number_or_zero(".vgpr_spill_count"),
                   .sgpr_spills = members.number_or_zero(".sgpr_spill_count"),
                   .lds_bytes = members.number(".group_segment_fixed_size"),
                   .scratch_bytes = members.number(".private_segment_fixed_size"),
                   .max_threads = members.number(".max_flat_workgroup_size"),
                   .wavefront = members.number(".wavefront_size"),
                   .descriptor_address = 0,
                   .entry_address = 0,
                   .arguments = {}};
    kernel.descriptor_symbol = members.word(".symbol");
    const json& arguments = members.array_or_empty(".args");
    if (!members.problem().empty()) {
        return bad(members.problem());
    }
    for (std::size_t i = 0; i < arguments.size(); ++i) {
        auto argument =
            read_argument(arguments[i], fmt::format("kernel {}: argument {}", kernel.info.name, i));
        if (!argument) {
            return fail(argument);
        }
        kernel.info.arguments.push_back(std::move(*argument));
    }
    return kernel;
}

}  // namespace

Result<Metadata> read_metadata(ByteView message_pack) {
    const auto* begin = reinterpret_cast<const std::uint8_t*>(message_pack.data());
    const auto* end = begin + message_pack.size();
    NestingCheck nesting;
    if (!json::sax_parse(begin, end, &nesting, json::input_format_t::msgpack)) {
        return bad(fmt::format("{} bytes are no MessagePack document of at most {} levels",
                               message_pack.size(), kMostNesting));
    }
    const json document = json::from_msgpack(begin, end, /*strict=*/true, /*allow_exceptions=*/false);
    if (!document.is_object()) {
        return bad("expected a map");
    }
    Members members(document, "document");
    std::string target = members.word("amdhsa.target");
    const json& kernels = members.array_or_empty("amdhsa.kernels");
    if (!members.problem().empty()) {
        return bad(members.problem());
    }
    constexpr std::string_view kTriple = "amdgcn-amd-amdhsa--";
    if (!target.starts_with(kTriple)) {
        return bad(fmt::format("expected a target that starts with {}, found {}", kTriple, target));
    }
    Metadata metadata;
    metadata.target = target.substr(kTriple.size());
    for (std::size_t i = 0; i < kernels.size(); ++i) {
        auto kernel = read_kernel(kernels[i], fmt::format("kernel {}", i));
        if (!kernel) {
            return fail(kernel);
        }
        metadata.kernels.push_back(std::move(*kernel));
    }
    return metadata;
}

}  // namespace kiln::compile
