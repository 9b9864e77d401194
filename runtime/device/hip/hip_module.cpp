#include <string>

#include <fmt/format.h>

#include "runtime/device/hip/hip_device.hpp"

namespace kiln::device::hip {
namespace {

// What a refused load says: the code object's own fault, or something that a later attempt may find gone.
ErrorCode load_error(hipError_t error, bool switched) {
    return !switched || is_earlier_failure(error) ? ErrorCode::device_failed : ErrorCode::load_failed;
}

class HipModule final : public Module {
  public:
    HipModule(std::shared_ptr<const Library> library, int ordinal, hipModule_t module)
        : library_(std::move(library)), ordinal_(ordinal), module_(module) {}

    ~HipModule() override {
        const Api& api = library_->api;
        const RelaxedCapture relaxed(api);
        const CurrentDevice current(api, ordinal_);
        // On another device the unload would not be this module's: then it is left to the driver's end.
        if (current.error() != hipSuccess || api.hipModuleUnload(module_) != hipSuccess) {
            api.hipGetLastError();
        }
    }

    Result<Function> function(const std::string& name) override {
        const Api& api = library_->api;
        const RelaxedCapture relaxed(api);
        const CurrentDevice current(api, ordinal_);
        hipFunction_t function = nullptr;
        hipError_t error = current.error();
        if (error == hipSuccess) {
            error = api.hipModuleGetFunction(&function, module_, name.c_str());
        }
        if (error == hipSuccess && api.hipFuncGetAttribute != nullptr) {
            // Asking for a property makes a driver that loads lazily load now.
            int registers = 0;
            error = api.hipFuncGetAttribute(&registers, HIP_FUNC_ATTRIBUTE_NUM_REGS, function);
        }
        if (error != hipSuccess) {
            return tl::unexpected(driver_error(api, load_error(error, current.error() == hipSuccess),
                                               Stage::load, fmt::format("kernel {}", name), ordinal_, error));
        }
        return function;
    }

  private:
    const std::shared_ptr<const Library> library_;
    const int ordinal_;
    const hipModule_t module_;
};

}  // namespace

Result<std::unique_ptr<Module>> load_module(std::shared_ptr<const Library> library, int ordinal,
                                            ByteView code_object) {
    // hipModuleLoadData takes a pointer and believes what the image says of its own size.
    constexpr std::size_t kElfHeaderBytes = 64;
    if (code_object.size() < kElfHeaderBytes) {
        return fail(ErrorCode::load_failed, Stage::load,
                    fmt::format("code object for device {}: expected an ELF file, found {} bytes", ordinal,
                                code_object.size()));
    }
    const Api& api = library->api;
    const RelaxedCapture relaxed(api);
    const CurrentDevice current(api, ordinal);
    hipModule_t module = nullptr;
    hipError_t error = current.error();
    if (error == hipSuccess) {
        error = api.hipModuleLoadData(&module, code_object.data());
    }
    if (error != hipSuccess) {
        return tl::unexpected(driver_error(api, load_error(error, current.error() == hipSuccess), Stage::load,
                                           fmt::format("code object of {} bytes", code_object.size()),
                                           ordinal, error));
    }
    return std::make_unique<HipModule>(std::move(library), ordinal, module);
}

}  // namespace kiln::device::hip
