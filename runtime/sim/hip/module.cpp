#include "runtime/sim/hip/module.hpp"

#include <utility>

#include <fmt/format.h>

#include "runtime/sim/hip/image.hpp"
#include "runtime/sim/hip/listing_source.hpp"

namespace kiln::sim::hip {

hipError_t LoadedModule::load(Runtime& runtime, SimDevice& device, ByteView image,
                              std::shared_ptr<LoadedModule>& module, std::string& detail) {
    const FoundImage found = find_image(image);
    if (found.error != hipSuccess) {
        detail = found.error == hipErrorNoBinaryForGpu
                     ? fmt::format("the offload bundle holds no image for {}", kDeviceTarget)
                     : "expected a code object (ELF) or an offload bundle of clang's";
        return found.error;
    }
    auto code_object = compile::read_code_object(found.code_object);
    if (!code_object) {
        detail = std::move(code_object.error().message);
        return hipErrorInvalidImage;
    }
    if (!serves_device(code_object->target)) {
        detail =
            fmt::format("the code object is for {}, the device is {}", code_object->target, kDeviceTarget);
        return hipErrorNoBinaryForGpu;
    }
    const auto& places = this_thread().places;
    auto listing = listing_of(found.code_object, places.empty() ? ListingPlaces{} : places.back());
    if (!listing) {
        detail = fmt::format("no disassembly to execute: {}", listing.error().message);
        return hipErrorSharedObjectInitFailed;
    }
    auto program = Program::load(found.code_object, *listing);
    if (!program) {
        detail = std::move(program.error().message);
        return hipErrorInvalidImage;
    }
    auto loaded = std::make_shared<LoadedModule>(runtime, device, *std::move(program));
    for (auto& info : code_object->kernels) {
        auto function = std::make_shared<LoadedFunction>();
        function->module = loaded;
        function->device = &device;
        function->kernel = loaded->program_->find(info.name);
        if (function->kernel == nullptr) {
            detail = fmt::format("the metadata names the kernel {}, the code has none", info.name);
            return hipErrorInvalidImage;
        }
        function->explicit_bytes = compile::explicit_bytes(info.arguments);
        function->info = std::move(info);
        auto name = function->info.name;
        loaded->functions_.emplace(std::move(name), std::move(function));
    }
    module = std::move(loaded);
    return hipSuccess;
}

LoadedModule::LoadedModule(Runtime& runtime, SimDevice& device, std::shared_ptr<const Program> program)
    : runtime_(runtime), device_(device), program_(std::move(program)) {
    const ByteView image = program_->image();
    device_.memory().admit(image.data(), image.size());
    runtime_.allocations.insert({.begin = reinterpret_cast<std::uintptr_t>(image.data()),
                                 .bytes = image.size(),
                                 .type = hipMemoryTypeDevice,
                                 .device = device_.ordinal()});
}

LoadedModule::~LoadedModule() {
    const ByteView image = program_->image();
    runtime_.allocations.erase(image.data());
    device_.memory().withdraw(image.data());
}

std::shared_ptr<const LoadedFunction> LoadedModule::find(std::string_view name) const {
    const auto found = functions_.find(name);
    return found != functions_.end() ? found->second : nullptr;
}

}  // namespace kiln::sim::hip
