#include "runtime/device/hip/binding.hpp"

#include <dlfcn.h>
#include <link.h>

#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/device/hip/hip_device.hpp"

namespace kiln::device::hip {
namespace {

namespace fs = std::filesystem;

constexpr const char* kInstalled[] = {"libamdhip64.so.7", "libamdhip64.so.6",
                                      "/opt/rocm/lib/libamdhip64.so.7", "/opt/rocm/lib/libamdhip64.so.6"};

tl::unexpected<Error> refuse(std::string message) {
    return fail(ErrorCode::environment, Stage::device, std::move(message));
}

Result<std::shared_ptr<driver::Library>> start(void* handle, const std::string& path) {
    auto api = resolve(handle, path);
    if (!api) {
        return fail(api);
    }
    auto library = std::make_shared<Library>();
    library->api = *api;
    library->simulated = api->simulated();
    const hipError_t error = api->hipGetDeviceCount(&library->num_devices);
    if (error != hipSuccess) {
        api->hipGetLastError();
    }
    if (error != hipSuccess || library->num_devices <= 0) {
        return refuse(fmt::format("{} reports no device: {}", path,
                                  error != hipSuccess ? describe(*api, error) : "the count is 0"));
    }
    return library;
}

}  // namespace

const driver::Family& family() {
    static constexpr driver::Family kHip{.what = "HIP runtime",
                                         .variable = "KILN_HIP_LIBRARY",
                                         .stem = "libamdhip64",
                                         .installed = kInstalled,
                                         .configured = &DriverConfig::hip_library,
                                         .start = start,
                                         .open = open_device};
    return kHip;
}

Result<driver::LibraryPointer> bind_simulator(const DriverConfig& config) {
    driver::Steps reasons;
    const auto use = [&](const std::string& path) -> driver::LibraryPointer {
        auto library = driver::load(family(), path);
        if (library && (*library)->simulated) {
            return *library;
        }
        reasons.push_back(library ? fmt::format("{} is not the simulator's libamdhip64", path)
                                  : library.error().message);
        return nullptr;
    };
    if (!config.sim_library.empty()) {
        if (auto library = use(config.sim_library.string())) {
            return library;
        }
        return refuse(fmt::format("the simulator: {}", fmt::join(reasons, "; ")));
    }
    for (const auto& copy : driver::find_copies(family().stem)) {
        if (copy.simulated) {
            return driver::adopt(family(), copy.handle);
        }
    }
    for (const auto& path : simulator_candidates()) {
        std::error_code error;
        if (!fs::exists(path, error)) {
            reasons.push_back(fmt::format("{} does not exist", path.string()));
        } else if (auto library = use(path.string())) {
            return library;
        }
    }
    return refuse(fmt::format("the simulator: {}", fmt::join(reasons, "; ")));
}

std::vector<fs::path> simulator_candidates() {
    Dl_info info{};
    struct link_map* map = nullptr;
    std::error_code error;
    if (dladdr1(reinterpret_cast<void*>(&simulator_candidates), &info, reinterpret_cast<void**>(&map),
                RTLD_DL_LINKMAP) == 0) {
        return {};
    }
    // The loader has no name for the main program.
    const bool in_program = map == nullptr || map->l_name == nullptr || *map->l_name == '\0';
    const fs::path self = fs::canonical(in_program ? "/proc/self/exe" : map->l_name, error);
    const fs::path folder = self.parent_path();
    std::vector<fs::path> candidates;
    for (const fs::path& place :
         {folder / "kiln", folder, folder.parent_path() / KILN_INSTALL_LIBDIR / "kiln",
          folder.parent_path() / "lib" / "kiln", folder.parent_path().parent_path() / "lib" / "kiln"}) {
        candidates.push_back(place / "sim" / "libamdhip64.so.7");
    }
    return candidates;
}

}  // namespace kiln::device::hip
