// Which launches of fused_moe/mxmoe are tried, with what inputs, and what must come out.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "mxmoe_device.hpp"
#include "runtime/operators/fused_moe_reference.hpp"
#include "runtime/operators/mxmoe_reference.hpp"

namespace kiln::kernels_test {

// The couples of a first and a second product that a tuner tries, of any problem that mxmoe serves.
std::vector<tables::Constants> mxmoe_couples();

enum class Routing : std::uint8_t {
    mixed,       // as make_fused_moe_case() has it
    one_expert,  // every pair
    three        // unequal shares of three experts; there are others before, between and behind them
};
inline constexpr std::array kRoutings = {Routing::mixed, Routing::one_expert, Routing::three};

// A case of m tokens whose weights are those of every routing.
operators::FusedMoeArrays make_mxmoe_case(const operators::FusedMoeProblem& problem, std::int64_t m,
                                          std::uint64_t seed);
// The same with other ids and routing weights.
operators::FusedMoeArrays routed(operators::FusedMoeArrays arrays, Routing routing);

// Blocks of sorted rows that a launch of the first m tokens has.
std::int64_t count_blocks(const operators::FusedMoeArrays& arrays, std::int64_t m, std::int64_t block_m);

// The inputs of one problem, each with its reference, for up to most_m tokens.
class MxmoeInputs {
  public:
    MxmoeInputs(const MxmoeDevice& device, const operators::FusedMoeProblem& problem, std::int64_t most_m,
                std::uint64_t seed);

    [[nodiscard]] const LoadedMoe& weights() const { return weights_; }
    [[nodiscard]] const operators::FusedMoeArrays& arrays(Routing routing) const {
        return arrays_[static_cast<std::size_t>(routing)];
    }
    // Made when it is first asked for.
    [[nodiscard]] const operators::MxmoeReference& reference(Routing routing);

  private:
    std::array<operators::FusedMoeArrays, kRoutings.size()> arrays_;
    LoadedMoe weights_;
    std::array<operators::MxmoeReference, kRoutings.size()> references_;
};

// What holds of every launch: the bounds, and that nothing is left behind that should not be. The message of
// a failure names the kernels and the seed.
void check_mxmoe_run(const LoadedPipeline& loaded, const MxmoeDevice::Run& run,
                     const operators::FusedMoeArrays& arrays, const operators::MxmoeReference& reference,
                     std::int64_t m);

}  // namespace kiln::kernels_test
