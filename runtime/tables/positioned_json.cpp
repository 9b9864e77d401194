#include "runtime/tables/positioned_json.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace kiln::tables {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kZeroByte = "a zero byte";
constexpr std::size_t kMaxShown = 60;  // bytes of a value in a message

bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_continuation(char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
}

// One line, of bounded length, cut between characters.
std::string shorten(std::string_view text) {
    std::string shown(text.substr(0, kMaxShown));
    if (shown.size() < text.size()) {
        while (!shown.empty() && is_continuation(text[shown.size()])) {
            shown.pop_back();
        }
        shown += "...";
    }
    std::ranges::replace_if(
        shown, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
    return shown;
}

}  // namespace

std::string pointer_step(std::string_view member) {
    std::string step = "/";
    for (const char c : member) {
        step += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    }
    return step;
}

std::string pointer_step(std::size_t index) {
    return fmt::format("/{}", index);
}

// Takes the parser's events and walks the text along with them. The parser reports no places, but it reports
// every token in order, so the place of each is where the walk stands: past the token before, past white
// space and one separator.
class PositionedJsonBuilder : public nlohmann::json_sax<nlohmann::json> {
  public:
    explicit PositionedJsonBuilder(PositionedJson& result) : result_(result), text_(result.text_) {
        if (text_.starts_with(kByteOrderMark)) {
            at_ = kByteOrderMark.size();
        }
    }

