#include "runtime/tuned_config/kernel_names.hpp"

#include <charconv>
#include <cstdint>
#include <optional>
#include <system_error>
#include <vector>

#include <fmt/format.h>

namespace kiln::tuned_config {
namespace {

constexpr std::string_view kFirst = "flydsl_mxmoe_g1_a4w4_";
constexpr std::string_view kSecond = "flydsl_mxmoe_g2_a4w4_";
constexpr std::string_view kTile = "x256x256";

// What stands behind the stem: the tile's rows, and the words between underscores.
struct Parts {
    std::int64_t block_m = 0;
    std::vector<std::string_view> words;
};

std::optional<Parts> split(std::string_view name, std::string_view stem) {
    if (!name.starts_with(stem)) {
        return std::nullopt;
    }
    name.remove_prefix(stem.size());
    Parts parts;
    const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), parts.block_m);
    name.remove_prefix(static_cast<std::size_t>(stop - name.data()));
    if (error != std::errc() || !name.starts_with(kTile)) {
        return std::nullopt;
    }
    name.remove_prefix(kTile.size());
    while (name.starts_with('_')) {
        name.remove_prefix(1);
        const auto end = name.find('_');
        parts.words.push_back(name.substr(0, end));
        name.remove_prefix(parts.words.back().size());
    }
    return name.empty() ? std::optional(std::move(parts)) : std::nullopt;
}

std::string no_kernel(std::string_view column, std::string_view name) {
    return fmt::format("{}: no kernel here stands for \"{}\"", column, name);
}

std::string no_word(std::string_view column, std::string_view word, std::string_view name) {
    return fmt::format("{}: nothing here does what \"{}\" says in \"{}\"", column, word, name);
}

}  // namespace

tl::expected<tables::Constants, std::string> constants_of(const KernelNames& names) {
    const auto first = split(names.first, kFirst);
    if (!first) {
        return tl::unexpected(no_kernel("kernelName1", names.first));
    }
    const auto second = split(names.second, kSecond);
    if (!second) {
        return tl::unexpected(no_kernel("kernelName2", names.second));
    }
    if (first->block_m != second->block_m) {
        return tl::unexpected(fmt::format("kernelName1 has tiles of {} rows, kernelName2 of {}",
                                          first->block_m, second->block_m));
    }
    tables::Constants constants = {
        {"block_m", first->block_m}, {"f16in", 0}, {"g1_nt", 0}, {"g2", 1}, {"g2_nt", 0}};
    for (const auto word : first->words) {
        if (word != "f16in" && word != "nt") {
            return tl::unexpected(no_word("kernelName1", word, names.first));
        }
        constants.insert_or_assign(word == "nt" ? "g1_nt" : "f16in", 1);
    }
    for (const auto word : second->words) {
        if (word == "nt") {
            constants.insert_or_assign("g2_nt", 1);
        } else if (word == "atomic" || word == "nonatomic") {
            constants.insert_or_assign("g2", word == "atomic" ? 0 : 1);
        } else {
            return tl::unexpected(no_word("kernelName2", word, names.second));
        }
    }
    return constants;
}

tl::expected<KernelNames, std::string> names_of(const tables::Constants& constants) {
    const auto value = [&](std::string_view name) {
        const auto found = constants.find(name);
        return found == constants.end() ? std::int64_t{-1} : found->second;
    };
    if (value("g2") == 2) {
        return tl::unexpected(std::string("g2=2: nonatomic with its combine fused has no published name"));
    }
    const auto word = [&](std::string_view name, std::string_view text) {
        return value(name) == 1 ? text : std::string_view();
    };
    KernelNames names = {fmt::format("{}{}{}{}{}", kFirst, value("block_m"), kTile, word("f16in", "_f16in"),
                                     word("g1_nt", "_nt")),
                         fmt::format("{}{}{}{}{}", kSecond, value("block_m"), kTile,
                                     value("g2") == 0 ? "_atomic" : "", word("g2_nt", "_nt"))};
    // Constants that the names do not tell would be lost.
    if (const auto again = constants_of(names); !again || *again != constants) {
        return tl::unexpected(std::string("its constants are not those that a name of the form tells"));
    }
    return names;
}

}  // namespace kiln::tuned_config
