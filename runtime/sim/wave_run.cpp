#include "runtime/sim/wave_run.hpp"

#include <algorithm>
#include <memory>

#include "runtime/sim/counts.hpp"
#include "runtime/sim/decode.hpp"
#include "runtime/sim/execute.hpp"
#include "runtime/sim/launch.hpp"
#include "runtime/sim/lines.hpp"

namespace kiln::sim {
namespace {

constexpr unsigned kFileRegisters = 256;

void decode_lines(Code& code, std::string_view instructions) {
    code.listing = instructions;
    code.listing += "\ns_endpgm\n";
    std::vector<compile::ListingLine> lines;
    const std::string_view all = code.listing;
    for (std::size_t begin = 0; begin < all.size();) {
        const std::size_t end = all.find('\n', begin);
        std::string_view text = all.substr(begin, end - begin);
        text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
        if (!text.empty()) {
            compile::ListingLine line;
            line.offset = static_cast<std::uint32_t>(4 * lines.size());
            line.num_words = 1;
            line.text = text;
            lines.push_back(line);
        }
        begin = end + 1;
    }
    decode_listing(code, lines, static_cast<std::uint32_t>(4 * lines.size()));
}

void set_row(Wave& w, unsigned row, const Lanes& lanes) {
    std::ranges::copy(lanes, w.rows[row]);
    w.defined[row] = ~std::uint64_t{0};
}

void set_scalar(Wave& w, unsigned number, std::uint32_t value) {
    w.sgprs[number] = value;
    w.sgprs_defined[number] = ~0u;
}

void collect_rows(const Wave& w, unsigned first, std::map<unsigned, Lanes>& rows) {
    for (unsigned n = 0; n < kFileRegisters; ++n) {
        std::uint64_t any = w.defined[first + n];
        for (const std::uint64_t bytes : w.bytes_defined[first + n]) {
            any |= bytes;
        }
        if (any != 0) {
            std::ranges::copy(w.rows[first + n], rows[n].begin());
        }
    }
}

WaveState collect(const Wave& w, const WorkGroup& group) {
    WaveState after;
    after.exec = w.exec();
    add(after.counts, w);
    if (w.sgpr64_defined(kVcc) == ~std::uint64_t{0}) {
        after.vcc = w.sgpr64(kVcc);
    }
    if (w.scc_defined) {
        after.scc = w.scc;
    }
    if (w.sgprs_defined[kM0] == ~0u) {
        after.m0 = w.sgprs[kM0];
    }
    collect_rows(w, 0, after.vgprs);
    collect_rows(w, kAccRow, after.agprs);
    for (const auto& [index, lanes] : after.vgprs) {
        if (w.defined[index] != ~std::uint64_t{0}) {
            after.vgpr_undefined[index] = ~w.defined[index];
        }
    }
    for (unsigned n = 0; n < kNumSgprs; ++n) {
        if (w.sgprs_defined[n] == ~0u) {
            after.sgprs[n] = w.sgprs[n];
        }
    }
    const auto* lds = reinterpret_cast<const std::byte*>(group.lds);
    after.lds.assign(lds, lds + group.lds_bytes);
    return after;
}

}  // namespace

Result<WaveState> run_wave(std::string_view instructions, const WaveState& before, const Memory* memory) {
    Code code;
    decode_lines(code, instructions);
    const std::size_t lds_bytes = before.lds.size() + before.lds_unwritten;
    std::vector<std::uint8_t> lds(lds_bytes + 1), written(lds_bytes + 1);
    std::ranges::copy(before.lds, reinterpret_cast<std::byte*>(lds.data()));
    std::fill_n(written.begin(), before.lds.size(), std::uint8_t{0xff});
    WorkGroup group;
    group.lds = lds.data();
    group.lds_written = written.data();
    group.lds_bytes = static_cast<std::uint32_t>(lds_bytes);
    group.memory = memory;
    LinesTouched touched;
    LineCounter lines(touched);
    group.lines = &lines;

    const std::unique_ptr<Wave[]> wave(new Wave[1]);
    Wave& w = wave[0];
    clear_wave(w, kFileRegisters, kFileRegisters, kNumSgprs);
    w.code = &code;
    w.group = &group;
    w.pc = 0;
    w.number = 0;
    w.set_exec(before.exec);
    for (const auto& [index, lanes] : before.vgprs) {
        set_row(w, index, lanes);
    }
    for (const auto& [index, lanes] : before.agprs) {
        set_row(w, kAccRow + index, lanes);
    }
    for (const auto& [index, value] : before.sgprs) {
        set_scalar(w, index, value);
    }
    if (before.vcc) {
        w.set_sgpr64(kVcc, *before.vcc);
    }
    if (before.m0) {
        set_scalar(w, kM0, *before.m0);
    }
    if (before.scc) {
        w.scc = *before.scc;
        w.scc_defined = true;
    }
    do {
        if (auto done = run_wave_turn(w, ~0u, "run_wave"); !done) {
            return tl::unexpected<Error>(std::move(done.error()));
        }
    } while (settle_group({&w, 1}) != GroupState::ended);
    return collect(w, group);
}

}  // namespace kiln::sim
