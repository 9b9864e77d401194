#include "runtime/compile/listing.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/format.h>

namespace kiln::compile {
namespace {

constexpr std::string_view kFirstLine = "kiln-listing 1";
constexpr std::size_t kMostWords = 4;
constexpr std::uint32_t kWordBytes = 4;

// Walks a listing line by line and words its faults.
class Reader {
  public:
    explicit Reader(std::string_view text) : rest_(text) {}

    // The next line without its line feed; nothing at the end, or where the last line has none.
    std::optional<std::string_view> next() {
        const auto end = rest_.find('\n');
        if (end == std::string_view::npos) {
            return std::nullopt;
        }
        const auto line = rest_.substr(0, end);
        rest_.remove_prefix(end + 1);
        ++number_;
        return line;
    }
    [[nodiscard]] bool at_end() const { return rest_.empty(); }
    [[nodiscard]] auto bad(std::string_view expected, std::optional<std::string_view> found) const {
        return fail(
            ErrorCode::bad_input, Stage::load,
            found ? fmt::format("listing: line {}: expected {}, found \"{}\"", number_, expected, *found)
                  : fmt::format("listing: line {}: expected {}, found the end", number_ + 1, expected));
    }

  private:
    std::string_view rest_;
    std::size_t number_ = 0;
};

// Takes the text up to the next space off the front of `rest`, and the space.
std::string_view take_field(std::string_view& rest) {
    const auto end = std::min(rest.find(' '), rest.size());
    const auto field = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return field;
}

bool parse_number(std::string_view field, std::uint32_t& value) {
    const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
    return error == std::errc() && end == field.data() + field.size() && !field.empty() &&
           (field.size() == 1 || field.front() != '0');
}

// Exactly eight hexadecimal digits.
bool parse_word(std::string_view field, std::uint32_t& word) {
    if (field.size() != 8 || field.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
        return false;
    }
    std::from_chars(field.data(), field.data() + field.size(), word, 16);
    return true;
}

bool is_printable(std::string_view text) {
    return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// An instruction's text: printable, neither empty nor with space at an end or doubled.
bool is_instruction_text(std::string_view text) {
    return !text.empty() && is_printable(text) && text.front() != ' ' && text.back() != ' ' &&
           text.find("  ") == std::string_view::npos;
}

bool parse_code_line(std::string_view line, ListingLine& parsed) {
    std::string_view rest = line;
    if (!parse_number(take_field(rest), parsed.offset)) {
        return false;
    }
    // A mnemonic is never eight hexadecimal digits, so the words end where the first field is something else.
    while (parsed.num_words < kMostWords) {
        std::string_view ahead = rest;
        if (!parse_word(take_field(ahead), parsed.words[parsed.num_words])) {
            break;
        }
        ++parsed.num_words;
        rest = ahead;
    }
    parsed.text = rest;
    return parsed.num_words > 0 && is_instruction_text(parsed.text);
}

Result<void> parse_head(Reader& reader, Listing& listing) {
    auto line = reader.next();
    if (line != kFirstLine) {
        return reader.bad(fmt::format("\"{}\"", kFirstLine), line);
    }
    line = reader.next();
    std::string_view rest = line.value_or("");
    if (take_field(rest) != "target" || rest.empty() || !is_printable(rest) || rest.find(' ') != rest.npos) {
        return reader.bad("\"target NAME\"", line);
    }
    listing.target = rest;

    line = reader.next();
    rest = line.value_or("");
    if (take_field(rest) != "text-sha256") {
        return reader.bad("\"text-sha256 DIGEST\"", line);
    }
    auto digest = Digest::from_hex(rest);
    if (!digest) {
        return reader.bad("a digest of 64 hexadecimal digits", line);
    }
    listing.text_digest = *digest;

    line = reader.next();
    rest = line.value_or("");
    if (take_field(rest) != "text-bytes" || !parse_number(rest, listing.text_bytes) ||
        listing.text_bytes % kWordBytes != 0) {
        return reader.bad("\"text-bytes N\", a multiple of 4", line);
    }
    return {};
}

// The kernels, and the line "code" that ends them.
Result<void> parse_kernels(Reader& reader, Listing& listing) {
    while (true) {
        const auto line = reader.next();
        if (line == "code") {
            return {};
        }
        std::string_view rest = line.value_or("");
        ListingKernel kernel;
        const bool shaped = take_field(rest) == "kernel" && parse_number(take_field(rest), kernel.offset) &&
                            !rest.empty() && is_printable(rest) && rest.find(' ') == rest.npos;
        if (!shaped || kernel.offset >= listing.text_bytes || kernel.offset % kWordBytes != 0 ||
            (!listing.kernels.empty() && kernel.offset <= listing.kernels.back().offset)) {
            return reader.bad("\"code\" or \"kernel OFFSET NAME\" with ascending offsets inside of .text",
                              line);
        }
        kernel.name = rest;
        listing.kernels.push_back(kernel);
    }
}

Result<void> parse_code(Reader& reader, Listing& listing) {
    std::uint32_t offset = 0;
    auto kernel = listing.kernels.begin();
    while (offset < listing.text_bytes) {
        const auto line = reader.next();
        ListingLine parsed;
        if (!line || !parse_code_line(*line, parsed) || parsed.offset != offset ||
            parsed.num_words > (listing.text_bytes - offset) / kWordBytes) {
            return reader.bad(fmt::format("\"{} WORDS INSTRUCTION\"", offset), line);
        }
        if (kernel != listing.kernels.end() && kernel->offset == offset) {
            ++kernel;
        }
        offset += parsed.num_words * kWordBytes;
        listing.lines.push_back(parsed);
        if (kernel != listing.kernels.end() && kernel->offset < offset) {
            return reader.bad(
                fmt::format("an instruction at {}, where kernel {} begins", kernel->offset, kernel->name),
                line);
        }
    }
    if (!reader.at_end()) {
        return reader.bad(fmt::format("the end after {} bytes of code", listing.text_bytes), reader.next());
    }
    return {};
}

}  // namespace

Result<Listing> parse_listing(std::string_view text) {
    Listing listing;
    Reader reader(text);
    for (auto* part : {&parse_head, &parse_kernels, &parse_code}) {
        if (auto parsed = part(reader, listing); !parsed) {
            return fail(parsed);
        }
    }
    return listing;
}

Result<std::string> make_listing(const CodeObject& object, std::string_view code_lines) {
    std::string listing = fmt::format("{}\ntarget {}\ntext-sha256 {}\ntext-bytes {}\n", kFirstLine,
                                      object.target, sha256(object.text).hex(), object.text.size());
    std::vector<const KernelInfo*> kernels;
    for (const auto& kernel : object.kernels) {
        kernels.push_back(&kernel);
    }
    std::sort(kernels.begin(), kernels.end(),
              [](const auto* a, const auto* b) { return a->entry_address < b->entry_address; });
    for (const auto* kernel : kernels) {
        fmt::format_to(std::back_inserter(listing), "kernel {} {}\n",
                       kernel->entry_address - object.text_address, kernel->name);
    }
    listing += "code\n";
    listing += code_lines;
    if (auto parsed = parse_listing(listing); !parsed) {
        return fail(parsed);
    }
    return listing;
}

}  // namespace kiln::compile