    bool null() override { return literal(nullptr, 4); }
    bool boolean(bool value) override { return literal(value, value ? 4 : 5); }
    bool number_integer(number_integer_t value) override { return number(value); }
    bool number_unsigned(number_unsigned_t value) override {
        if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
            const std::size_t start = next_token();
            refuse(start, next_pointer(), "an integer of at most 64 bits", std::string(number_at(start)));
        }
        return number(value);
    }
    bool number_float(number_float_t value, const string_t&) override { return number(value); }
    bool string(string_t& value) override {
        const std::size_t start = next_token();
        return short_enough(start, next_pointer(), value) &&
               place(std::move(value), start, end_of_string(start));
    }
    bool binary(binary_t&) override { return false; }  // never in text

    bool start_object(std::size_t) override { return enter(nlohmann::json::object()); }
    bool start_array(std::size_t) override { return enter(nlohmann::json::array()); }
    bool end_object() override { return leave(); }
    bool end_array() override { return leave(); }

    bool key(string_t& name) override {
        name_start_ = next_token();
        auto& frame = frames_.back();
        frame.name = name;
        if (!short_enough(name_start_, frame.pointer, name)) {
            return false;
        }
        // Only the first member of a name is kept, so that places and document tell of the same one.
        frame.repeated = !frame.left_out && frame.value->contains(name);
        if (frame.repeated) {
            const auto first = result_.position(result_.places_.at(next_pointer()).name);
            refuse(name_start_, next_pointer(), "every member once",
                   fmt::format("a second one (the first stands at {}:{})", first.line, first.column));
        }
        at_ = end_of_string(name_start_);
        separator_ = true;
        return true;
    }

    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
        const std::size_t start = next_token();
        const auto pointer = frames_.empty() ? std::string() : frames_.back().pointer;
        if (error.id == 406) {  // number overflow: valid JSON, but no machine number
            refuse(start, pointer, "a number in the range of double precision", shorten(number_at(start)));
            return false;
        }
        // "[...] parse error at line L, column C: syntax error while parsing CONTEXT - FOUND; expected
        // EXPECTED"
        std::string_view message = error.what();
        const auto dash = message.find(" - ");
        message.remove_prefix(dash == std::string_view::npos ? 0 : dash + 3);
        const auto semicolon = message.find("; expected ");
        const auto expected = semicolon == std::string_view::npos ? "JSON" : message.substr(semicolon + 11);
        auto found = message.substr(0, semicolon);
        if (found.starts_with("unexpected ")) {
            found.remove_prefix(11);
        }
        if (start < text_.size() && text_[start] == '\0') {
            found = kZeroByte;  // the parser's end of input
        }
        refuse(start, pointer, std::string(expected), std::string(found));
        return false;
    }

    // After a parse that succeeded. The parser takes a zero byte for the end of its input, so that whatever
    // follows one goes unread.
    bool at_end() {
        separator_ = false;
        const std::size_t end = next_token();
        if (end < text_.size()) {
            refuse(end, {}, "end of input", std::string(kZeroByte));
        }
        return end == text_.size();
    }

  private:
    struct Frame {
        nlohmann::json* value = nullptr;  // the open object or array; stays in place until it is closed
        std::string pointer;
        std::string name;       // of the member that is being read
        bool repeated = false;  // that member is the second of its name, and is left out
        bool left_out = false;  // as is all that is in it
    };

    void refuse(std::size_t offset, std::string pointer, std::string expected, std::string found) {
        result_.faults_.push_back(
            result_.fault(offset, std::move(pointer), std::move(expected), std::move(found)));
    }

    std::size_t next_token() {
        const auto skip_space = [this] {
            while (at_ < text_.size() && is_space(text_[at_])) {
                ++at_;
            }
        };
        skip_space();
        if (separator_ && at_ < text_.size() && (text_[at_] == ',' || text_[at_] == ':')) {
            ++at_;
            skip_space();
        }
        separator_ = false;
        return at_;
    }

    std::size_t end_of_string(std::size_t start) const {
        std::size_t end = start + 1;
        while (end < text_.size() && text_[end] != '"') {
            end += text_[end] == '\\' ? 2 : 1;
        }
        return std::min(end + 1, text_.size());
    }

    std::string_view number_at(std::size_t start) const {
        return text_.substr(start, text_.find_first_not_of("+-.0123456789eE", start) - start);
    }

    bool short_enough(std::size_t start, const std::string& pointer, const std::string& value) {
        if (value.size() > PositionedJson::kMaxString) {
            refuse(start, pointer, fmt::format("a string of at most {} bytes", PositionedJson::kMaxString),
                   fmt::format("{}", value.size()));
            return false;
        }
        return true;
    }

    // Of the value that starts there, and all before it.
    bool few_enough(std::size_t start) {
        if (++num_values_ > PositionedJson::kMaxValues) {
            refuse(start, next_pointer(), fmt::format("at most {} values", PositionedJson::kMaxValues),
                   "more");
            return false;
        }
        return true;
    }

    // Of the value that comes next.
    std::string next_pointer() const {
        if (frames_.empty()) {
            return {};
        }
        const auto& frame = frames_.back();
        return frame.pointer +
               (frame.value->is_array() ? pointer_step(frame.value->size()) : pointer_step(frame.name));
    }

    template <class Value>
    bool number(Value value) {
        const std::size_t start = next_token();
        return place(value, start, start + number_at(start).size());
    }
    template <class Value>
    bool literal(Value value, std::size_t length) {
        const std::size_t start = next_token();
        return place(value, start, start + length);
    }

    bool place(nlohmann::json value, std::size_t start, std::size_t end) {
        if (!few_enough(start)) {
            return false;
        }
        attach(std::move(value), start, end);
        return true;
    }

    // Puts a value where it belongs and notes its place. What is left out gets a place of its own, where
    // nobody looks.
    nlohmann::json* attach(nlohmann::json value, std::size_t start, std::size_t end) {
        at_ = end;
        separator_ = true;
        if (frames_.empty()) {
            result_.places_[{}] = {start, start, end};
            return &(result_.document_ = std::move(value));
        }
        auto& frame = frames_.back();
        if (frame.repeated) {
            return &(left_out_ = std::move(value));
        }
        if (!frame.left_out) {
            result_.places_[next_pointer()] = {frame.value->is_object() ? name_start_ : start, start, end};
        }
        return frame.value->is_array() ? &frame.value->emplace_back(std::move(value))
                                       : &((*frame.value)[frame.name] = std::move(value));
    }

    bool enter(nlohmann::json container) {
        const std::size_t start = next_token();
        if (!few_enough(start)) {
            return false;
        }
        auto pointer = next_pointer();
        if (frames_.size() == PositionedJson::kMaxDepth) {
            refuse(start, std::move(pointer),
                   fmt::format("at most {} objects and arrays in each other", PositionedJson::kMaxDepth),
                   "more");
            return false;
        }
        const bool left_out = !frames_.empty() && (frames_.back().repeated || frames_.back().left_out);
        auto* value = attach(std::move(container), start, start + 1);
        separator_ = false;
        frames_.push_back({value, std::move(pointer), {}, false, left_out});
        return true;
    }

    bool leave() {
        at_ = next_token() + 1;
        separator_ = true;
        if (!frames_.back().left_out) {
            result_.places_.at(frames_.back().pointer).end = at_;
        }
        frames_.pop_back();
        return true;
    }

    PositionedJson& result_;
    std::string_view text_;
    std::size_t at_ = 0;      // past the last token
    bool separator_ = false;  // one ',' or ':' may stand before the next token
    std::size_t name_start_ = 0;
    std::size_t num_values_ = 0;
    std::vector<Frame> frames_;
    nlohmann::json left_out_;  // the repeated member that is being read
};

