#include "runtime/service/settings.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "base/amount.hpp"
#include "base/nearest.hpp"
#include "cache/store.hpp"
#include "runtime/operators/operator.hpp"
#include "runtime/service/preset_settings.hpp"
#include "runtime/tables/known_target.hpp"

namespace kiln::service {

namespace {

constexpr std::string_view kPrefix = "KILN_";

struct Variable {
    std::string_view name;
    std::string_view preset;
    std::optional<std::string> Overrides::*override_member;  // null: the environment alone can say it
    std::string_view what;
};

// In the order of the documentation.
constexpr Variable kVariables[] = {
    {"KILN_CACHE_DIR", "", &Overrides::cache_dir, "folder of the user's store"},
    {"KILN_CACHE_PATH", "", &Overrides::cache_path, "read-only folders and bundles of code objects"},
    {"KILN_CACHE_LIMIT", "10GiB", nullptr, "bound of the user's store, or none"},
    {"KILN_SHAPES_PATH", "", &Overrides::shapes_path, "tables or folders of tables over the shipped ones"},
    {"KILN_KERNEL_PATH", "", &Overrides::kernel_path, "folders of templates over the shipped ones"},
    {"KILN_TARGET", "gfx950", &Overrides::target, "target where no device is asked"},
    {"KILN_DEVICE", "auto", &Overrides::device, "auto, hip, cuda or sim"},
    {"KILN_JIT", "on", &Overrides::jit, "on, or off: a miss is an error"},
    {"KILN_DISABLE", "", &Overrides::disable, "operators and templates to decline"},
    {"KILN_WORKER", "", &Overrides::worker, "path of kiln-compile"},
    {"KILN_HIP_LIBRARY", "", &Overrides::hip_library, "path of libamdhip64"},
    {"KILN_CUDA_LIBRARY", "", &Overrides::cuda_library, "path of libcuda"},
    {"KILN_ROCM_PREFIX", "", nullptr, "private prefix that holds hipRTC"},
    {"KILN_CUDA_PREFIX", "", nullptr, "prefix of the CUDA toolkit that holds NVRTC"},
    {"KILN_LIBRARY", "", nullptr, "path of libkiln for programs in Python"},
    {"KILN_TRUSTED_KEYS", "", nullptr, "files of public keys that must have signed a bundle"},
    {"KILN_LOG", "warning", &Overrides::log, "debug, info, warning, error or off"},
    {"KILN_LOG_FORMAT", "text", &Overrides::log_format, "lines of the log: text or json"},
    {"KILN_SIM_DEVICES", "2", nullptr, "how many GPUs the simulator shows"},
    {"KILN_SIM_CHECK", "uninitialised,freed", nullptr,
     "what the simulator looks for: races, uninitialised, freed"},
    {"KILN_SIM_ORDER", "any", nullptr, "order of work-groups and waves in the simulator"},
    {"KILN_SIM_SCOPES", "early", nullptr, "when the simulator shows a store to others: early or late"},
};

std::string_view nearest_variable(std::string_view name) {
    std::vector<std::string_view> known;
    for (const Variable& variable : kVariables) {
        known.push_back(variable.name);
    }
    return nearest(name, known);
}

// A name that switches nothing off is most likely a misspelt one.
void warn_of_unknown_names(Settings& settings) {
    std::vector<std::string_view> known;
    for (const operators::Operator* op : operators::all_operators()) {
        known.push_back(op->name());
        for (const operators::Template* source_template : op->templates()) {
            known.push_back(source_template->id());
        }
    }
    for (const std::string& name : settings.disable) {
        if (std::ranges::find(known, name) == known.end()) {
            settings.warnings.push_back(
                fmt::format("KILN_DISABLE: {} is neither an operator nor a template; the nearest is {}", name,
                            nearest(name, known)));
        }
    }
}

std::map<std::string, std::string, std::less<>> parse_environment(const Environment& environment) {
    std::map<std::string, std::string, std::less<>> variables;
    for (const std::string& entry : environment) {
        const std::size_t equals = entry.find('=');
        if (entry.starts_with(kPrefix) && equals != std::string::npos) {
            variables.emplace(entry.substr(0, equals), entry.substr(equals + 1));
        }
    }
    return variables;
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    while (!text.empty()) {
        const std::string_view part = text.substr(0, text.find(separator));
        text.remove_prefix(std::min(part.size() + 1, text.size()));
        if (!part.empty()) {
            parts.emplace_back(part);
        }
    }
    return parts;
}

// The folders of XDG's base directory specification: absolute paths only, others are ignored.
std::vector<std::filesystem::path> absolute_paths(std::string_view list) {
    std::vector<std::filesystem::path> paths;
    for (const std::string& part : split(list, ':')) {
        if (part.starts_with('/')) {
            paths.emplace_back(part);
        }
    }
    return paths;
}

// The value of a variable; empty when it is unset.
std::string_view value_of(const Environment& environment, std::string_view name) {
    const auto found = std::ranges::find_if(environment, [name](const std::string& entry) {
        return entry.starts_with(name) && entry.size() > name.size() && entry[name.size()] == '=';
    });
    return found == environment.end() ? std::string_view() : std::string_view(*found).substr(name.size() + 1);
}

// KILN_SHAPES_PATH, then the user's folder, then the system's: each the strongest first, each place once.
std::vector<tables::LayerPlace> find_table_places(std::string_view shapes_path,
                                                  const Environment& environment) {
    std::vector<tables::LayerPlace> places = tables::named_places(shapes_path);
    const auto add = [&places](tables::LayerKind kind, const std::filesystem::path& folder) {
        const tables::LayerPlace place{kind, folder / "kiln/shapes"};
        if (std::ranges::none_of(places, [&](const auto& other) { return other.path == place.path; })) {
            places.push_back(place);
        }
    };
    std::vector<std::filesystem::path> user = absolute_paths(value_of(environment, "XDG_CONFIG_HOME"));
    if (user.empty()) {
        user = absolute_paths(value_of(environment, "HOME"));
        std::ranges::for_each(user, [](std::filesystem::path& home) { home /= ".config"; });
    }
    for (const std::filesystem::path& folder : user) {
        add(tables::LayerKind::user, folder);
    }
    std::vector<std::filesystem::path> system = absolute_paths(value_of(environment, "XDG_CONFIG_DIRS"));
    if (system.empty()) {
        system.emplace_back("/etc/xdg");
    }
    system.emplace_back("/etc");
    for (const std::filesystem::path& folder : system) {
        add(tables::LayerKind::system, folder);
    }
    return places;
}

tl::unexpected<Error> bad_value(const Setting& setting, std::string_view expected) {
    return fail(ErrorCode::bad_input, Stage::configure,
                fmt::format("{} ({}): expected {}, found \"{}\"", setting.variable, to_text(setting.origin),
                            expected, setting.value));
}

// The index of the value among `words`, or an error.
Result<std::size_t> one_of(const Setting& setting, std::initializer_list<std::string_view> words) {
    const auto found = std::find(words.begin(), words.end(), setting.value);
    if (found == words.end()) {
        return bad_value(setting, fmt::format("one of {}", fmt::join(words, ", ")));
    }
    return static_cast<std::size_t>(found - words.begin());
}

// The typed members from the listed texts.
Result<void> interpret(Settings& settings) {
    const auto setting = [&settings](std::string_view name) -> Setting& {
        return *std::find_if(settings.listed.begin(), settings.listed.end(),
                             [name](const Setting& s) { return s.variable == name; });
    };

    Setting& cache_dir = setting("KILN_CACHE_DIR");
    if (cache_dir.value.empty()) {
        // No home, no cache: not an error, the service runs from memory and says so.
        cache_dir.value = cache::default_store_folder().value_or(std::filesystem::path()).string();
    }
    settings.cache_dir = cache_dir.value;
    for (const std::string& folder : split(setting("KILN_CACHE_PATH").value, ':')) {
        settings.cache_path.emplace_back(folder);
    }
    const Setting& trusted_keys = setting("KILN_TRUSTED_KEYS");
    for (const std::string& file : split(trusted_keys.value, ':')) {
        settings.trusted_keys.emplace_back(file);
    }
    if (settings.trusted_keys.empty() && trusted_keys.origin != Origin::preset) {
        return bad_value(trusted_keys, "files of public keys");  // not to be taken for "any bundle will do"
    }
    if (const Setting& limit = setting("KILN_CACHE_LIMIT"); limit.value != "none") {
        const Result<std::uint64_t> bytes = parse_bytes(limit.value);
        if (!bytes || *bytes == 0) {
            return bad_value(limit, "a size like 500MB or 10GiB, or none");
        }
        settings.cache_limit = *bytes;
    }
    for (const std::string& folder : split(setting("KILN_KERNEL_PATH").value, ':')) {
        if (!std::filesystem::is_directory(folder)) {
            return bad_value(setting("KILN_KERNEL_PATH"), fmt::format("folders, {} is none", folder));
        }
        settings.kernel_path.emplace_back(folder);
    }

    const Setting& asked = setting("KILN_TARGET");
    Result<tables::Target> target = tables::parse_asked_target(asked.value);
    if (!target) {
        return fail(
            ErrorCode::bad_input, Stage::configure,
            fmt::format("{} ({}): {}", asked.variable, to_text(asked.origin), target.error().message));
    }
    settings.target = *std::move(target);

    const Result<std::size_t> driver = one_of(setting("KILN_DEVICE"), {"auto", "hip", "cuda", "sim"});
    if (!driver) {
        return tl::unexpected<Error>(driver.error());
    }
    settings.driver.driver = std::array{device::Driver::automatic, device::Driver::hip, device::Driver::cuda,
                                        device::Driver::sim}[*driver];
    settings.driver.hip_library = setting("KILN_HIP_LIBRARY").value;
    settings.driver.cuda_library = setting("KILN_CUDA_LIBRARY").value;
    settings.driver.sim_cache_folder = settings.cache_dir;
    settings.driver.sim_cache_path = setting("KILN_CACHE_PATH").value;

    const Result<std::size_t> jit = one_of(setting("KILN_JIT"), {"on", "off"});
    if (!jit) {
        return tl::unexpected<Error>(jit.error());
    }
    settings.jit = *jit == 0;

    settings.disable = split(setting("KILN_DISABLE").value, ',');
    // The compile room reads the variable itself, where it has another place in the search than the
    // configuration, which is exclusive.
    if (setting("KILN_WORKER").origin == Origin::configuration) {
        settings.worker = setting("KILN_WORKER").value;
        settings.driver.sim_worker = settings.worker;
    }
    if (!log::parse_level(setting("KILN_LOG").value, settings.log_level)) {
        return bad_value(setting("KILN_LOG"), "one of debug, info, warning, error, off");
    }
    if (!log::parse_format(setting("KILN_LOG_FORMAT").value, settings.log_format)) {
        return bad_value(setting("KILN_LOG_FORMAT"), "one of text, json");
    }
    return {};
}

}  // namespace

std::string_view to_text(Origin origin) {
    switch (origin) {
        case Origin::environment:
            return "environment";
        case Origin::configuration:
            return "configuration";
        case Origin::preset:
            break;
    }
    return "default";
}

std::vector<Setting> preset_settings() {
    std::vector<Setting> settings;
    for (const Variable& variable : kVariables) {
        settings.push_back({std::string(variable.name), std::string(variable.preset), Origin::preset,
                            std::string(variable.what)});
    }
    return settings;
}

Environment process_environment() {
    Environment environment;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        environment.emplace_back(*entry);
    }
    return environment;
}

