#include "moe_sort_device.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "runtime/operators/moe_sort.hpp"
#include "runtime/operators/moe_sort_templates.hpp"
#include "runtime/service/device_array.hpp"
#include "value_of.hpp"

namespace kiln::kernels_test {

namespace {

using operators::MoeSortProblem;
using service::DeviceArray;

constexpr std::size_t kMargin = 256;  // bytes; keeps every alignment

tables::Problem problem_of(const MoeSortProblem& problem) {
    return value_of(operators::complete(operators::moe_sort(),
                                        {{"experts", problem.experts},
                                         {"slots", problem.slots},
                                         {"block_m", problem.block_m},
                                         {"hidden", problem.hidden},
                                         {"quant", std::string(problem.quantised ? "mxfp8" : "none")}}));
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
        text.replace(at, from.size(), to);
    }
}

// An array of the result on the device, between margins.
template <class T>
class Output {
  public:
    Output(const std::shared_ptr<device::Device>& device, std::vector<T>& values)
        : device_(*device), values_(values) {
        Bytes bytes(kMargin + values.size() * sizeof(T) + kMargin, std::byte{MoeSortDevice::kFiller});
        memory_.emplace(value_of(DeviceArray::upload(device, bytes)));
    }
    [[nodiscard]] T* get() const {
        return reinterpret_cast<T*>(static_cast<std::byte*>(memory_->get()) + kMargin);
    }
    // Into the vector; true when the margins are as they were.
    [[nodiscard]] bool fetch() const {
        Bytes bytes(kMargin + values_.size() * sizeof(T) + kMargin);
        check(device_.copy_to_host(bytes, memory_->get(), nullptr));
        const std::span<std::byte> values = std::as_writable_bytes(std::span(values_));  // may be empty
        std::copy_n(bytes.begin() + kMargin, values.size(), values.begin());
        const auto untouched = [](std::byte byte) { return byte == std::byte{MoeSortDevice::kFiller}; };
        return std::all_of(bytes.begin(), bytes.begin() + kMargin, untouched) &&
               std::all_of(bytes.end() - kMargin, bytes.end(), untouched);
    }

  private:
    device::Device& device_;
    std::vector<T>& values_;
    std::optional<DeviceArray> memory_;
};

}  // namespace

const MoeSortDevice::Loaded& MoeSortDevice::load(std::string_view name, const MoeSortProblem& problem,
                                                 const std::pair<std::string, std::string>& change) {
    const std::int64_t most = name == "compact"       ? 64 / problem.slots
                              : name == "distributed" ? 256 / problem.slots
                                                      : operators::kMoeSortMostTokens;
    operators::Specialisation wanted = specialise_shape(operators::moe_sort(), problem_of(problem),
                                                        {most, "moe_sort/" + std::string(name), {}});
    const auto found = loaded_.find(wanted.kernel_name + change.first);
    if (found != loaded_.end()) {
        return found->second;
    }
    const std::string key = wanted.kernel_name + change.first;
    if (!change.first.empty()) {
        replace_all(wanted.request.source, change.first, change.second);
        for (compile::Header& header : wanted.request.headers) {
            replace_all(header.text, change.first, change.second);
        }
    }
    std::vector<operators::Specialisation> one;
    one.push_back(std::move(wanted));
    Built built = std::move(build(std::move(one)).front());
    auto module = value_of(device_->load(built.result.code_object));
    return loaded_.emplace(key, Loaded{std::move(built), std::move(module)}).first->second;
}

void MoeSortDevice::follow(const device::SimulationRules& rules) {
    check(device_->set_rules(rules));
}

MoeSortRun MoeSortDevice::run(std::string_view name, const operators::MoeSortArrays& arrays,
                              const std::pair<std::string, std::string>& change) {
    const MoeSortProblem& problem = arrays.problem;
    const Loaded& loaded = load(name, problem, change);
    const operators::Specialisation& wanted = loaded.built.specialisation;
    const operators::KernelTemplate& source = *wanted.source_template;

    MoeSortRun run;
    run.result = operators::filled_moe_sort_result(problem, arrays.m, kFiller);
    std::vector<DeviceArray> inputs;
    const auto upload = [&](const auto& values) -> void* {
        if (values.empty()) {
            return nullptr;
        }
        inputs.push_back(value_of(DeviceArray::upload(device_, std::as_bytes(std::span(values)))));
        return inputs.back().get();
    };
    // Nothing behind the last element.
    const std::size_t past_last =
        arrays.x.empty() ? 0 : static_cast<std::size_t>(arrays.ldx - problem.hidden);
    const Output num_valid(device_, run.result.num_valid);
    const Output sorted_expert_ids(device_, run.result.sorted_expert_ids);
    const Output sorted_ids(device_, run.result.sorted_ids);
    const Output sorted_weights(device_, run.result.sorted_weights);
    const Output moe_buf(device_, run.result.moe_buf);
    const Output q(device_, run.result.q);
    const Output q_scale(device_, run.result.q_scale);
    const operators::WorkspaceNeed need = source.workspace(wanted.problem, wanted.bucket, arrays.m);
    const Bytes zeros(static_cast<std::size_t>(need.zeroed));
    operators::Workspace workspace{.zeroed = upload(zeros)};
    if (need.scratch > 0) {
        inputs.push_back(value_of(DeviceArray::create(device_, static_cast<std::size_t>(need.scratch))));
        workspace.scratch = inputs.back().get();
        if (!change.first.empty()) {
            check(device_->fill(workspace.scratch, std::byte{0}, static_cast<std::size_t>(need.scratch),
                                nullptr));
        }
    }

    kiln_moe_sort_args args{};
    args.ids = static_cast<const std::int32_t*>(upload(arrays.ids));
    args.weights = static_cast<const float*>(upload(arrays.weights));
    args.x = upload(std::span(arrays.x).first(arrays.x.size() - past_last));
    args.ldx = arrays.ldx;
    args.sorted_ids = sorted_ids.get();
    args.sorted_weights = sorted_weights.get();
    args.sorted_expert_ids = sorted_expert_ids.get();
    args.num_valid = num_valid.get();
    args.moe_buf = moe_buf.get();
    args.q = q.get();
    args.q_scale = q_scale.get();
    REQUIRE(check_launch(problem, arrays.m, args) == KILN_OK);
    operators::MoeSortKernargs kernargs = pack(problem, arrays.m, args, workspace);

    (void)value_of(device_->take_counts());
    for (const operators::KernelLaunch& kernel : source.kernels(wanted.problem, wanted.bucket)) {
        const device::Function function = value_of(loaded.module->function(kernel.symbol));
        const int error =
            device_->launch(function, kernel.shape_for(arrays.m), nullptr, &kernargs, sizeof(kernargs));
        REQUIRE_MESSAGE(error == 0, device_->describe(error));
    }
    check(device_->synchronize(nullptr));
    run.counts = value_of(device_->take_counts());

    const std::array fetched{num_valid.fetch(),      sorted_expert_ids.fetch(), sorted_ids.fetch(),
                             sorted_weights.fetch(), moe_buf.fetch(),           q.fetch(),
                             q_scale.fetch()};
    run.margins_untouched = std::ranges::all_of(fetched, [](bool untouched) { return untouched; });
    if (need.zeroed > 0) {
        Bytes left(zeros.size());
        check(device_->copy_to_host(left, workspace.zeroed, nullptr));
        run.counters_zero = left == zeros;
    }
    return run;
}

}  // namespace kiln::kernels_test
