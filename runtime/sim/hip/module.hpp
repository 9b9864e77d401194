// A code object loaded on one simulated device.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/compile/code_object.hpp"
#include "runtime/sim/hip/runtime.hpp"

namespace kiln::sim::hip {

class LoadedModule;

struct LoadedFunction {
    std::weak_ptr<const LoadedModule> module;
    SimDevice* device = nullptr;
    compile::KernelInfo info;
    const Kernel* kernel = nullptr;
    std::size_t explicit_bytes = 0;  // end of the last argument that the program passes
};

// Immutable. Unmaps its image from the device when destroyed.
class LoadedModule {
  public:
    // What hipModuleLoadData answers; `detail` gets what the error value does not say.
    [[nodiscard]] static hipError_t load(Runtime& runtime, SimDevice& device, ByteView image,
                                         std::shared_ptr<LoadedModule>& module, std::string& detail);
    LoadedModule(Runtime& runtime, SimDevice& device, std::shared_ptr<const Program> program);
    ~LoadedModule();
    LoadedModule(const LoadedModule&) = delete;
    LoadedModule& operator=(const LoadedModule&) = delete;

    [[nodiscard]] SimDevice& device() const { return device_; }
    // Null when there is no kernel of that name.
    [[nodiscard]] std::shared_ptr<const LoadedFunction> find(std::string_view name) const;
    [[nodiscard]] std::size_t num_functions() const { return functions_.size(); }
    [[nodiscard]] const auto& functions() const { return functions_; }

  private:
    Runtime& runtime_;
    SimDevice& device_;
    const std::shared_ptr<const Program> program_;
    std::map<std::string, std::shared_ptr<const LoadedFunction>, std::less<>> functions_;
};

}  // namespace kiln::sim::hip
