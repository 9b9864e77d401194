#include "runtime/tune/kernel_work.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "runtime/compile/code_object.hpp"

namespace kiln::tune {

namespace {

// The kernels of one specialisation, without counts.
Result<void> add_kernels(service::Service& service, const operators::Specialisation& specialisation,
                         std::vector<KernelWork>& work) {
    const Result<service::ArtifactPtr> artifact = service.obtain(specialisation);
    if (!artifact) {
        return tl::unexpected<Error>(artifact.error());
    }
    const Result<compile::CodeObject> code_object = compile::read_code_object((*artifact)->code_object);
    if (!code_object) {
        return tl::unexpected<Error>(code_object.error());
    }
    for (const operators::KernelLaunch& launch : specialisation.kernels) {
        const auto kernel =
            std::ranges::find(code_object->kernels, launch.symbol, &compile::KernelInfo::name);
        if (kernel == code_object->kernels.end()) {
            return fail(ErrorCode::internal, Stage::load,
                        fmt::format("{} is not in its code", launch.symbol));
        }
        const device::Dim3& block = launch.shape.block;
        work.push_back(
            {.symbol = launch.symbol,
             .counts = {},
             .registers = kernel->vgprs,
             .waves_per_group =
                 (std::int64_t{block.x} * block.y * block.z + kernel->wavefront - 1) / kernel->wavefront,
             .lds_bytes = std::int64_t{kernel->lds_bytes} + launch.shape.dynamic_lds_bytes});
    }
    return {};
}

}  // namespace

Result<std::vector<KernelWork>> kernel_work(service::Service& service, const service::PlanBucket& bucket,
                                            std::span<const device::ExecutionCounts> launches) {
    std::vector<KernelWork> work;
    for (const operators::SpecialisedStage& stage : bucket.pipeline->stages) {
        if (Result<void> added = add_kernels(service, stage.specialisation, work); !added) {
            return fail(added);
        }
    }
    if (work.size() != launches.size()) {
        return fail(ErrorCode::internal, Stage::launch,
                    fmt::format("expected counts of the {} kernels of {}, found those of {} launches",
                                work.size(), bucket.kernel_name, launches.size()));
    }
    for (std::size_t i = 0; i < work.size(); ++i) {
        work[i].counts = launches[i];
    }
    return work;
}

}  // namespace kiln::tune
