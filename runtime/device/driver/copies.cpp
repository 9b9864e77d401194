#include "runtime/device/driver/copies.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::device::driver {
namespace {

constexpr const char* kOfTheSimulator = "kiln_sim_take_counts";

std::string_view base_name(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

bool is_called(std::string_view stem, std::string_view name) {
    return name.starts_with(stem) && name.find(".so") != std::string_view::npos;
}

std::string_view soname_of(const dl_phdr_info& info) {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
        if (info.dlpi_phdr[i].p_type != PT_DYNAMIC) {
            continue;
        }
        const char* strings = nullptr;
        ElfW(Xword) soname = 0;
        const auto* entry = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
        for (; entry->d_tag != DT_NULL; ++entry) {
            if (entry->d_tag == DT_STRTAB) {
                strings = reinterpret_cast<const char*>(entry->d_un.d_ptr);
            } else if (entry->d_tag == DT_SONAME) {
                soname = entry->d_un.d_val;
            }
        }
        // The loader has relocated the table's address, but not that of the kernel's own object.
        const bool relocated = reinterpret_cast<ElfW(Addr)>(strings) >= info.dlpi_addr;
        return soname != 0 && strings != nullptr && relocated ? std::string_view(strings + soname)
                                                              : std::string_view();
    }
    return {};
}

// Of the caller's own namespace, which is all that the loader lists.
std::vector<std::string> names_here(std::string_view stem) {
    struct Walk {
        std::string_view stem;
        std::vector<std::string> names;
    } walk{stem, {}};
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
            auto& [wanted, names] = *static_cast<Walk*>(out);
            const std::string_view name = info->dlpi_name != nullptr ? info->dlpi_name : "";
            if (!name.empty() &&
                (is_called(wanted, base_name(name)) || is_called(wanted, soname_of(*info)))) {
                names.emplace_back(name);
            }
            return 0;
        },
        &walk);
    return std::move(walk.names);
}

struct Foreign {
    Lmid_t space;
    std::string name;
};

// Of every link namespace, by the list that the loader keeps for debuggers; C libraries before 2.35 list only
// the first. To guess at a namespace is no way: dlmopen() of one that is not there can leave the loader
// locked.
std::vector<Foreign> names_everywhere(std::string_view stem) {
    struct Walk {
        std::string_view stem;
        r_debug_extended* debug;
        std::vector<Foreign> names;
    } walk{stem, static_cast<r_debug_extended*>(dlsym(RTLD_DEFAULT, "_r_debug")), {}};
    dl_iterate_phdr(
        [](dl_phdr_info*, std::size_t, void* out) {  // the lists stand still meanwhile
            auto& [wanted, debug, names] = *static_cast<Walk*>(out);
            for (; debug != nullptr; debug = debug->base.r_version > 1 ? debug->r_next : nullptr) {
                for (link_map* map = debug->base.r_map; map != nullptr; map = map->l_next) {
                    Lmid_t space = LM_ID_BASE;
                    if (map->l_name != nullptr && is_called(wanted, base_name(map->l_name)) &&
                        dlinfo(map, RTLD_DI_LMID, &space) == 0) {
                        names.push_back({space, map->l_name});
                    }
                }
            }
            return 1;
        },
        &walk);
    return std::move(walk.names);
}

class Collector {
  public:
    void add(void* opened) {
        if (opened == nullptr) {
            return;
        }
        LibraryHandle handle(opened, dlclose);
        const auto known = [&](const Copy& copy) { return copy.handle == handle; };
        if (std::ranges::none_of(copies_, known)) {
            copies_.push_back({file_of(opened), std::move(handle), is_simulator(opened)});
        }
    }
    std::vector<Copy> take() { return std::move(copies_); }

  private:
    std::vector<Copy> copies_;
};

bool in_global_scope(const Copy& copy) {
    void* const symbol = dlsym(RTLD_DEFAULT, kOfTheSimulator);
    return symbol != nullptr && symbol == dlsym(copy.handle.get(), kOfTheSimulator);
}

}  // namespace

bool is_simulator(void* handle) {
    return dlsym(handle, kOfTheSimulator) != nullptr;
}

std::string file_of(void* handle) {
    struct link_map* map = nullptr;
    return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr ? map->l_name : std::string();
}

std::vector<Copy> find_copies(std::string_view stem) {
    Collector collector;
    for (const auto& name : names_here(stem)) {
        collector.add(dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD));
    }
    for (const auto& [space, name] : names_everywhere(stem)) {
        collector.add(dlmopen(space, name.c_str(), RTLD_LAZY | RTLD_NOLOAD));
    }
    dlerror();  // what the questions left behind is not the program's
    return collector.take();
}

std::vector<Copy> driver_copies(std::string_view stem) {
    auto copies = find_copies(stem);
    std::erase_if(copies, [](const Copy& copy) { return copy.simulated && !in_global_scope(copy); });
    return copies;
}

std::string list_paths(const std::vector<Copy>& copies) {
    std::vector<std::string_view> paths;
    for (const auto& copy : copies) {
        paths.push_back(copy.path);
    }
    return fmt::format("{}", fmt::join(paths, ", "));
}

std::uint64_t num_libraries_loaded() {
    std::uint64_t loaded = 0;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
            *static_cast<std::uint64_t*>(out) = info->dlpi_adds;
            return 1;
        },
        &loaded);
    return loaded;
}

}  // namespace kiln::device::driver
