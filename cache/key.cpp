#include "cache/key.hpp"

#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cache/canonical.hpp"

namespace kiln::cache {
namespace {

using Json = nlohmann::json;  // its objects are std::map: members come out sorted by the bytes of their names

// Looks for what can not be canonical, before a document is built: the library would let a second member of
// one name replace the first, and would write floating point numbers.
class CanonicalCheck : public nlohmann::json_sax<Json> {
  public:
    explicit CanonicalCheck(std::size_t max_depth) : max_depth_(max_depth) {}
    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, const string_t& text) override {
        return refuse(fmt::format("expected integers of at most 64 bits only, found {}", text));
    }
    bool string(string_t&) override { return true; }
    bool binary(binary_t&) override { return refuse("expected text, found binary data"); }
    bool start_object(std::size_t) override { return enter(); }
    bool end_object() override { return leave(); }
    bool start_array(std::size_t) override { return enter(); }
    bool end_array() override { return leave(); }
    bool key(string_t& name) override {
        return names_.back().insert(name).second ||
               refuse(fmt::format("expected every member once, found \"{}\" twice", name));
    }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
        return refuse(fmt::format("expected JSON, found: {}", error.what()));
    }

    const std::string& fault() const { return fault_; }

  private:
    bool enter() {
        names_.emplace_back();
        return names_.size() <= max_depth_ ||
               refuse(fmt::format("expected at most {} objects and arrays in each other, found more",
                                  max_depth_));
    }
    bool leave() {
        names_.pop_back();
        return true;
    }
    bool refuse(std::string fault) {
        fault_ = std::move(fault);
        return false;
    }

    const std::size_t max_depth_;
    std::vector<std::set<std::string>> names_;  // of the members seen so far, for each open object or array
    std::string fault_;
};

tl::unexpected<Error> bad_part(std::string_view part, std::string_view fault) {
    return fail(ErrorCode::bad_input, Stage::cache, fmt::format("{} of a cache key: {}", part, fault));
}

Result<Json> parse_object(std::string_view text, std::string_view part,
                          std::size_t max_depth = Key::kMaxDepth) {
    CanonicalCheck check(max_depth);
    try {
        if (!Json::sax_parse(text, &check)) {
            return bad_part(part, check.fault());
        }
        Json document = Json::parse(text);
        if (!document.is_object()) {
            return bad_part(part, fmt::format("expected a JSON object, found {}", document.type_name()));
        }
        return document;
    } catch (const Json::exception& error) {
        return bad_part(part, error.what());
    }
}

// The canonical text of a part, which is `text` itself where that is canonical already.
Result<std::string> canonical_part(std::string_view text, std::string_view part) {
    if (canonical_object_length(text) == text.size() && !text.empty()) {
        return std::string(text);
    }
    const auto parsed = parse_object(text, part);
    if (!parsed) {
        return tl::unexpected(parsed.error());
    }
    return parsed->dump();
}

constexpr std::string_view kBuild = R"({"build":)";
constexpr std::string_view kRequest = R"(,"request":)";

}  // namespace

// A document whose parts are plainly canonical, without a JSON library; nothing where one must be asked.
std::optional<Key> Key::split_canonical(std::string_view document) {
    if (!document.starts_with(kBuild)) {
        return std::nullopt;
    }
    const auto from_build = document.substr(kBuild.size());
    const auto build = from_build.substr(0, canonical_object_length(from_build));
    const auto after_build = from_build.substr(build.size());
    if (build.empty() || !after_build.starts_with(kRequest)) {
        return std::nullopt;
    }
    const auto from_request = after_build.substr(kRequest.size());
    const auto request = from_request.substr(0, canonical_object_length(from_request));
    if (request.empty() || from_request.substr(request.size()) != "}") {
        return std::nullopt;
    }
    return Key(request, build);
}

Key::Key(std::string_view request, std::string_view build)
    : document_(fmt::format("{}{}{}{}}}", kBuild, build, kRequest, request)),
      digest_(sha256(document_)),
      request_digest_(sha256(request)) {}

Result<Key> Key::make(std::string_view request, std::string_view build) {
    const auto request_part = canonical_part(request, "request part");
    if (!request_part) {
        return tl::unexpected(request_part.error());
    }
    const auto build_part = canonical_part(build, "build part");
    if (!build_part) {
        return tl::unexpected(build_part.error());
    }
    return Key(*request_part, *build_part);
}

Result<Key> Key::from_document(std::string_view document) {
    if (auto key = split_canonical(document)) {
        return *std::move(key);
    }
    auto parsed = parse_object(document, "document", kMaxDepth + 1);  // around the parts
    if (!parsed) {
        return fail(parsed);
    }
    for (const char* part : {"build", "request"}) {
        if (!parsed->contains(part) || !(*parsed)[part].is_object()) {
            return bad_part("document", fmt::format("expected an object named \"{}\", found none", part));
        }
    }
    Key key((*parsed)["request"].dump(), (*parsed)["build"].dump());
    if (key.document() != document) {
        return bad_part("document", "expected the canonical form, found another one or further members");
    }
    return key;
}

}  // namespace kiln::cache
