// Of which instructions a compiled kernel consists.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/compile/listing.hpp"

namespace kiln::kernels_test {

inline bool contains(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

// The texts of a listing, or of one kernel of it.
struct Instructions {
    explicit Instructions(std::string_view text, std::string_view kernel = {}) {
        const auto listing = compile::parse_listing(text);
        REQUIRE(listing.has_value());
        // Kernels lie one after the other, in the order in which they are listed.
        std::uint32_t begin = 0, end = listing->text_bytes;
        for (std::size_t i = 0; i < listing->kernels.size() && !kernel.empty(); ++i) {
            if (listing->kernels[i].name == kernel) {
                begin = listing->kernels[i].offset;
                end = i + 1 < listing->kernels.size() ? listing->kernels[i + 1].offset : end;
            }
        }
        for (const compile::ListingLine& line : listing->lines) {
            if (line.offset >= begin && line.offset < end) {
                texts.push_back(line.text);
            }
        }
    }
    template <class Predicate>
    std::int64_t count(Predicate matches) const {
        return std::count_if(texts.begin(), texts.end(), matches);
    }
    std::vector<std::string_view> texts;
};

}  // namespace kiln::kernels_test
