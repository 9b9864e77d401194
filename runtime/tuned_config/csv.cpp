#include "runtime/tuned_config/csv.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace kiln::tuned_config {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Bytes of the UTF-8 character at the front; 0 where there is none.
std::size_t character_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(0);
    const std::size_t length = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (length == 0 || first > 0xF4 || length > text.size()) {
        return 0;
    }
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0U) != 0x80U) {
            return 0;
        }
    }
    // Overlong forms, surrogates and what lies beyond U+10FFFF show in the second byte.
    const unsigned char second = length > 1 ? byte(1) : 0;
    const bool outside = (first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0) ||
                         (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90);
    return outside ? 0 : length;
}

class Reader {
  public:
    Reader(std::string_view source, std::string_view text) : source_(source), text_(text) {
        if (text_.starts_with(kByteOrderMark)) {
            text_.remove_prefix(kByteOrderMark.size());
        }
    }

    CsvText read() {
        while (!text_.empty() && read_.faults.empty()) {
            if (!take_line_end()) {
                read_record();
            }
        }
        return std::move(read_);
    }

  private:
    void read_record() {
        std::vector<Cell> cells;
        do {
            cells.push_back(text_.starts_with('"') ? read_quoted() : read_bare());
        } while (read_.faults.empty() && take(','));
        if (!read_.faults.empty()) {
            return;
        }
        if (!text_.empty() && !take_line_end()) {
            fault(place_, "a comma or the end of the line behind the closing quote", describe_next());
            return;
        }
        if (!read_.records.empty() && cells.size() != read_.records.front().size()) {
            fault(cells.front().position,
                  fmt::format("{} cells, as in the header", read_.records.front().size()),
                  fmt::format("{}", cells.size()));
            return;
        }
        read_.records.push_back(std::move(cells));
    }

    Cell read_bare() {
        Cell cell{{}, place_};
        while (!text_.empty() && text_.front() != ',' && text_.front() != '\n' &&
               !text_.starts_with("\r\n")) {
            if (text_.front() == '"') {
                fault(place_, "a cell with a quote in it to begin with one, and its own to be doubled",
                      "a quote inside a bare cell");
                return cell;
            }
            if (!take_character(cell)) {
                return cell;
            }
        }
        return cell;
    }

    Cell read_quoted() {
        Cell cell{{}, place_};
        take('"');
        while (!text_.empty()) {
            if (take('"')) {
                if (!text_.starts_with('"')) {
                    return cell;
                }
                take('"');
                cell.text += '"';
            } else if (text_.front() == '\n' || text_.starts_with("\r\n")) {
                cell.text += text_.starts_with('\r') ? "\r\n" : "\n";
                take_line_end();
            } else if (!take_character(cell)) {
                return cell;
            }
        }
        fault(cell.position, "a closing quote for the cell that begins here", "the end of the file");
        return cell;
    }

    bool take_character(Cell& cell) {
        const std::size_t length = character_length(text_);
        const auto first = static_cast<unsigned char>(text_.front());
        if (length == 0 || (first < 0x20 && first != '\t') || first == 0x7F) {
            fault(place_, "UTF-8 without control characters", describe_next());
            return false;
        }
        if (cell.text.size() + length > kMaxCell) {
            fault(cell.position, fmt::format("a cell of at most {} bytes", kMaxCell), "a longer one");
            return false;
        }
        cell.text += text_.substr(0, length);
        text_.remove_prefix(length);
        ++place_.column;
        return true;
    }

    bool take(char wanted) {
        if (!text_.starts_with(wanted)) {
            return false;
        }
        text_.remove_prefix(1);
        ++place_.column;
        return true;
    }

    bool take_line_end() {
        const std::size_t length = text_.starts_with('\n') ? 1 : text_.starts_with("\r\n") ? 2 : 0;
        if (length == 0) {
            return false;
        }
        text_.remove_prefix(length);
        place_ = {place_.line + 1, 1};
        return true;
    }

    std::string describe_next() const {
        const auto byte = static_cast<unsigned char>(text_.front());
        const std::size_t length = character_length(text_);
        return length == 0 || byte < 0x20 || byte == 0x7F ? fmt::format("the byte 0x{:02X}", byte)
                                                          : fmt::format("\"{}\"", text_.substr(0, length));
    }

    void fault(tables::Position position, std::string expected, std::string found) {
        read_.faults.push_back({source_, position, {}, std::move(expected), std::move(found)});
    }

    const std::string source_;
    std::string_view text_;  // what is left of it
    tables::Position place_;
    CsvText read_;
};

}  // namespace

CsvText read_csv(std::string_view source, std::string_view text) {
    return Reader(source, text).read();
}

std::string csv_record(std::span<const std::string> cells) {
    std::string record;
    for (const auto& cell : cells) {
        if (&cell != cells.data()) {
            record += ',';
        }
        // A record that is one empty cell would be an empty line.
        if (cell.find_first_of(",\"\r\n") == std::string::npos && !(cells.size() == 1 && cell.empty())) {
            record += cell;
            continue;
        }
        record += '"';
        for (const char character : cell) {
            record += character;
            if (character == '"') {
                record += '"';
            }
        }
        record += '"';
    }
    record += '\n';
    return record;
}

}  // namespace kiln::tuned_config
