// Rows as two flat lists, numbers and texts, so that a build can write them down as constants and a process
// take them up again without parsing. What belongs to a row is said once, for both ways.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/tables/table.hpp"

namespace kiln::shipped {

// Both archives: transfer() of all kinds is found by them, wherever it stands below.
class Writer {
  public:
    static constexpr bool kReads = false;

    std::int64_t number(std::int64_t value) {
        numbers_.push_back(value);
        return value;
    }
    // A text that was there before is there once.
    void text(const std::string& value) {
        const auto [known, is_new] = known_.emplace(value, texts_.size());
        if (is_new) {
            texts_.push_back(value);
        }
        number(static_cast<std::int64_t>(known->second));
    }

    [[nodiscard]] const std::vector<std::int64_t>& numbers() const { return numbers_; }
    [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }

  private:
    std::vector<std::int64_t> numbers_;
    std::vector<std::string> texts_;
    std::map<std::string, std::size_t> known_;
};

// Takes what a Writer gave, in the same order; anything else is undefined.
class Reader {
  public:
    static constexpr bool kReads = true;

    Reader(std::span<const std::int64_t> numbers, std::span<const std::string_view> texts)
        : numbers_(numbers), texts_(texts) {}

    std::int64_t number(std::int64_t /*ignored*/) { return numbers_[next_++]; }
    void text(std::string& value) { value = texts_[static_cast<std::size_t>(number(0))]; }

  private:
    std::span<const std::int64_t> numbers_;
    std::span<const std::string_view> texts_;
    std::size_t next_ = 0;
};

template <class Archive>
void transfer(Archive& archive, std::string& value) {
    archive.text(value);
}

template <class Archive, class Number>
requires std::integral<Number> || std::is_enum_v<Number>
void transfer(Archive& archive, Number& value) {
    value = static_cast<Number>(archive.number(static_cast<std::int64_t>(value)));
}

template <class Archive>
void transfer(Archive& archive, tables::FieldValue& value) {
    if (archive.number(static_cast<std::int64_t>(value.index())) == 0) {
        std::int64_t held = Archive::kReads ? 0 : std::get<std::int64_t>(value);
        transfer(archive, held);
        value = held;
    } else {
        std::string held = Archive::kReads ? std::string() : std::get<std::string>(value);
        transfer(archive, held);
        value = std::move(held);
    }
}

template <class Archive, class Value>
void transfer(Archive& archive, std::optional<Value>& value) {
    if (archive.number(value.has_value() ? 1 : 0) != 0) {
        if constexpr (Archive::kReads) {
            value.emplace();
        }
        transfer(archive, *value);
    }
}

template <class Archive, class Value, class Order>
void transfer(Archive& archive, std::map<std::string, Value, Order>& values) {
    const auto size = archive.number(static_cast<std::int64_t>(values.size()));
    if constexpr (Archive::kReads) {
        for (std::int64_t i = 0; i < size; ++i) {
            std::string name;
            transfer(archive, name);
            transfer(archive, values.emplace_hint(values.end(), std::move(name), Value())->second);
        }
    } else {
        for (auto& [name, value] : values) {
            archive.text(name);
            transfer(archive, value);
        }
    }
}

template <class Archive, class Value>
void transfer(Archive& archive, std::vector<Value>& values) {
    values.resize(static_cast<std::size_t>(archive.number(static_cast<std::int64_t>(values.size()))));
    for (Value& value : values) {
        transfer(archive, value);
    }
}

template <class Archive>
void transfer(Archive& archive, tables::FieldRange& range) {
    transfer(archive, range.min);
    transfer(archive, range.max);
}

template <class Archive>
void transfer(Archive& archive, tables::Bucket& bucket) {
    transfer(archive, bucket.max_m);
    transfer(archive, bucket.template_id);
    transfer(archive, bucket.constants);
    transfer(archive, bucket.budget.waves_per_simd);
    transfer(archive, bucket.budget.lds_bytes);
    transfer(archive, bucket.max_pairs);
}

template <class Archive>
void transfer(Archive& archive, tables::Row& row) {
    transfer(archive, row.operator_name);
    transfer(archive, row.problem);
    transfer(archive, row.open);
    transfer(archive, row.problems);
    transfer(archive, row.target.processor);
    transfer(archive, row.target.features);
    transfer(archive, row.cu_num);
    transfer(archive, row.buckets);
    transfer(archive, row.provenance.kind);
    transfer(archive, row.provenance.note);
    transfer(archive, row.provenance.document);
    transfer(archive, row.origin.file);
    transfer(archive, row.origin.line);
    transfer(archive, row.layer);
}

template <class Archive>
void transfer(Archive& archive, tables::RowLayer& layer) {
    transfer(archive, layer.kind);
    transfer(archive, layer.place);
    transfer(archive, layer.files);
    transfer(archive, layer.rows);
}

}  // namespace kiln::shipped
