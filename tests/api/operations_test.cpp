// What whoever runs the engine sees of kiln: metrics and the log.
#include <doctest/doctest.h>

#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "kiln/kiln.hpp"
#include "tests/api/small_case.hpp"
#include "tests/prometheus_page.hpp"

using kiln::test::Folder;
using kiln::test::PrometheusPage;
using kiln::test::small_problem;
using kiln::test::small_row;
using kiln::test::small_table;

namespace {

constexpr std::int64_t kN = 16;

// A service with a row of two kernels and an empty cache.
struct Engine {
    Folder folder;
    std::string tables = folder.write("shapes/small.json", small_table({small_row(kN, 1)}));
    std::string cache = (folder.path() / "cache").string();

    [[nodiscard]] kiln::Config config() const {
        return {.cache_dir = cache.c_str(), .shapes_path = tables.c_str(), .device = "sim"};
    }
};

std::string page_of(const kiln::Service& service, std::span<const kiln_label> labels = {}) {
    std::string text;
    kiln::Failure why;
    const auto status = service.metrics(text, labels, &why);
    REQUIRE_MESSAGE(status.ok(), why.message);
    return text;
}

std::string refused(const kiln::Service& service, const std::vector<kiln_label>& labels) {
    std::string text = "as it was";
    kiln::Failure why;
    CHECK(service.metrics(text, labels, &why).error_code() == KILN_ERROR_INVALID_ARGUMENT);
    CHECK(text == "as it was");
    return why.message;
}

// The log of the process as it is by default, whatever a case did.
struct LogAsItWas {
    ~LogAsItWas() { CHECK(kiln::set_log("warning", "text").ok()); }
};

}  // namespace

TEST_CASE("metrics: a page of Prometheus says what the statistics say") {
    const Engine engine;
    const auto before = std::chrono::system_clock::now();
    const auto service = kiln::Service::open(engine.config());
    REQUIRE(service);
    const PrometheusPage fresh(page_of(service));
    CHECK(fresh.at("kiln_build_info", {{"version", kiln_version()}}) == 1);
    CHECK(fresh.at("kiln_jit_enabled") == 1);
    CHECK(fresh.at("kiln_cache_limit_bytes") == 10.0 * (1u << 30));
    const auto opened = std::chrono::duration<double>(
        std::chrono::duration<double>(fresh.at("kiln_service_opened_timestamp_seconds")));
    CHECK(opened >= before.time_since_epoch());
    CHECK(opened <= std::chrono::system_clock::now().time_since_epoch());
    // Every series is there from the beginning, at zero: nobody has to ask whether it is missing.
    for (const auto& [name, family] : fresh.families()) {
        if (family.type == "counter") {
            CHECK_MESSAGE(fresh.sum(name) == 0, name);
        }
    }

    REQUIRE(service.prepare(0, small_problem(kN)));
    REQUIRE_FALSE(service.prepare(0, small_problem(kN + 16)));
    REQUIRE_FALSE(service.supports(0, small_problem(kN + 16)));
    REQUIRE(service.reload().ok());
    const PrometheusPage page(page_of(service));
    const kiln_statistics statistics = service.statistics();
    CHECK(statistics.compiles == 2);
    CHECK(page.at("kiln_compiles_total", {{"result", "done"}}) == 2);
    CHECK(page.at("kiln_compiles_total", {{"result", "failed"}}) == 0);
    CHECK(page.at("kiln_compile_seconds_total") == statistics.compile_seconds);
    CHECK(page.at("kiln_cache_misses_total") == static_cast<double>(statistics.cache_misses));
    CHECK(page.at("kiln_loads_total") == 2);
    CHECK(page.at("kiln_reloads_total") == 1);
    CHECK(page.at("kiln_declines_total", {{"reason", "shape"}}) == static_cast<double>(statistics.declines));
    CHECK(page.sum("kiln_declines_total") == static_cast<double>(statistics.declines));
    CHECK(page.families().size() == fresh.families().size());

    const auto again = kiln::Service::open(engine.config());
    REQUIRE(again.prepare(0, small_problem(kN)));
    const PrometheusPage warm(page_of(again));
    CHECK(warm.at("kiln_cache_hits_total", {{"place", "store"}}) == 2);
    CHECK(warm.at("kiln_cache_hits_total", {{"place", "layer"}}) == 0);
    CHECK(warm.sum("kiln_compiles_total") == 0);
}

TEST_CASE("metrics: a store without a bound says so") {
    const Engine engine;
    ::setenv("KILN_CACHE_LIMIT", "none", 1);
    const auto service = kiln::Service::open(engine.config());
    ::unsetenv("KILN_CACHE_LIMIT");
    CHECK(PrometheusPage(page_of(service)).at("kiln_cache_limit_bytes") > 1e300);
}

TEST_CASE("metrics: labels of the program stand at every sample, escaped") {
    const Engine engine;
    const auto service = kiln::Service::open(engine.config());
    const std::vector<kiln_label> labels = {{"rank", "3"}, {"model", "q\"w\\e\n\xc3\xa9"}};
    const PrometheusPage page(page_of(service, labels));
    for (const auto& [name, family] : page.families()) {
        for (const auto& sample : family.samples) {
            CHECK_MESSAGE(sample.labels.at("rank") == "3", name);
            CHECK_MESSAGE(sample.labels.at("model") == "q\"w\\e\n\xc3\xa9", name);
        }
    }
}

