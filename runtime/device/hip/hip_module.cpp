#include <string>

#include <fmt/format.h>

#include "base/log.hpp"
#include "runtime/device/hip/hip_device.hpp"

namespace kiln::device::hip {
namespace {

// What a refused load says: the code object's own fault, or something that a later attempt may find gone.
ErrorCode load_error(hipError_t error, bool reached) {
    return !reached || is_earlier_failure(error) ? ErrorCode::device_failed : ErrorCode::load_failed;
}

// Why the driver can not be asked to load or unload, if so.
hipError_t entered(const RelaxedCapture& relaxed, const CurrentDevice& current) {
    return relaxed.error() != hipSuccess ? relaxed.error() : current.error();
}

class HipModule final : public Module {
  public:
    HipModule(std::shared_ptr<const Library> library, int ordinal, hipModule_t module)
        : library_(std::move(library)), ordinal_(ordinal), module_(module) {}

    ~HipModule() override {
        const Api& api = library_->api;
        const RelaxedCapture relaxed(api, Entering::insist);
        const CurrentDevice current(api, ordinal_, Entering::insist);
        hipError_t error = entered(relaxed, current);
        if (error != hipSuccess) {
            // On another device the unload would not be this module's, in another mode it would break a
            // capture: it is left to the driver's end.
            log::error("a module of device {} stays loaded: {}", ordinal_,
                       describe(api, static_cast<int>(error)));
        } else {
            error = api.hipModuleUnload(module_);
        }
        if (error != hipSuccess) {
            api.hipGetLastError();
        }
    }

    Result<Function> function(const std::string& name) override {
        const Api& api = library_->api;
        const RelaxedCapture relaxed(api);
        const CurrentDevice current(api, ordinal_);
        hipFunction_t function = nullptr;
        hipError_t error = entered(relaxed, current);
        const bool reached = error == hipSuccess;
        if (error == hipSuccess) {
            error = api.hipModuleGetFunction(&function, module_, name.c_str());
        }
        if (error == hipSuccess && api.hipFuncGetAttribute != nullptr) {
            // Asking for a property makes a driver that loads lazily load now.
            int registers = 0;
            error = api.hipFuncGetAttribute(&registers, HIP_FUNC_ATTRIBUTE_NUM_REGS, function);
        }
        if (error != hipSuccess) {
            return tl::unexpected(driver_error(api, load_error(error, reached), Stage::load,
                                               fmt::format("kernel {}", name), ordinal_, error));
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
    hipError_t error = entered(relaxed, current);
    const bool reached = error == hipSuccess;
    if (reached) {
        error = api.hipModuleLoadData(&module, code_object.data());
    }
    if (error != hipSuccess) {
        return tl::unexpected(driver_error(api, load_error(error, reached), Stage::load,
                                           fmt::format("code object of {} bytes", code_object.size()),
                                           ordinal, error));
    }
    return std::make_unique<HipModule>(std::move(library), ordinal, module);
}

}  // namespace kiln::device::hip