PositionedJson::PositionedJson(std::string_view source, std::string_view text)
    : source_(source), text_(text) {
    line_starts_.push_back(text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0);
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\n') {
            line_starts_.push_back(i + 1);
        }
    }
    PositionedJsonBuilder builder(*this);
    complete_ = nlohmann::json::sax_parse(text, &builder) && builder.at_end();
}

const nlohmann::json* PositionedJson::find(const std::string& pointer) const {
    if (places_.find(pointer) == places_.end()) {
        return nullptr;
    }
    return &document_.at(nlohmann::json::json_pointer(pointer));
}

Position PositionedJson::position(std::size_t offset) const {
    const auto next = std::ranges::upper_bound(line_starts_, offset);
    const auto line = next == line_starts_.begin() ? next : next - 1;
    const std::size_t start = std::min(*line, offset);
    const auto before = text_.substr(start, offset - start);
    const auto characters = std::ranges::count_if(before, [](char c) { return !is_continuation(c); });
    return {static_cast<std::size_t>(line - line_starts_.begin()) + 1,
            static_cast<std::size_t>(characters) + 1};
}

Position PositionedJson::value_position(std::string pointer) const {
    auto place = places_.find(pointer);
    while (place == places_.end() && !pointer.empty()) {
        pointer.resize(std::min(pointer.size() - 1, pointer.rfind('/')));
        place = places_.find(pointer);
    }
    return position(place == places_.end() ? 0 : place->second.value);
}

Position PositionedJson::name_position(const std::string& pointer) const {
    const auto place = places_.find(pointer);
    return place == places_.end() ? value_position(pointer) : position(place->second.name);
}

std::optional<PositionedJson::Extent> PositionedJson::extent(const std::string& pointer) const {
    const auto place = places_.find(pointer);
    return place == places_.end() ? std::nullopt
                                  : std::optional(Extent{place->second.value, place->second.end});
}

std::string PositionedJson::describe(const std::string& pointer) const {
    const auto* value = find(pointer);
    if (value == nullptr) {
        return "nothing";
    }
    if (value->is_structured()) {
        const bool object = value->is_object();
        return fmt::format("an {} of {} {}{}", object ? "object" : "array", value->size(),
                           object ? "member" : "element", value->size() == 1 ? "" : "s");
    }
    const auto& place = places_.at(pointer);
    return shorten(text_.substr(place.value, place.end - place.value));
}

Fault PositionedJson::fault(std::size_t offset, std::string pointer, std::string expected,
                            std::string found) const {
    return {source_, position(offset), std::move(pointer), std::move(expected), std::move(found)};
}

Fault PositionedJson::fault_at_value(std::string pointer, std::string expected, std::string found) const {
    const auto where = value_position(pointer);
    return {source_, where, std::move(pointer), std::move(expected), std::move(found)};
}

Fault PositionedJson::fault_at_name(std::string pointer, std::string expected, std::string found) const {
    const auto where = name_position(pointer);
    return {source_, where, std::move(pointer), std::move(expected), std::move(found)};
}

}  // namespace kiln::tables
