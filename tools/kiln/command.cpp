#include "tools/kiln/command.hpp"

#include <nlohmann/json.hpp>

#include "tools/kiln/output.hpp"

namespace kiln::cli {

void add_metrics_file(CLI::App& command, Invocation& invocation, std::vector<std::string_view> results) {
    const auto* parent = command.get_parent();
    const auto name = parent != nullptr && parent->get_parent() != nullptr
                          ? parent->get_name() + " " + command.get_name()
                          : command.get_name();
    command.add_option_function<std::string>(
        "--metrics-file",
        [&invocation, name, results](const std::string& file) {
            invocation.metrics.file = file;
            invocation.metrics.begin(name, results);
        },
        "a page of metrics for Prometheus about this run, written when it ends, even by a failure or a "
        "signal; nothing but such a page is replaced; "
        "FOLDER/X.prom "
        "for the node exporter");
}

service::Overrides overrides_of(const CommonOptions& common, service::Overrides overrides) {
    if (!common.device.empty()) {
        overrides.device = common.device;
    }
    if (!common.cache_dir.empty()) {
        overrides.cache_dir = common.cache_dir;
    }
    return overrides;
}

Result<service::Settings> read_settings(const CommonOptions& common, service::Overrides overrides) {
    return service::read_settings(overrides_of(common, std::move(overrides)), service::process_environment());
}

Result<std::unique_ptr<service::Service>> open_service(const CommonOptions& common,
                                                       service::Overrides overrides) {
    auto settings = read_settings(common, std::move(overrides));
    return settings ? service::Service::open(std::move(*settings))
                    : Result<std::unique_ptr<service::Service>>(fail(settings));
}

ExitCode exit_code_of(const Error& error) {
    switch (error.code) {
        case ErrorCode::invalid_argument:
        case ErrorCode::bad_input:
        case ErrorCode::not_found:
            return ExitCode::bad_input;
        case ErrorCode::environment:
        case ErrorCode::io:
            return ExitCode::environment;
        case ErrorCode::damaged:
        case ErrorCode::compile_failed:
        case ErrorCode::worker_failed:
        case ErrorCode::load_failed:
        case ErrorCode::launch_failed:
        case ErrorCode::device_failed:
        case ErrorCode::internal:
            return ExitCode::check_failed;
    }
    return ExitCode::check_failed;
}

ExitCode report(const Error& error, const CommonOptions& common) {
    auto said = error;
    said.message = cut_words(error.message);
    print_diagnostic(said.message);
    if (common.json) {
        print_json({{"error", to_json(said)}});
    }
    return exit_code_of(error);
}

ExitCode report(const operators::Refusal& refusal, const CommonOptions& common) {
    if (refusal.decline == 0) {
        return report(refusal.error, common);
    }
    print_diagnostic(
        fmt::format("declined ({}): {}", operators::decline_text(refusal.decline), refusal.error.message));
    if (common.json) {
        print_json({{"declined", to_json(refusal)}});
    }
    return ExitCode::check_failed;
}

}  // namespace kiln::cli
