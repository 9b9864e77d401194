#include "runtime/device/hip/binding.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fork_guard.hpp"

namespace kiln::device::hip {
namespace {

namespace fs = std::filesystem;

constexpr const char* kKernelDriver = "/dev/kfd";

enum class Chosen { by_name, by_rule };

tl::unexpected<Error> refuse(std::string message) {
    return fail(ErrorCode::environment, Stage::device, std::move(message));
}

// What was bound, last first. Only ever grows, by whoever holds the lock of bind(), so that a child of a fork
// finds it whole.
struct Bound {
    std::shared_ptr<const Library> library;
    const Bound* next;
};
std::atomic<const Bound*> bound{nullptr};

struct BindLock {
    std::mutex mutex;
};

Result<std::shared_ptr<const Library>> adopt(LibraryHandle handle, Chosen chosen) {
    const bool named = chosen == Chosen::by_name;
    for (const Bound* known = bound; known != nullptr; known = known->next) {
        const auto& library = known->library;
        if (library->handle != handle) {
            continue;
        }
        if (library->generation != fork_generation()) {
            return refuse(
                fmt::format("{} was in use when this process was forked from its parent, and a HIP runtime "
                            "does not survive a fork: fork before the first use of a device, or start a "
                            "program of its own",
                            library->path.string()));
        }
        if (library->named == named) {
            return library;
        }
    }
    auto library = std::make_shared<Library>();
    library->path = file_of(handle.get());
    library->named = named;
    auto api = resolve(handle.get(), library->path);
    if (!api) {
        return fail(api);
    }
    library->api = *api;
    const hipError_t error = library->api.hipGetDeviceCount(&library->num_devices);
    if (error != hipSuccess) {
        library->api.hipGetLastError();
    }
    if (error != hipSuccess || library->num_devices <= 0) {
        return refuse(fmt::format("{} reports no device: {}", library->path.string(),
                                  error != hipSuccess ? describe(library->api, error) : "the count is 0"));
    }
    library->handle = std::move(handle);
    library->generation = fork_generation();
    bound = new Bound{library, bound};
    return library;
}

// Stays loaded whatever becomes of it: a HIP runtime does not survive being unloaded.
Result<LibraryHandle> open_library(const std::string& name) {
    void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        const char* const why = dlerror();
        return refuse(why != nullptr ? why : fmt::format("{} can not be loaded", name));
    }
    return LibraryHandle(handle, [](void*) {});
}

Result<std::shared_ptr<const Library>> load(const std::string& name, Chosen chosen) {
    auto handle = open_library(name);
    return handle ? adopt(*std::move(handle), chosen) : fail(handle);
}

// Whether a copy is the file that a name stands for: a path to it, or a bare name that the loader knows it
// by.
bool is_called(const Copy& copy, const std::string& name) {
    std::error_code error;
    if (name.find('/') != std::string::npos && fs::equivalent(copy.path, name, error)) {
        return true;
    }
    void* const opened = dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    return opened != nullptr && LibraryHandle(opened, dlclose) == copy.handle;
}

Result<std::shared_ptr<const Library>> bind_named(const std::string& name) {
    const auto copies = hip_copies();
    if (copies.empty()) {
        return load(name, Chosen::by_name);
    }
    for (const auto& copy : copies) {
        if (is_called(copy, name)) {
            return adopt(copy.handle, Chosen::by_name);
        }
    }
    return refuse(fmt::format(
        "{} was asked for (configuration or KILN_HIP_LIBRARY), but the process already holds {}; two "
        "copies of the HIP runtime do not work in one process",
        name, list_paths(copies)));
}

std::string asked_for(const DriverConfig& config) {
    if (!config.hip_library.empty()) {
        return config.hip_library.string();
    }
    const char* const value = std::getenv("KILN_HIP_LIBRARY");
    return value != nullptr ? value : "";
}

// Rules 1 and 2; nothing when neither applies.
std::optional<Result<std::shared_ptr<const Library>>> bind_settled(const DriverConfig& config, Steps& steps) {
    if (const auto name = asked_for(config); !name.empty()) {
        steps.push_back(fmt::format("{} was asked for (configuration or KILN_HIP_LIBRARY)", name));
        return bind_named(name);
    }
    const auto copies = hip_copies();
    if (copies.size() > 1) {
        return refuse(fmt::format(
            "the process holds {} copies of the HIP runtime: {}; KILN_HIP_LIBRARY says which one to use",
            copies.size(), list_paths(copies)));
    }
    if (copies.size() == 1) {
        steps.push_back(fmt::format("the process holds one HIP runtime: {}", copies.front().path));
        return adopt(copies.front().handle, Chosen::by_rule);
    }
    return std::nullopt;
}

// The first that loads, even if it has no device then: a second copy beside it would be no better.
Result<std::shared_ptr<const Library>> load_installed(Steps& steps) {
    Steps reasons;
    for (const char* name : {"libamdhip64.so.7", "libamdhip64.so.6", "/opt/rocm/lib/libamdhip64.so.7",
                             "/opt/rocm/lib/libamdhip64.so.6"}) {
        auto handle = open_library(name);
        if (!handle) {
            reasons.push_back(std::move(handle.error().message));
        } else if (dlsym(handle->get(), "kiln_sim_take_counts") != nullptr) {
            // By bare name the loader hands out our own look-alike where it was opened before.
            reasons.push_back(fmt::format("{}: the simulator's own", name));
        } else {
            steps.insert(steps.end(), reasons.begin(), reasons.end());
            return adopt(*std::move(handle), Chosen::by_rule);
        }
    }
    return refuse(fmt::format("no HIP runtime: {}", fmt::join(reasons, "; ")));
}

Result<std::shared_ptr<const Library>> bind_hip(const DriverConfig& config, Steps& steps) {
    if (auto settled = bind_settled(config, steps)) {
        return *std::move(settled);
    }
    steps.push_back("the process holds no HIP runtime: one is loaded by versioned name");
    return load_installed(steps);
}

Result<std::shared_ptr<const Library>> bind_simulator(const DriverConfig& config) {
    Steps reasons;
    const auto use = [&](const std::string& path) -> std::shared_ptr<const Library> {
        auto library = load(path, Chosen::by_rule);
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
            return adopt(copy.handle, Chosen::by_rule);
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

Result<std::shared_ptr<const Library>> bind_automatic(const DriverConfig& config, Steps& steps) {
    auto settled = bind_settled(config, steps);
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
    } else if (auto library = load_installed(steps)) {
        return library;
    } else {
        why = library.error().message;
    }
    auto simulator = bind_simulator(config);
    if (!simulator) {
        return refuse(fmt::format("{}; {}", why, simulator.error().message));
    }
    steps.push_back(std::move(why));
    steps.push_back("the simulator takes its place");
    return simulator;
}

}  // namespace

Result<std::shared_ptr<const Library>> bind(const DriverConfig& config, Steps* steps) {
    Steps unwanted;
    Steps& taken = steps != nullptr ? *steps : unwanted;
    watch_forks();
    // Two threads that bind at once must not load two copies.
    const std::scoped_lock lock(of_this_process<BindLock>().mutex);
    switch (config.driver) {
        case Driver::hip:
            return bind_hip(config, taken);
        case Driver::sim:
            taken.push_back("the simulator was asked for");
            return bind_simulator(config);
        case Driver::automatic:
            break;
    }
    return bind_automatic(config, taken);
}

Result<void> check_alone(const Library& library) {
    if (library.named) {
        return {};
    }
    const std::uint64_t loaded = num_libraries_loaded();
    if (library.checked_at.load(std::memory_order_relaxed) == loaded) {
        return {};
    }
    auto copies = hip_copies();
    // A look-alike that kiln opened beside HIP is not among them: then nothing is ambiguous.
    const auto own = std::ranges::find(copies, library.handle, &Copy::handle);
    if (own != copies.end() && copies.size() > 1) {
        copies.erase(own);
        return refuse(
            fmt::format("since kiln bound {}, the process has loaded another copy of the HIP runtime: {}; "
                        "plans made before "
                        "keep working, and KILN_HIP_LIBRARY says which one a new service is to use",
                        library.path.string(), list_paths(copies)));
    }
    library.checked_at.store(loaded, std::memory_order_relaxed);
    return {};
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
