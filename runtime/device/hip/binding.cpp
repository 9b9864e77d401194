#include "runtime/device/hip/binding.hpp"

#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::device::hip {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLibraryName = "libamdhip64.so";
constexpr const char* kKernelDriver = "/dev/kfd";

struct Copy {
    std::string path;
    void* handle = nullptr;
    bool simulated = false;
};

tl::unexpected<Error> refuse(std::string message) {
    return fail(ErrorCode::environment, Stage::device, std::move(message));
}

std::string file_of(void* handle) {
    struct link_map* map = nullptr;
    return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr ? map->l_name : std::string();
}

std::vector<Copy> find_copies() {
    std::vector<std::string> names;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
            const std::string_view name = info->dlpi_name != nullptr ? info->dlpi_name : "";
            const auto base = name.substr(name.rfind('/') + 1);
            if (base.starts_with(kLibraryName)) {
                static_cast<std::vector<std::string>*>(out)->emplace_back(name);
            }
            return 0;
        },
        &names);
    std::vector<Copy> copies;
    for (auto& name : names) {
        if (void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD); handle != nullptr) {
            copies.push_back({std::move(name), handle, dlsym(handle, "kiln_sim_take_counts") != nullptr});
        }
    }
    return copies;
}

// A look-alike stands for HIP only where the program itself put it in HIP's place; one that kiln opened for a
// simulated device is seen by nobody else.
bool in_global_scope(const Copy& copy) {
    void* const symbol = dlsym(RTLD_DEFAULT, "kiln_sim_take_counts");
    return symbol != nullptr && symbol == dlsym(copy.handle, "kiln_sim_take_counts");
}

std::vector<Copy> hip_copies() {
    auto copies = find_copies();
    std::erase_if(copies, [](const Copy& copy) { return copy.simulated && !in_global_scope(copy); });
    return copies;
}

std::string list(const std::vector<Copy>& copies) {
    std::vector<std::string_view> paths;
    for (const auto& copy : copies) {
        paths.push_back(copy.path);
    }
    return fmt::format("{}", fmt::join(paths, ", "));
}

Result<std::shared_ptr<const Library>> adopt(void* handle) {
    static std::mutex mutex;
    static std::vector<std::pair<void*, std::shared_ptr<const Library>>> known;  // protected by mutex
    const std::scoped_lock lock(mutex);
    for (const auto& [seen, library] : known) {
        if (seen == handle) {
            return library;
        }
    }
    auto library = std::make_shared<Library>();
    library->path = file_of(handle);
    auto api = resolve(handle, library->path);
    if (!api) {
        return fail(api);
    }
    library->api = *api;
    const hipError_t error = library->api.hipGetDeviceCount(&library->num_devices);
    if (error != hipSuccess || library->num_devices <= 0) {
        library->api.hipGetLastError();
        return refuse(fmt::format("{} reports no device: {}", library->path.string(),
                                  error != hipSuccess ? describe(library->api, error) : "the count is 0"));
    }
    known.emplace_back(handle, library);
    return library;
}

Result<std::shared_ptr<const Library>> load(const std::string& name) {
    void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        const char* const why = dlerror();
        return refuse(why != nullptr ? why : fmt::format("{} can not be loaded", name));
    }
    return adopt(handle);
}

Result<std::shared_ptr<const Library>> bind_named(const std::string& name) {
    const auto copies = hip_copies();
    if (copies.empty()) {
        return load(name);
    }
    if (void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD); handle != nullptr) {
        return adopt(handle);
    }
    return refuse(fmt::format(
        "{} was asked for (configuration or KILN_HIP_LIBRARY), but the process already holds {}; two "
        "copies of the HIP runtime do not work in one process",
        name, list(copies)));
}

std::string asked_for(const DriverConfig& config) {
    if (!config.hip_library.empty()) {
        return config.hip_library.string();
    }
    const char* const value = std::getenv("KILN_HIP_LIBRARY");
    return value != nullptr ? value : "";
}

// Rules 1 and 2; nothing when neither applies.
std::optional<Result<std::shared_ptr<const Library>>> bind_settled(const DriverConfig& config) {
    if (const auto name = asked_for(config); !name.empty()) {
        return bind_named(name);
    }
    const auto copies = hip_copies();
    if (copies.size() > 1) {
        return refuse(fmt::format(
            "the process holds {} copies of the HIP runtime: {}; KILN_HIP_LIBRARY says which one to use",
            copies.size(), list(copies)));
    }
    if (copies.size() == 1) {
        return adopt(copies.front().handle);
    }
    return std::nullopt;
}

Result<std::shared_ptr<const Library>> load_installed() {
    std::vector<std::string> reasons;
    for (const char* name : {"libamdhip64.so.7", "libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so.7",
                             "/opt/rocm/lib/libamdhip64.so.6"}) {
        // By bare name the loader would hand out our own look-alike where it was opened before.
        auto library = load(name);
        if (library && !(*library)->api.simulated()) {
            return library;
        }
        reasons.push_back(library ? fmt::format("{}: the simulator's own", name) : library.error().message);
    }
    return refuse(fmt::format("no HIP runtime with a device: {}", fmt::join(reasons, "; ")));
}

Result<std::shared_ptr<const Library>> bind_hip(const DriverConfig& config) {
    if (auto settled = bind_settled(config)) {
        return *std::move(settled);
    }
    return load_installed();
}

Result<std::shared_ptr<const Library>> bind_simulator(const DriverConfig& config) {
    std::vector<std::string> reasons;
    const auto use = [&](const std::string& path) -> std::shared_ptr<const Library> {
        auto library = load(path);
        if (library && (*library)->api.simulated()) {
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
    for (const auto& copy : find_copies()) {
        if (copy.simulated) {
            return adopt(copy.handle);
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

Result<std::shared_ptr<const Library>> bind_automatic(const DriverConfig& config) {
    auto settled = bind_settled(config);
    // Which of several copies is meant, or that a named one can not be had, is for a person to settle: no
    // falling back.
    const bool undecided = settled && !*settled && (!asked_for(config).empty() || hip_copies().size() > 1);
    if (settled && (*settled || undecided)) {
        return *std::move(settled);
    }
    std::string why;
    if (settled) {
        why = settled->error().message;
    } else if (std::error_code error; !fs::exists(kKernelDriver, error)) {
        why = fmt::format("no AMD GPU: {} does not exist", kKernelDriver);
    } else if (auto library = load_installed()) {
        return library;
    } else {
        why = library.error().message;
    }
    auto simulator = bind_simulator(config);
    if (!simulator) {
        return refuse(fmt::format("{}; {}", why, simulator.error().message));
    }
    return simulator;
}

}  // namespace

Result<std::shared_ptr<const Library>> bind(const DriverConfig& config) {
    // Two threads that bind at once must not load two copies.
    static std::mutex mutex;
    const std::scoped_lock lock(mutex);
    switch (config.driver) {
        case Driver::hip:
            return bind_hip(config);
        case Driver::sim:
            return bind_simulator(config);
        case Driver::automatic:
            break;
    }
    return bind_automatic(config);
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
