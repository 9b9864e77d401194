#include "runtime/service/settings.hpp"

#include <doctest/doctest.h>

#include <algorithm>

using namespace kiln::service;

namespace {

const Environment kHome{"HOME=/home/nobody", "PATH=/bin"};

Environment with(std::initializer_list<const char*> more) {
    Environment environment = kHome;
    environment.insert(environment.end(), more.begin(), more.end());
    return environment;
}

Settings read(const Environment& environment, const Overrides& overrides = {}) {
    auto settings = read_settings(overrides, environment);
    REQUIRE_MESSAGE(settings, settings.error().message);
    return *std::move(settings);
}

const Setting& listed(const Settings& settings, const char* variable) {
    const auto found = std::find_if(settings.listed.begin(), settings.listed.end(),
                                    [&](const Setting& setting) { return setting.variable == variable; });
    REQUIRE(found != settings.listed.end());
    return *found;
}

std::string error_of(const Environment& environment) {
    const auto settings = read_settings({}, environment);
    REQUIRE(!settings);
    CHECK(settings.error().code == kiln::ErrorCode::bad_input);
    return settings.error().message;
}

}  // namespace

TEST_CASE("settings: defaults") {
    const Settings settings = read(kHome);
    CHECK(settings.target.text() == "gfx950");
    CHECK(settings.jit);
    CHECK(settings.driver.driver == kiln::device::Driver::automatic);
    CHECK(settings.disable.empty());
    CHECK(settings.warnings.empty());
    CHECK(listed(settings, "KILN_TARGET").origin == Origin::preset);
    CHECK(listed(settings, "KILN_DEVICE").value == "auto");
    CHECK(settings.log_level == kiln::log::Level::warning);
    CHECK(settings.log_format == kiln::log::Format::text);
    CHECK(read(with({"KILN_LOG_FORMAT=json"})).log_format == kiln::log::Format::json);
}

TEST_CASE("settings: the configuration wins over the environment, which wins over the default") {
    Overrides overrides;
    overrides.target = "gfx942";
    const Settings settings =
        read(with({"KILN_TARGET=gfx950:xnack-", "KILN_JIT=off", "KILN_DISABLE=router,,linear/small_m"}),
             overrides);
    CHECK(settings.target.text() == "gfx942");
    CHECK(listed(settings, "KILN_TARGET").origin == Origin::configuration);
    CHECK_FALSE(settings.jit);
    CHECK(listed(settings, "KILN_JIT").origin == Origin::environment);
    CHECK(settings.disable == std::vector<std::string>{"router", "linear/small_m"});
}

TEST_CASE("settings: what the compile room searches for by itself is handed over only by the configuration") {
    Settings settings = read(with({"KILN_WORKER=/from/environment", "KILN_ROCM_PREFIX=/prefix"}));
    CHECK(settings.worker.empty());
    CHECK(listed(settings, "KILN_WORKER").value == "/from/environment");
    CHECK(listed(settings, "KILN_ROCM_PREFIX").origin == Origin::environment);
    Overrides overrides;
    overrides.worker = "/from/configuration";
    settings = read(with({"KILN_WORKER=/from/environment"}), overrides);
    CHECK(settings.worker == "/from/configuration");
}

TEST_CASE("settings: the cache's layers and its bound") {
    Settings settings = read(kHome);
    CHECK(settings.cache_path.empty());
    CHECK(settings.cache_limit == std::uint64_t{10} << 30);
    CHECK(listed(settings, "KILN_CACHE_LIMIT").value == "10GiB");
    settings = read(with({"KILN_CACHE_PATH=/opt/a::/opt/b", "KILN_CACHE_LIMIT=500MB"}));
    CHECK(settings.cache_path == std::vector<std::filesystem::path>{"/opt/a", "/opt/b"});
    CHECK(settings.cache_limit == 500'000'000);
    CHECK(settings.warnings.empty());
    CHECK(read(with({"KILN_CACHE_LIMIT=none"})).cache_limit == 0);
    Overrides overrides;
    overrides.cache_path = "/opt/c";
    overrides.cache_limit_bytes = 4096;
    settings = read(with({"KILN_CACHE_PATH=/opt/a", "KILN_CACHE_LIMIT=none"}), overrides);
    CHECK(settings.cache_path == std::vector<std::filesystem::path>{"/opt/c"});
    CHECK(settings.driver.sim_cache_path == "/opt/c");  // where the simulator finds listings too
    CHECK(settings.cache_limit == 4096);
    CHECK(listed(settings, "KILN_CACHE_LIMIT").origin == Origin::configuration);
    for (const char* limit : {"KILN_CACHE_LIMIT=much", "KILN_CACHE_LIMIT=0", "KILN_CACHE_LIMIT=-1"}) {
        CHECK(error_of(with({limit})).find("KILN_CACHE_LIMIT (environment): expected a size like") == 0);
    }
}

TEST_CASE("settings: an empty variable counts as unset") {
    const Settings settings = read(with({"KILN_JIT=", "KILN_TARGET="}));
    CHECK(settings.jit);
    CHECK(listed(settings, "KILN_TARGET").origin == Origin::preset);
}

