#include "cache/canonical.hpp"

#include <algorithm>
#include <optional>

#include "cache/key.hpp"

namespace kiln::cache {
namespace {

constexpr std::size_t kMaxDigits = 18;  // of a number that certainly fits 64 bits

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

class Scanner {
  public:
    explicit Scanner(std::string_view text) : text_(text) {}
    [[nodiscard]] std::size_t position() const { return at_; }

    // Each takes what it is named for off the front, and is false where something else stands.
    bool object(std::size_t depth) {
        if (depth > Key::kMaxDepth || !take('{')) {
            return false;
        }
        if (take('}')) {
            return true;
        }
        std::optional<std::string_view> last;
        do {
            const auto name = string();
            if (!name || (last && *name <= *last) || !take(':') || !value(depth)) {
                return false;
            }
            last = name;
        } while (take(','));
        return take('}');
    }

  private:
    bool array(std::size_t depth) {
        if (depth > Key::kMaxDepth || !take('[')) {
            return false;
        }
        if (take(']')) {
            return true;
        }
        do {
            if (!value(depth)) {
                return false;
            }
        } while (take(','));
        return take(']');
    }

    bool value(std::size_t depth) {
        switch (at_ < text_.size() ? text_[at_] : '\0') {
            case '{':
                return object(depth + 1);
            case '[':
                return array(depth + 1);
            case '"':
                return string().has_value();
            case 't':
                return take("true");
            case 'f':
                return take("false");
            case 'n':
                return take("null");
            default:
                return integer();
        }
    }

    std::optional<std::string_view> string() {
        if (!take('"')) {
            return std::nullopt;
        }
        const std::size_t begin = at_;
        while (at_ < text_.size() && text_[at_] >= ' ' && text_[at_] <= '~' && text_[at_] != '"' &&
               text_[at_] != '\\') {
            ++at_;
        }
        const auto found = text_.substr(begin, at_ - begin);
        return take('"') ? std::optional(found) : std::nullopt;
    }

    bool integer() {
        const bool negative = take('-');
        const std::size_t begin = at_;
        while (at_ < text_.size() && is_digit(text_[at_])) {
            ++at_;
        }
        const auto digits = text_.substr(begin, at_ - begin);
        return !digits.empty() && digits.size() <= kMaxDigits &&
               (digits.front() != '0' || (digits.size() == 1 && !negative));
    }

    bool take(char c) {
        const bool there = at_ < text_.size() && text_[at_] == c;
        at_ += there ? 1 : 0;
        return there;
    }
    bool take(std::string_view word) {
        const bool there = text_.substr(at_).starts_with(word);
        at_ += there ? word.size() : 0;
        return there;
    }

    const std::string_view text_;
    std::size_t at_ = 0;
};

}  // namespace

std::size_t canonical_object_length(std::string_view text) {
    Scanner scanner(text);
    return scanner.object(1) ? scanner.position() : 0;
}

}  // namespace kiln::cache
