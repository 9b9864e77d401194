#include "runtime/tune/record_json.hpp"

#include <cmath>
#include <stdexcept>

#include <fmt/format.h>

namespace kiln::tune {

namespace {

Status status_from(const std::string& text) {
    for (const Status status : {Status::ok, Status::failed, Status::wrong, Status::hung, Status::crashed}) {
        if (text == to_text(status)) {
            return status;
        }
    }
    throw std::invalid_argument(fmt::format("expected a status, found {}", text));
}

Json cost_json(const Cost& cost) {
    Json kernels = Json::array();
    for (const KernelCost& kernel : cost.kernels) {
        kernels.push_back({{"kernel", kernel.symbol},
                           {"us", kernel.us},
                           {"bound_by", kernel.bound_by},
                           {"memory_us", kernel.memory_us},
                           {"issue_us", kernel.issue_us},
                           {"mfma_us", kernel.mfma_us},
                           {"lds_us", kernel.lds_us},
                           {"chain_us", kernel.chain_us},
                           {"launch_us", kernel.launch_us},
                           {"work_groups", kernel.work_groups},
                           {"groups_per_unit", kernel.groups_per_unit},
                           {"waves_per_simd", kernel.waves_per_simd}});
    }
    return {{"us", cost.us}, {"kernels", std::move(kernels)}};
}

Cost cost_from(const Json& value) {
    Cost cost{value.at("us").get<double>(), {}};
    for (const Json& kernel : value.at("kernels")) {
        cost.kernels.push_back({.symbol = kernel.at("kernel").get<std::string>(),
                                .us = kernel.at("us").get<double>(),
                                .memory_us = kernel.at("memory_us").get<double>(),
                                .issue_us = kernel.at("issue_us").get<double>(),
                                .mfma_us = kernel.at("mfma_us").get<double>(),
                                .lds_us = kernel.at("lds_us").get<double>(),
                                .chain_us = kernel.at("chain_us").get<double>(),
                                .launch_us = kernel.at("launch_us").get<double>(),
                                .work_groups = kernel.at("work_groups").get<std::int64_t>(),
                                .groups_per_unit = kernel.at("groups_per_unit").get<std::int64_t>(),
                                .waves_per_simd = kernel.at("waves_per_simd").get<std::int64_t>(),
                                .bound_by = kernel.at("bound_by").get<std::string>()});
    }
    return cost;
}

template <class T>
std::optional<T> optional_from(const Json& object, const char* name) {
    const auto member = object.find(name);
    return member == object.end() || member->is_null() ? std::nullopt : std::optional(member->get<T>());
}

}  // namespace

Json to_json(const tables::Problem& problem) {
    Json object = Json::object();
    for (const auto& [name, value] : problem) {
        std::visit([&, &field = name](const auto& said) { object[field] = said; }, value);
    }
    return object;
}

tables::Problem problem_from(const Json& value) {
    tables::Problem problem;
    for (const auto& [name, field] : value.items()) {
        if (field.is_string()) {
            problem.emplace(name, field.get<std::string>());
        } else {
            problem.emplace(name, field.get<std::int64_t>());
        }
    }
    return problem;
}

Json to_json(const tables::Bucket& bucket) {
    Json constants = Json::object();
    for (const auto& [name, value] : bucket.constants) {
        constants[name] = value;
    }
    return {{"max_m", bucket.max_m}, {"template", bucket.template_id}, {"constants", std::move(constants)}};
}

tables::Bucket bucket_from(const Json& value) {
    tables::Bucket bucket{value.at("max_m").get<std::int64_t>(), value.at("template").get<std::string>(), {}};
    for (const auto& [name, constant] : value.at("constants").items()) {
        bucket.constants.emplace(name, constant.get<std::int64_t>());
    }
    return bucket;
}

void add_finding(Json& object, const Finding& finding) {
    object["status"] = to_text(finding.status);
    if (!finding.message.empty()) {
        object["message"] = finding.message;
    }
    if (finding.error) {
        // JSON has no NaN.
        object["error"] = std::isfinite(*finding.error) ? Json(*finding.error) : Json();
        object["bound"] = finding.bound.value_or(0);
    }
    if (finding.us) {
        object["us"] = *finding.us;
    }
    if (!finding.samples_us.empty()) {
        object["samples_us"] = finding.samples_us;
    }
    if (finding.cost) {
        object["cost"] = cost_json(*finding.cost);
    }
}

Finding finding_from(const Json& object) {
    Finding finding;
    finding.status = status_from(object.at("status").get<std::string>());
    finding.message = object.value("message", std::string());
    finding.error = optional_from<double>(object, "error");
    finding.bound = optional_from<double>(object, "bound");
    finding.us = optional_from<double>(object, "us");
    finding.samples_us = object.value("samples_us", std::vector<double>());
    if (const auto cost = object.find("cost"); cost != object.end()) {
        finding.cost = cost_from(*cost);
    }
    return finding;
}

}  // namespace kiln::tune