TEST_CASE("settings: an unknown variable is a warning that names the nearest known one") {
    const Settings settings = read(with({"KILN_CACHEDIR=/x", "OTHER_VARIABLE=1"}));
    REQUIRE(settings.warnings.size() == 1);
    CHECK(settings.warnings.front() ==
          "KILN_CACHEDIR is not a variable of kiln; the nearest is KILN_CACHE_DIR");
}

TEST_CASE("settings: trusted keys are files, and a list of none is not taken for no list") {
    const Settings settings = read(with({"KILN_TRUSTED_KEYS=/a.pub:/b.pub"}));
    CHECK(settings.warnings.empty());
    CHECK(settings.trusted_keys == std::vector<std::filesystem::path>{"/a.pub", "/b.pub"});
    CHECK(read(with({})).trusted_keys.empty());
    for (const char* none : {"KILN_TRUSTED_KEYS=:", "KILN_TRUSTED_KEYS="}) {
        const auto refused = read_settings({}, with({none}));
        REQUIRE(!refused);
        CHECK(refused.error().code == kiln::ErrorCode::bad_input);
    }
}

TEST_CASE("settings: a name to disable that nothing has is a warning that names the nearest") {
    CHECK(read(with({"KILN_DISABLE=linear,linear/small_m"})).warnings.empty());
    const Settings settings = read(with({"KILN_DISABLE=lineer,linear,linear/smal_m"}));
    CHECK(settings.disable.size() == 3);
    CHECK(settings.warnings ==
          std::vector<std::string>{
              "KILN_DISABLE: lineer is neither an operator nor a template; the nearest is linear",
              "KILN_DISABLE: linear/smal_m is neither an operator nor a template; the nearest is "
              "linear/small_m"});
    Overrides overrides;
    overrides.disable = "nonsense";
    CHECK(read(kHome, overrides).warnings.size() == 1);
}

TEST_CASE("settings: a bad value names the variable, the value and what was expected") {
    CHECK(error_of(with({"KILN_JIT=maybe"})) ==
          "KILN_JIT (environment): expected one of on, off, found \"maybe\"");
    CHECK(error_of(with({"KILN_DEVICE=abacus"})).find("expected one of auto, hip, cuda, sim") !=
          std::string::npos);
    CHECK(error_of(with({"KILN_LOG=loud"})).find("KILN_LOG") != std::string::npos);
    CHECK(error_of(with({"KILN_LOG_FORMAT=xml"})) ==
          "KILN_LOG_FORMAT (environment): expected one of text, json, found \"xml\"");
    CHECK(error_of(with({"KILN_TARGET=GFX950"})) ==
          "KILN_TARGET (environment): target \"GFX950\": expected a processor in lower case, such as gfx950, "
          "found \"GFX950\"");
    CHECK(error_of(with({"KILN_TARGET=sm_90a:xnack-"})).find("no feature pinned") != std::string::npos);
    CHECK(error_of(with({"KILN_KERNEL_PATH=/nowhere/at/all"})).find("/nowhere/at/all is none") !=
          std::string::npos);
}

TEST_CASE("settings: tables lie in KILN_SHAPES_PATH, the user's folder and the system's, in this order") {
    using kiln::tables::LayerKind;
    using kiln::tables::LayerPlace;
    const Settings preset = read(kHome);
    CHECK(preset.shipped_tables);
    CHECK(preset.table_places ==
          std::vector<LayerPlace>{{LayerKind::user, "/home/nobody/.config/kiln/shapes"},
                                  {LayerKind::system, "/etc/xdg/kiln/shapes"},
                                  {LayerKind::system, "/etc/kiln/shapes"}});
    const Settings said = read(with({"XDG_CONFIG_HOME=/config", "XDG_CONFIG_DIRS=/a:relative::/b:/config",
                                     "KILN_SHAPES_PATH=here.json:/there"}));
    CHECK(said.table_places == std::vector<LayerPlace>{{LayerKind::named, "here.json"},
                                                       {LayerKind::named, "/there"},
                                                       {LayerKind::user, "/config/kiln/shapes"},
                                                       {LayerKind::system, "/a/kiln/shapes"},
                                                       {LayerKind::system, "/b/kiln/shapes"},
                                                       {LayerKind::system, "/etc/kiln/shapes"}});
    // No home, and a path that the specification says to ignore.
    const Settings homeless = *read_settings({}, {"XDG_CONFIG_HOME=relative"});
    CHECK(homeless.table_places.front().kind == LayerKind::system);
}

TEST_CASE("settings: tables that a program names take the place of every layer") {
    Overrides overrides;
    overrides.tables = {"a.json", "with:colon.json"};
    const Settings settings = read(with({"KILN_SHAPES_PATH=other.json"}), overrides);
    CHECK_FALSE(settings.shipped_tables);
    CHECK(settings.table_places ==
          std::vector<kiln::tables::LayerPlace>{{kiln::tables::LayerKind::named, "a.json"},
                                                {kiln::tables::LayerKind::named, "with:colon.json"}});
}
