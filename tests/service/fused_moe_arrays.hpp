// The arrays of launches of `fused_moe` on a device, for tests that launch a plan themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kiln/kiln.h"
#include "runtime/operators/fused_moe_reference.hpp"
#include "runtime/service/device_array.hpp"
#include "runtime/service/launch.hpp"
#include "tests/service/simulator.hpp"

namespace kiln::test {

// Weights are those of all experts, of which only what the ids name is ever written: the rest costs nothing.
struct FusedMoeDeviceArrays {
    using DeviceArray = service::DeviceArray;

    std::vector<DeviceArray> weights, inputs;
    DeviceArray out, flag, workspace;
    std::int64_t ldx = 0;

    // For launches of up to host.m tokens, the workspace ready.
    static FusedMoeDeviceArrays make(const service::Plan& plan, const operators::FusedMoeArrays& host) {
        const auto& device = plan.shared_device();
        const auto upload = [&](const auto& values) {
            return well(DeviceArray::upload(device, std::as_bytes(std::span(values))));
        };
        const auto bytes = operators::fused_moe_bytes(host.problem);
        FusedMoeDeviceArrays arrays{
            {},
            {},
            well(DeviceArray::create(device, static_cast<std::size_t>(host.m * host.problem.hidden * 2))),
            upload(std::vector<std::int32_t>{0}),
            well(DeviceArray::create(device, static_cast<std::size_t>(plan.workspace_bytes(host.m)))),
            host.ldx};
        using operators::ExpertWeights;
        const auto experts = [&](std::size_t whole, std::size_t each, auto member) {
            DeviceArray array = well(DeviceArray::create(device, whole));
            for (const auto& [id, expert] : host.experts) {
                auto* at = static_cast<std::byte*>(array.get()) + static_cast<std::size_t>(id) * each;
                well(device->copy_to_device(at, std::as_bytes(std::span(expert.*member)), nullptr));
            }
            arrays.weights.push_back(std::move(array));
        };
        experts(bytes.w13, bytes.expert_w13, &ExpertWeights::w13);
        experts(bytes.w13_scale, bytes.expert_w13_scale, &ExpertWeights::w13_scale);
        experts(bytes.w2, bytes.expert_w2, &ExpertWeights::w2);
        experts(bytes.w2_scale, bytes.expert_w2_scale, &ExpertWeights::w2_scale);
        arrays.inputs.push_back(upload(host.x));
        arrays.inputs.push_back(upload(host.ids));
        arrays.inputs.push_back(upload(host.weights));
        const auto ready = plan.init_workspace(nullptr, arrays.workspace.get(), plan.workspace_bytes(host.m));
        REQUIRE(ready);
        return arrays;
    }

    [[nodiscard]] kiln_fused_moe_args args() const {
        kiln_fused_moe_args args{};
        args.x = inputs[0].get();
        args.ldx = ldx;
        args.w13 = weights[0].get();
        args.w13_scale = weights[1].get();
        args.w2 = weights[2].get();
        args.w2_scale = weights[3].get();
        args.ids = static_cast<const std::int32_t*>(inputs[1].get());
        args.weights = static_cast<const float*>(inputs[2].get());
        args.out = out.get();
        args.invalid_id = static_cast<std::int32_t*>(flag.get());
        args.workspace = workspace.get();
        return args;
    }
    template <class T>
    [[nodiscard]] static std::vector<T> read(const service::Plan& plan, const DeviceArray& array,
                                             std::size_t count) {
        std::vector<T> values(count);
        well(plan.device().copy_to_host(std::as_writable_bytes(std::span(values)), array.get(), nullptr));
        return values;
    }
};

}  // namespace kiln::test
