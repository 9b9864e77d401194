// What the service was told: the embedding program's configuration first, then the environment, then the
// defaults. Read once, when the service opens, with these exceptions: the compile room reads
// KILN_WORKER, KILN_ROCM_PREFIX and KILN_CUDA_PREFIX when the first compiler is made (toolchain.hpp), and the
// simulator's libamdhip64, which any HIP program may load, reads KILN_SIM_* and KILN_ROCM_PREFIX of its
// own; where listings are kept and looked for, and the worker that makes them, it is told by the service that
// loads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/log.hpp"
#include "runtime/device/device.hpp"
#include "runtime/tables/layers.hpp"
#include "runtime/tables/target.hpp"

namespace kiln::service {

enum class Origin { preset, environment, configuration };
[[nodiscard]] std::string_view to_text(Origin origin);  // "default", "environment", "configuration"

// What the configuration says in place of the environment; nothing means: not said.
struct Overrides {
    std::optional<std::string> cache_dir, cache_path, shapes_path, kernel_path, target, device, jit, disable,
        worker, hip_library, cuda_library, log, log_format;
    // Tables and folders of them, the strongest first, in place of every layer that there is, the shipped one
    // too.
    std::optional<std::vector<std::string>> tables;
    std::uint64_t cache_limit_bytes = 0;  // 0: not said
    unsigned workers = 0;  // compile workers at most; 0 means one for each core of this process
    bool compile_in_process = false;
};

// One variable as `kiln doctor` prints it.
struct Setting {
    std::string variable;  // "KILN_CACHE_DIR"
    std::string value;     // may be empty: nothing was said and the default is to search
    Origin origin = Origin::preset;
    std::string what;  // one line
};

struct Settings {
    std::filesystem::path cache_dir;  // empty when the environment gives no place for a cache
    // Read-only layers, folders and bundles, the first looked into first.
    std::vector<std::filesystem::path> cache_path;
    // Files of public keys, one of which must have signed a bundle; none: a bundle need not be signed.
    std::vector<std::filesystem::path> trusted_keys;
    std::uint64_t cache_limit = 0;  // bytes; 0: no bound
    // Where shape tables may lie beside the shipped ones, the strongest first: KILN_SHAPES_PATH, the user's
    // folder, the system's. Those of the last two need not be there.
    std::vector<tables::LayerPlace> table_places;
    bool shipped_tables = true;
    std::vector<std::filesystem::path> kernel_path;
    tables::Target target;
    device::DriverConfig driver;
    bool jit = true;
    std::vector<std::string> disable;  // operators and template ids
    std::filesystem::path worker;      // of the configuration; empty: KILN_WORKER, else searched for
    log::Level log_level = log::Level::warning;
    log::Format log_format = log::Format::text;
    unsigned workers = 0;
    bool compile_in_process = false;

    std::vector<Setting> listed;  // every known variable, in the order of the documentation
    // Unknown variables, names to disable that nothing has.
    std::vector<std::string> warnings;
};

// The environment as "NAME=value" strings, so that a test can hand in its own.
using Environment = std::vector<std::string>;
[[nodiscard]] Environment process_environment();

// bad_input names the variable (or the member of the configuration), the value, and what was expected.
[[nodiscard]] Result<Settings> read_settings(const Overrides& overrides, const Environment& environment);

}  // namespace kiln::service
