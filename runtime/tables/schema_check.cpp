// valijson says which value fails which kind of constraint, in words that do not say what the constraint asks
// for; that is looked up in the schema here, so that a message can say what was expected.

#include "runtime/tables/schema_check.hpp"

#include <regex>
#include <utility>

#include <fmt/format.h>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validator.hpp>

namespace kiln::tables {

using Json = nlohmann::json;
using Adapter = valijson::adapters::NlohmannJsonAdapter;

struct SchemaCheck::Parts {
    Json document;
    valijson::Schema schema;
};

namespace {

// {"<root>", "[rows]", "[0]"}
std::vector<std::string> members_of(const std::vector<std::string>& context) {
    std::vector<std::string> members;
    for (const auto& step : context) {
        if (step.starts_with('[') && step.ends_with(']')) {
            members.push_back(step.substr(1, step.size() - 2));
        }
    }
    return members;
}

const Json& resolve(const Json& root, const Json& schema) {
    const auto reference = schema.find("$ref");
    return reference == schema.end()
               ? schema
               : root.at(Json::json_pointer(reference->get_ref<const std::string&>().substr(1)));  // "#/..."
}

// The schema of a member or an element; null where the schema has none for it.
const Json* schema_of_member(const Json& root, const Json& schema, const std::string& member) {
    const auto properties = schema.find("properties");
    if (properties != schema.end() && properties->contains(member)) {
        return &resolve(root, (*properties)[member]);
    }
    for (const char* keyword : {"items", "additionalProperties"}) {
        if (const auto inner = schema.find(keyword); inner != schema.end() && inner->is_object()) {
            return &resolve(root, *inner);
        }
    }
    return nullptr;
}

std::string plain(const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
}

// What a keyword holds: one value, or the elements of an array.
std::string list(const Json& values, std::string_view separator) {
    std::vector<std::string> texts;
    for (const auto& value : values) {  // a single value iterates over itself
        texts.push_back(plain(value));
    }
    return fmt::format("{}", fmt::join(texts, separator));
}

// Translates what valijson found wrong with one value.
class Translator {
  public:
    Translator(const PositionedJson& json, const Json& root) : json_(json), root_(root) {}

    std::vector<Fault> translate(const std::vector<std::string>& context,
                                 std::string_view description) const {
        // Says of an outer value only that an inner one failed.
        if (description.starts_with("Failed to validate")) {
            return {};
        }
        std::string pointer;
        const Json* schema = &resolve(root_, root_);
        for (const auto& member : members_of(context)) {
            pointer += pointer_step(member);
            schema = schema_of_member(root_, *schema, member);
            if (schema == nullptr) {
                return {json_.fault_at_value(pointer, std::string(description), json_.describe(pointer))};
            }
        }
        if (description.starts_with("Object contains a property")) {
            return unknown_members(pointer, *schema);
        }
        if (description.starts_with("Missing required property '")) {
            const auto name = description.substr(27, description.rfind('\'') - 27);
            return {json_.fault_at_value(pointer, fmt::format("a member \"{}\"", name), "none")};
        }
        return {json_.fault_at_value(pointer, expected(*schema, description), json_.describe(pointer))};
    }

    // valijson fails an object for the name of a member without a word about it, so the names are judged
    // here.
    void add_wrong_names(const std::string& pointer, const Json& value, const Json& schema,
                         std::vector<Fault>& faults) const {
        const auto names = schema.find("propertyNames");
        for (const auto& [name, inner] : value.items()) {
            const auto place = pointer + pointer_step(name);
            if (value.is_object() && names != schema.end()) {
                const auto pattern = resolve(root_, *names).at("pattern").get<std::string>();
                if (!std::regex_search(name, std::regex(pattern))) {
                    faults.push_back(json_.fault_at_name(
                        place, fmt::format("a name that matches {}", pattern), fmt::format("\"{}\"", name)));
                }
            }
            const auto* schema_of_inner = schema_of_member(root_, schema, name);
            if (schema_of_inner != nullptr && inner.is_structured()) {
                add_wrong_names(place, inner, *schema_of_inner, faults);
            }
        }
    }

  private:
    // valijson names the first only.
    std::vector<Fault> unknown_members(const std::string& pointer, const Json& schema) const {
        const auto& known = schema.at("properties");
        std::vector<std::string> names;
        for (const auto& [name, inner] : known.items()) {
            names.push_back(name);
        }
        std::vector<Fault> faults;
        for (const auto& [name, value] : json_.find(pointer)->items()) {
            if (!known.contains(name)) {
                faults.push_back(json_.fault_at_name(pointer + pointer_step(name),
                                                     fmt::format("a member of {}", fmt::join(names, ", ")),
                                                     fmt::format("\"{}\"", name)));
            }
        }
        return faults;
    }

    static std::string expected(const Json& schema, std::string_view description) {
        const struct {
            std::string_view begins;
            const char* keyword;
            const char* text;
            std::string_view separator;
        } known[] = {
            {"Value type", "type", "type {}", " or "},
            {"Failed to match against any enum", "enum", "one of {}", ", "},
            {"Failed to match regex", "pattern", "text that matches {}", ""},
            {"Expected number greater", "minimum", "at least {}", ""},
            {"Expected number less", "maximum", "at most {}", ""},
            {"Array should contain no fewer", "minItems", "at least {} element", ""},
            {"Object should have no fewer", "minProperties", "at least {} member", ""},
        };
        for (const auto& kind : known) {
            if (description.starts_with(kind.begins) && schema.contains(kind.keyword)) {
                return fmt::format(fmt::runtime(kind.text), list(schema[kind.keyword], kind.separator));
            }
        }
        return std::string(description);
    }

    const PositionedJson& json_;
    const Json& root_;
};

}  // namespace

SchemaCheck::SchemaCheck(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
SchemaCheck::SchemaCheck(SchemaCheck&&) noexcept = default;
SchemaCheck::~SchemaCheck() = default;

Result<SchemaCheck> SchemaCheck::create(std::string_view schema) {
    auto parts = std::make_unique<Parts>();
    try {
        parts->document = Json::parse(schema);
        valijson::SchemaParser(valijson::SchemaParser::kDraft7)
            .populateSchema(Adapter(parts->document), parts->schema);
    } catch (const std::exception& error) {
        return fail(ErrorCode::bad_input, Stage::table,
                    fmt::format("schema of shape tables: expected a JSON Schema, found: {}", error.what()));
    }
    return SchemaCheck(std::move(parts));
}

std::vector<Fault> SchemaCheck::faults_of(const PositionedJson& json) const {
    valijson::ValidationResults results;
    std::vector<Fault> faults;
    try {
        valijson::Validator validator;
        if (validator.validate(parts_->schema, Adapter(json.document()), &results)) {
            return faults;
        }
        const Translator translator(json, parts_->document);
        if (json.document().is_structured()) {
            translator.add_wrong_names("", json.document(), parts_->document, faults);
        }
        for (const auto& error : results) {
            const auto translated = translator.translate(error.context, error.description);
            faults.insert(faults.end(), translated.begin(), translated.end());
        }
    } catch (const std::exception& error) {
        faults.push_back(json.fault_at_value("", "what the schema can judge", error.what()));
    }
    if (faults.empty()) {
        faults.push_back(
            json.fault_at_value("", "a shape table as the schema describes it", "another document"));
    }
    return faults;
}

}  // namespace kiln::tables
