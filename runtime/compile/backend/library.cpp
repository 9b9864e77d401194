#include "runtime/compile/backend/library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <fmt/format.h>

namespace kiln::compile::backend {

Result<Library> Library::open(const std::filesystem::path& path) {
    void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        const char* const reason = ::dlerror();
        return fail(
            ErrorCode::environment, Stage::compile,
            fmt::format("load {}: {}", path.string(), reason != nullptr ? reason : "no reason given"));
    }
    return Library(handle, path);
}

Result<void*> Library::look_up(const char* name) const {
    void* const address = ::dlsym(handle_, name);
    if (address == nullptr) {
        return fail(ErrorCode::environment, Stage::compile,
                    fmt::format("{}: expected the entry point {}, found none", path_.string(), name));
    }
    return address;
}

std::vector<std::string> loaded_libraries() {
    std::vector<std::string> paths;
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* list) {
            if (info->dlpi_name != nullptr && info->dlpi_name[0] == '/') {
                static_cast<std::vector<std::string>*>(list)->emplace_back(info->dlpi_name);
            }
            return 0;
        },
        &paths);
    return paths;
}

}  // namespace kiln::compile::backend
