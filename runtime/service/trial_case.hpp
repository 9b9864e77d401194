// What a trial has to know of an operator: the arrays of a launch, how to launch them, and what is right.
//
// One object holds inputs and reference of one problem for up to so many tokens, made from a seed. What
// belongs to a token does not depend on how many follow it, so a case of fewer tokens is the head of one of
// more. Not thread safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "runtime/device/device.hpp"
#include "runtime/service/plan.hpp"

namespace kiln::service {

// A part of an array, at so many bytes from its beginning.
struct TrialPart {
    std::size_t offset = 0;
    ByteView bytes;
};

// An array that a launch reads, exactly as large as it may be read.
struct TrialInput {
    std::string_view name;
    ByteView bytes;  // lives as long as the case
    // Of one more token: rows of NaN (a number far out of range where it is read as an integer) follow those
    // of the case when a kernel is to be caught that reads them and lets it show. 0 for weights.
    std::size_t token_bytes = 0;
    // In place of `bytes`, weights of which a launch reads no more than this: the size of the whole, which is
    // not written elsewhere.
    std::size_t whole_bytes = 0;
    std::vector<TrialPart> parts = {};
};

// An array that a launch writes, all of it but for what the operator leaves alone.
struct TrialOutput {
    std::string_view name;
    std::size_t bytes = 0;
    std::size_t element_bytes = 1;       // what differences are counted in
    std::byte before = std::byte{0xff};  // what fills it before a launch: NaN, or no legal value, or zeros
};

// Where the arrays lie, in the order in which the case lists them.
struct TrialPointers {
    std::span<void* const> weights;
    std::span<void* const> inputs;
    std::span<void* const> outputs;
    void* workspace = nullptr;  // null where the plan needs none
};

struct TrialVerdict {
    double error = 0;  // in the operator's own measure
    double bound = 0;
    bool passed = false;
    std::string remark;  // "3 of 81920 differ"
};

class TrialCase {
  public:
    virtual ~TrialCase() = default;

    // The most tokens that there are inputs for.
    [[nodiscard]] virtual std::int64_t max_m() const = 0;

    // What no launch changes and M does not touch: loaded once.
    [[nodiscard]] virtual std::vector<TrialInput> weights() const = 0;
    [[nodiscard]] virtual std::vector<TrialInput> inputs(std::int64_t m) const = 0;
    // Also asked for a few more tokens than there are inputs for.
    [[nodiscard]] virtual std::vector<TrialOutput> outputs(std::int64_t m) const = 0;

    [[nodiscard]] virtual kiln_status launch(const Plan& plan, device::Stream stream, std::int64_t m,
                                             const TrialPointers& at) const = 0;

    // Of what one launch of m tokens left in each output, where the bucket served it: what is right may be a
    // matter of its template.
    [[nodiscard]] virtual TrialVerdict compare(const PlanBucket& bucket, std::int64_t m,
                                               std::span<const Bytes> outputs) const = 0;
};

// The elements of an output.
template <class T>
[[nodiscard]] std::span<const T> elements_of(const Bytes& output) {
    return {reinterpret_cast<const T*>(output.data()), output.size() / sizeof(T)};
}

}  // namespace kiln::service