Result<Settings> read_settings(const Overrides& overrides, const Environment& environment) {
    Settings settings;
    const auto variables = parse_environment(environment);
    settings.listed = preset_settings();
    for (Setting& setting : settings.listed) {
        const Variable& variable = kVariables[&setting - settings.listed.data()];
        // An empty variable counts as unset, as shells make it easy to have one; but not where that would be
        // to trust anybody.
        if (const auto found = variables.find(variable.name);
            found != variables.end() && (!found->second.empty() || variable.name == "KILN_TRUSTED_KEYS")) {
            setting.value = found->second;
            setting.origin = Origin::environment;
        }
        if (variable.override_member != nullptr && overrides.*variable.override_member) {
            setting.value = *(overrides.*variable.override_member);
            setting.origin = Origin::configuration;
        }
        if (variable.name == "KILN_CACHE_LIMIT" && overrides.cache_limit_bytes != 0) {
            setting.value = fmt::format("{}B", overrides.cache_limit_bytes);
            setting.origin = Origin::configuration;
        }
    }
    for (const auto& [name, value] : variables) {
        const bool known = std::any_of(std::begin(kVariables), std::end(kVariables),
                                       [&wanted = name](const Variable& v) { return v.name == wanted; });
        if (!known) {
            settings.warnings.push_back(
                fmt::format("{} is not a variable of kiln; the nearest is {}", name, nearest_variable(name)));
        }
    }
    settings.workers = overrides.workers;
    settings.compile_in_process = overrides.compile_in_process;
    if (overrides.tables) {
        settings.shipped_tables = false;
        for (const std::string& table : *overrides.tables) {
            settings.table_places.push_back({tables::LayerKind::named, table});
        }
    } else {
        const auto shapes_path =
            std::ranges::find(settings.listed, "KILN_SHAPES_PATH", &Setting::variable)->value;
        settings.table_places = find_table_places(shapes_path, environment);
    }
    if (Result<void> interpreted = interpret(settings); !interpreted) {
        return fail(interpreted);
    }
    warn_of_unknown_names(settings);
    return settings;
}

}  // namespace kiln::service
