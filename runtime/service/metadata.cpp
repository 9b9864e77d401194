#include "runtime/service/metadata.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "runtime/compile/target_family.hpp"

namespace kiln::service {

namespace {

const compile::KernelInfo* find_kernel(const compile::CodeObject& code_object, const std::string& name) {
    const auto found = std::find_if(code_object.kernels.begin(), code_object.kernels.end(),
                                    [&](const compile::KernelInfo& kernel) { return kernel.name == name; });
    return found != code_object.kernels.end() ? &*found : nullptr;
}

bool is_cubin(const compile::CodeObject& code_object) {
    return compile::family_of(code_object.target) == compile::Family::cuda;
}

nlohmann::json describe_amdgpu(const compile::KernelInfo& kernel) {
    nlohmann::json arguments = nlohmann::json::array();
    for (const compile::KernelArgument& argument : kernel.arguments) {
        if (!argument.is_hidden()) {
            arguments.push_back({{"name", argument.name},
                                 {"offset", argument.offset},
                                 {"size", argument.size},
                                 {"kind", argument.value_kind}});
        }
    }
    return {{"vgprs", kernel.vgprs},
            {"agprs", kernel.agprs},
            {"sgprs", kernel.sgprs},
            {"vgpr_spills", kernel.vgpr_spills},
            {"sgpr_spills", kernel.sgpr_spills},
            {"lds_bytes", kernel.lds_bytes},
            {"scratch_bytes", kernel.scratch_bytes},
            {"arguments", std::move(arguments)}};
}

// In CUDA's words; what a cubin does not say is not there.
nlohmann::json describe_cuda(const compile::KernelInfo& kernel) {
    nlohmann::json arguments = nlohmann::json::array();
    for (const compile::KernelArgument& argument : kernel.arguments) {
        arguments.push_back({{"offset", argument.offset}, {"size", argument.size}});
    }
    return {{"registers", kernel.vgprs},
            {"shared_bytes", kernel.lds_bytes},
            {"stack_bytes", kernel.scratch_bytes},
            {"cluster", kernel.cluster},
            {"arguments", std::move(arguments)}};
}

}  // namespace

std::string describe_artifact(const operators::Specialisation& specialisation,
                              const compile::CodeObject& code_object, double compile_seconds) {
    nlohmann::json problem = nlohmann::json::object();
    for (const auto& [name, value] : specialisation.problem) {
        std::visit([&, &field = name](const auto& v) { problem[field] = v; }, value);
    }
    nlohmann::json constants = nlohmann::json::object();
    for (const auto& [name, value] : specialisation.bucket.constants) {
        constants[name] = value;
    }
    nlohmann::json document{
        {"kernel", specialisation.kernel_name},
        {"operator", specialisation.op->name()},
        {"problem", std::move(problem)},
        {"max_m", specialisation.bucket.max_m},
        {"template", specialisation.source_template->id()},
        {"constants", std::move(constants)},
        {"target", specialisation.request.target},
        {"options", specialisation.request.options},
        {"compile_seconds", std::round(compile_seconds * 1e6) / 1e6},
    };
    nlohmann::json kernels = nlohmann::json::array();
    for (const operators::KernelLaunch& wanted : specialisation.kernels) {
        if (const compile::KernelInfo* kernel = find_kernel(code_object, wanted.symbol)) {
            kernels.push_back(is_cubin(code_object) ? describe_cuda(*kernel) : describe_amdgpu(*kernel));
            kernels.back().update({{"kernel", kernel->name},
                                   {"max_threads", kernel->max_threads},
                                   {"kernarg_bytes", kernel->kernarg_bytes}});
        }
    }
    if (!kernels.empty()) {
        document["code_bytes"] = code_object.text.size();
    }
    if (specialisation.kernels.size() > 1) {
        document["kernels"] = std::move(kernels);
    } else if (!kernels.empty()) {
        document.update(kernels.front());
    }
    return document.dump();
}

namespace {

Result<void> check_kernel(const operators::Specialisation& specialisation,
                          const operators::KernelLaunch& launch, const compile::CodeObject& code_object) {
    const auto differs = [&](const std::string& what) {
        return fail(ErrorCode::load_failed, Stage::load,
                    fmt::format("{} ({}): {}", launch.symbol, specialisation.source_template->id(), what));
    };
    const compile::KernelInfo* kernel = find_kernel(code_object, launch.symbol);
    if (kernel == nullptr) {
        return differs("the code object has no kernel of that name");
    }
    std::vector<compile::KernelArgument> found;
    std::copy_if(kernel->arguments.begin(), kernel->arguments.end(), std::back_inserter(found),
                 [](const compile::KernelArgument& argument) { return !argument.is_hidden(); });
    const auto wanted = specialisation.source_template->kernargs().arguments;
    const bool has_names = !is_cubin(code_object);
    for (std::size_t i = 0; i < std::min(wanted.size(), found.size()); ++i) {
        if ((has_names && wanted[i].name != found[i].name) || wanted[i].offset != found[i].offset ||
            wanted[i].size != found[i].size) {
            return differs(fmt::format("argument {}: expected {} at {}, {} bytes; found {} at {}, {} bytes",
                                       i, wanted[i].name, wanted[i].offset, wanted[i].size,
                                       found[i].name.empty() ? "no name" : found[i].name, found[i].offset,
                                       found[i].size));
        }
    }
    if (wanted.size() != found.size()) {
        return differs(fmt::format("expected {} arguments, found {}", wanted.size(), found.size()));
    }
    const device::Dim3& block = launch.shape.block;
    const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
    if (threads > kernel->max_threads) {
        return differs(fmt::format("expected at least {} work-items in a work-group, found {}", threads,
                                   kernel->max_threads));
    }
    return {};
}

}  // namespace

Result<void> check_kernel_abi(const operators::Specialisation& specialisation,
                              const compile::CodeObject& code_object) {
    for (const operators::KernelLaunch& kernel : specialisation.kernels) {
        if (Result<void> checked = check_kernel(specialisation, kernel, code_object); !checked) {
            return checked;
        }
    }
    return {};
}

}  // namespace kiln::service