TEST_CASE("metrics: a label that can not be is refused by name") {
    const Engine engine;
    const auto service = kiln::Service::open(engine.config());
    CHECK(refused(service, {{"a-b", "x"}}).find("\"a-b\"") != std::string::npos);
    CHECK(refused(service, {{"reason", "x"}}).find("label reason") != std::string::npos);
    CHECK(refused(service, {{"a", "x"}, {"a", "y"}}).find("label a") != std::string::npos);
    CHECK(refused(service, {{"a", "\xff"}}).find("UTF-8") != std::string::npos);
    CHECK(refused(service, {{"a", "x"}, {nullptr, "x"}}).find("label 1") != std::string::npos);
    char* text = nullptr;
    CHECK(kiln_service_metrics(service.handle(), nullptr, 1, &text, nullptr) == -KILN_ERROR_INVALID_ARGUMENT);
    CHECK(kiln_service_metrics(service.handle(), nullptr, 0, nullptr, nullptr) ==
          -KILN_ERROR_INVALID_ARGUMENT);
    CHECK(kiln_service_metrics(nullptr, nullptr, 0, &text, nullptr) == -KILN_ERROR_INVALID_ARGUMENT);
    CHECK(text == nullptr);
    kiln_text_free(nullptr);
    std::string none;
    CHECK_FALSE(kiln::Service::open({.target = "not a target"}).metrics(none).ok());
}

TEST_CASE("log: level and format are set at run time, and the program takes the lines") {
    const LogAsItWas restored;
    const Engine engine;
    std::mutex mutex;
    std::vector<std::pair<kiln::LogLevel, std::string>> lines;
    {
        const kiln::LogTaker taker([&](kiln::LogLevel level, std::string_view line) {
            const std::lock_guard lock(mutex);
            lines.emplace_back(level, line);
        });
        REQUIRE(kiln::set_log("info").ok());
        const auto service = kiln::Service::open(engine.config());  // leaves it so: it says nothing of it
        REQUIRE_FALSE(service.supports(0, small_problem(kN + 16)));
        REQUIRE(lines.size() == 1);
        CHECK(lines[0].first == kiln::LogLevel::info);
        CHECK(lines[0].second.starts_with("decline problem=\"linear n=32 k=256"));

        REQUIRE(kiln::set_log(nullptr, "json").ok());
        REQUIRE(service.prepare(0, small_problem(kN)));
        REQUIRE(lines.size() >= 3);
        std::size_t compiles = 0;
        for (std::size_t i = 1; i < lines.size(); ++i) {
            const auto line = nlohmann::json::parse(lines[i].second);
            compiles += line["event"] == "compile" ? 1 : 0;
            CHECK(line["level"] == "info");
        }
        CHECK(compiles == 2);

        lines.clear();
        REQUIRE(kiln::set_log("off").ok());
        REQUIRE_FALSE(service.supports(0, small_problem(kN + 32)));
        CHECK(lines.empty());
        // A service whose configuration says something goes before that.
        auto config = engine.config();
        config.log = "info";
        config.log_format = "text";
        const auto loud = kiln::Service::open(config);
        REQUIRE_FALSE(loud.supports(0, small_problem(kN + 48)));
        REQUIRE(lines.size() == 1);
        CHECK(lines[0].second.starts_with("decline "));
    }
    CHECK(kiln_log_set_callback(nullptr, nullptr) == KILN_OK);
}

TEST_CASE("log: what a program set goes before the environment of services opened later") {
    const LogAsItWas restored;
    const Engine engine;
    std::vector<std::string> lines;
    const kiln::LogTaker taker([&](kiln::LogLevel, std::string_view line) { lines.emplace_back(line); });
    REQUIRE(kiln::set_log("info", "json").ok());
    ::setenv("KILN_LOG", "error", 1);
    ::setenv("KILN_LOG_FORMAT", "text", 1);
    const auto service = kiln::Service::open(engine.config());
    ::unsetenv("KILN_LOG");
    ::unsetenv("KILN_LOG_FORMAT");
    REQUIRE_FALSE(service.supports(0, small_problem(kN + 16)));
    REQUIRE(lines.size() == 1);
    CHECK(nlohmann::json::parse(lines[0])["event"] == "decline");
}

TEST_CASE("log: an unknown word is refused by name and nothing is changed") {
    const LogAsItWas restored;
    std::vector<std::string> lines;
    const kiln::LogTaker taker([&](kiln::LogLevel, std::string_view line) { lines.emplace_back(line); });
    REQUIRE(kiln::set_log("info", "text").ok());
    kiln::Failure why;
    CHECK(kiln::set_log("loud", "json", &why).error_code() == KILN_ERROR_INVALID_ARGUMENT);
    CHECK(why.message == "log level: expected one of debug, info, warning, error, off, found \"loud\"");
    CHECK(kiln::set_log("off", "xml", &why).error_code() == KILN_ERROR_INVALID_ARGUMENT);
    CHECK(why.message == "log format: expected one of text, json, found \"xml\"");
    const Engine engine;
    const auto service = kiln::Service::open(engine.config());
    REQUIRE_FALSE(service.supports(0, small_problem(kN + 16)));
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].starts_with("decline "));
    auto config = engine.config();
    config.log_format = "xml";
    CHECK(kiln::Service::open(config).failure().message ==
          "KILN_LOG_FORMAT (configuration): expected one of text, json, found \"xml\"");
}
