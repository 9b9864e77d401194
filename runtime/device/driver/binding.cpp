#include "runtime/device/driver/binding.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fork_guard.hpp"

namespace kiln::device::driver {
namespace {

namespace fs = std::filesystem;

enum class Chosen { by_name, by_rule };

tl::unexpected<Error> refuse(std::string message) {
    return fail(ErrorCode::environment, Stage::device, std::move(message));
}

// What was bound, last first. Only ever grows, by whoever holds the lock, so that a child of a fork finds it
// whole.
struct Bound {
    LibraryPointer library;
    const Bound* next;
};
std::atomic<const Bound*> bound{nullptr};

Result<LibraryPointer> adopt_as(const Family& family, LibraryHandle handle, Chosen chosen) {
    const bool named = chosen == Chosen::by_name;
    for (const Bound* known = bound; known != nullptr; known = known->next) {
        const auto& library = known->library;
        if (library->handle != handle) {
            continue;
        }
        if (library->generation != fork_generation()) {
            return refuse(
                fmt::format("{} was in use when this process was forked from its parent, and a {} "
                            "does not survive a fork: fork before the first use of a device, or start a "
                            "program of its own",
                            library->path.string(), family.what));
        }
        if (library->named == named) {
            return library;
        }
    }
    const std::string path = file_of(handle.get());
    auto started = family.start(handle.get(), path);
    if (!started) {
        return fail(started);
    }
    Library& library = **started;
    library.family = &family;
    library.path = path;
    library.named = named;
    library.handle = std::move(handle);
    library.generation = fork_generation();
    bound = new Bound{*started, bound};
    return *std::move(started);
}

// Stays loaded whatever becomes of it: a driver's library does not survive being unloaded.
Result<LibraryHandle> open_library(const std::string& name) {
    void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        const char* const why = dlerror();
        return refuse(why != nullptr ? why : fmt::format("{} can not be loaded", name));
    }
    return LibraryHandle(handle, [](void*) {});
}

Result<LibraryPointer> load_as(const Family& family, const std::string& name, Chosen chosen) {
    auto handle = open_library(name);
    return handle ? adopt_as(family, *std::move(handle), chosen) : fail(handle);
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

Result<LibraryPointer> bind_named(const Family& family, const std::string& name) {
    const auto copies = driver_copies(family.stem);
    if (copies.empty()) {
        auto library = load_as(family, name, Chosen::by_name);
        if (!library) {
            library.error().message =
                fmt::format("{} (asked for: configuration or {})", library.error().message, family.variable);
        }
        return library;
    }
    for (const auto& copy : copies) {
        if (is_called(copy, name)) {
            return adopt_as(family, copy.handle, Chosen::by_name);
        }
    }
    return refuse(
        fmt::format("{} was asked for (configuration or {}), but the process already holds {}; two "
                    "copies of the {} do not work in one process",
                    name, family.variable, list_paths(copies), family.what));
}

}  // namespace

std::string asked_for(const Family& family, const DriverConfig& config) {
    if (const auto& configured = config.*family.configured; !configured.empty()) {
        return configured.string();
    }
    const char* const value = std::getenv(std::string(family.variable).c_str());
    return value != nullptr ? value : "";
}

std::optional<Result<LibraryPointer>> bind_settled(const Family& family, const DriverConfig& config,
                                                   Steps& steps) {
    if (const auto name = asked_for(family, config); !name.empty()) {
        steps.push_back(fmt::format("{} was asked for (configuration or {})", name, family.variable));
        return bind_named(family, name);
    }
    const auto copies = driver_copies(family.stem);
    if (copies.size() > 1) {
        return refuse(fmt::format("the process holds {} copies of the {}: {}; {} says which one to use",
                                  copies.size(), family.what, list_paths(copies), family.variable));
    }
    if (copies.size() == 1) {
        steps.push_back(fmt::format("the process holds one {}: {}", family.what, copies.front().path));
        return adopt_as(family, copies.front().handle, Chosen::by_rule);
    }
    return std::nullopt;
}

Result<LibraryPointer> load_installed(const Family& family, Steps& steps) {
    Steps reasons;
    for (const char* name : family.installed) {
        auto handle = open_library(name);
        if (!handle) {
            reasons.push_back(std::move(handle.error().message));
        } else if (is_simulator(handle->get())) {
            // By bare name the loader hands out our own look-alike where it was opened before.
            reasons.push_back(fmt::format("{}: the simulator's own", name));
        } else {
            steps.insert(steps.end(), reasons.begin(), reasons.end());
            return adopt_as(family, *std::move(handle), Chosen::by_rule);
        }
    }
    return refuse(fmt::format("no {}: {}", family.what, fmt::join(reasons, "; ")));
}

Result<LibraryPointer> bind(const Family& family, const DriverConfig& config, Steps& steps) {
    if (auto settled = bind_settled(family, config, steps)) {
        return *std::move(settled);
    }
    steps.push_back(fmt::format("the process holds no {}: one is loaded by versioned name", family.what));
    return load_installed(family, steps);
}

Result<LibraryPointer> adopt(const Family& family, LibraryHandle handle) {
    return adopt_as(family, std::move(handle), Chosen::by_rule);
}

Result<LibraryPointer> load(const Family& family, const std::string& name) {
    return load_as(family, name, Chosen::by_rule);
}

Result<void> check_alone(const Library& library) {
    if (library.named) {
        return {};
    }
    const std::uint64_t loaded = num_libraries_loaded();
    if (library.checked_at.load(std::memory_order_relaxed) == loaded) {
        return {};
    }
    const Family& family = *library.family;
    auto copies = driver_copies(family.stem);
    // A look-alike that kiln opened beside HIP is not among them: then nothing is ambiguous.
    const auto own = std::ranges::find(copies, library.handle, &Copy::handle);
    if (own != copies.end() && copies.size() > 1) {
        copies.erase(own);
        return refuse(
            fmt::format("since kiln bound {}, the process has loaded another copy of the {}: {}; "
                        "plans made before keep working, and {} says which one a new service is to use",
                        library.path.string(), family.what, list_paths(copies), family.variable));
    }
    library.checked_at.store(loaded, std::memory_order_relaxed);
    return {};
}

}  // namespace kiln::device::driver
