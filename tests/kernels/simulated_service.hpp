// A service on the simulator with rows of a test's own before the shipped ones, for tests of whole launches.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/service/service.hpp"

namespace kiln::kernels_test {

// Lives, as its cache does, until the process ends: its devices belong to a driver that is torn down then.
service::Service& open_simulated_service(const std::vector<std::string>& rows);

// On device 0, every bucket loaded. Fails the test on a decline.
std::shared_ptr<const service::Plan> prepare_on(service::Service& service, const operators::Operator& op,
                                                const operators::Problem& problem);

}  // namespace kiln::kernels_test
