#include <cstring>
#include <vector>

#include <fmt/format.h>

#include "base/prometheus.hpp"
#include "runtime/api/handles.hpp"
#include "runtime/service/metrics.hpp"

namespace {

using kiln::ErrorCode;
using kiln::Stage;
using kiln::api::check;
using kiln::api::guarded;
using kiln::api::report;

}  // namespace

extern "C" {

kiln_status kiln_service_metrics(const kiln_service* service, const kiln_label* labels, size_t num_labels,
                                 char** text, kiln_error** error) {
    return guarded(error, [&]() -> kiln_status {
        if (const kiln_status usable = check(service, "a service", error); usable != KILN_OK) {
            return usable;
        }
        if (text == nullptr || (labels == nullptr && num_labels > 0)) {
            return report(ErrorCode::invalid_argument, Stage::configure,
                          fmt::format("expected {}, found NULL",
                                      text == nullptr ? "a place for the text" : "an array of labels"),
                          error);
        }
        std::vector<kiln::prometheus::Label> common;
        for (std::size_t i = 0; i < num_labels; ++i) {
            if (labels[i].name == nullptr || labels[i].value == nullptr) {
                return report(ErrorCode::invalid_argument, Stage::configure,
                              fmt::format("label {}: expected a name and a value, found NULL", i), error);
            }
            common.push_back({labels[i].name, labels[i].value});
        }
        if (auto fit = kiln::prometheus::check_labels(common, kiln::service::metric_labels()); !fit) {
            return report({0, std::move(fit.error())}, error);
        }
        kiln::prometheus::Page page(common);
        kiln::service::add_metrics(*service->service, page);
        const std::size_t bytes = page.text().size() + 1;
        auto copy = std::make_unique<char[]>(bytes);
        std::memcpy(copy.get(), page.text().c_str(), bytes);
        *text = copy.release();
        return KILN_OK;
    });
}

void kiln_text_free(char* text) {
    delete[] text;
}

}  // extern "C"
