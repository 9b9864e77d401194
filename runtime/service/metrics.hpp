// What a service has counted, for Prometheus. The README of this room lists the families; their names, labels
// and meanings stay.
#pragma once

#include <span>
#include <string_view>

#include "base/prometheus.hpp"
#include "runtime/service/service.hpp"

namespace kiln::service {

// Names of labels that add_metrics() gives a meaning: no common label of the page may have one.
[[nodiscard]] std::span<const std::string_view> metric_labels();

// Any thread; reads nothing from disk.
void add_metrics(const Service& service, prometheus::Page& page);

}  // namespace kiln::service
