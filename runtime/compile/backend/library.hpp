// A shared library that was opened by its path, and typed look-ups in it.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/error.hpp"

namespace kiln::compile::backend {

// Never closes the library: LLVM does not survive being unloaded, and the process ends soon enough.
class Library {
  public:
    // environment, with the loader's own words, when it can not be loaded.
    [[nodiscard]] static Result<Library> open(const std::filesystem::path& path);

    // Fills `function` with the entry point of that name; environment when the library has none.
    template <class Function>
    [[nodiscard]] Result<void> find(const char* name, Function*& function) const {
        auto address = look_up(name);
        if (!address) {
            return fail(address);
        }
        function = reinterpret_cast<Function*>(*address);
        return {};
    }

  private:
    explicit Library(void* handle, std::filesystem::path path) : handle_(handle), path_(std::move(path)) {}
    [[nodiscard]] Result<void*> look_up(const char* name) const;

    void* handle_;
    std::filesystem::path path_;
};

// The paths of everything that this process has loaded, itself left out.
[[nodiscard]] std::vector<std::string> loaded_libraries();

}  // namespace kiln::compile::backend
