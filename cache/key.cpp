#include "cache/key.hpp"

#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln::cache {
namespace {

using Json = nlohmann::json;  // its objects are std::map: members come out sorted by the bytes of their names

// Looks for what can not be canonical, before a document is built: the library would let a second member of
// one name replace the first, and would write floating point numbers.
class CanonicalCheck : public nlohmann::json_sax<Json> {
  public:
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
        return names_.size() <= Key::kMaxDepth ||
               refuse(fmt::format("expected at most {} objects and arrays in each other, found more",
                                  Key::kMaxDepth));
    }
    bool leave() {
        names_.pop_back();
        return true;
    }
    bool refuse(std::string fault) {
        fault_ = std::move(fault);
        return false;
    }

    std::vector<std::set<std::string>> names_;  // of the members seen so far, for each open object or array
    std::string fault_;
};

tl::unexpected<Error> bad_part(std::string_view part, std::string_view fault) {
    return fail(ErrorCode::bad_input, Stage::cache, fmt::format("{} of a cache key: {}", part, fault));
}

Result<Json> parse_object(std::string_view text, std::string_view part) {
    CanonicalCheck check;
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

}  // namespace

Key::Key(std::string_view request, std::string_view build)
    : document_(fmt::format(R"({{"build":{},"request":{}}})", build, request)),
      digest_(sha256(document_)),
      request_digest_(sha256(request)) {}

Result<Key> Key::make(std::string_view request, std::string_view build) {
    auto request_part = parse_object(request, "request part");
    if (!request_part) {
        return fail(request_part);
    }
    auto build_part = parse_object(build, "build part");
    if (!build_part) {
        return fail(build_part);
    }
    return Key(request_part->dump(), build_part->dump());
}

Result<Key> Key::from_document(std::string_view document) {
    auto parsed = parse_object(document, "document");
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
