#include "runtime/tune/trial_server.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.hpp"
#include "runtime/operators/demands.hpp"
#include "runtime/service/service.hpp"
#include "runtime/service/trial.hpp"
#include "runtime/tables/writer.hpp"
#include "runtime/tune/kernel_work.hpp"
#include "runtime/tune/launch_counter.hpp"
#include "runtime/tune/median.hpp"
#include "runtime/tune/record_json.hpp"
#include "runtime/tune/replay_timer.hpp"

namespace kiln::tune {

namespace {

constexpr std::string_view kProvenance = R"({"kind": "untuned"})";

// A table that lies in memory, under a path that this process can read.
class CandidateTable {
  public:
    static Result<CandidateTable> create() {
        UniqueFd file(::memfd_create("candidate.json", MFD_CLOEXEC));
        if (!file.valid()) {
            return fail(ErrorCode::environment, Stage::table, system_message("create", "a table", errno));
        }
        return CandidateTable(std::move(file));
    }

    [[nodiscard]] std::string path() const { return fmt::format("/proc/self/fd/{}", file_.get()); }

    Result<void> set(const std::vector<tables::Row>& rows) {
        const std::string text = tables::to_table_text(rows);
        if (::ftruncate(file_.get(), 0) != 0 ||
            ::pwrite(file_.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
            return fail(ErrorCode::io, Stage::table, system_message("write", path(), errno));
        }
        return {};
    }

  private:
    explicit CandidateTable(UniqueFd file) : file_(std::move(file)) {}

    UniqueFd file_;
};

Finding failed(const Error& error) {
    Finding finding;
    finding.status = Status::failed;
    finding.message = error.message;
    return finding;
}

// The problem under way.
class Session {
  public:
    static Result<std::unique_ptr<Session>> begin(service::Overrides overrides, const Json& request) {
        Result<CandidateTable> table = CandidateTable::create();
        if (!table) {
            return fail(table);
        }
        if (Result<void> written = table->set({}); !written) {
            return fail(written);
        }
        overrides.tables = {table->path()};
        Result<std::unique_ptr<service::Service>> service = service::Service::open(overrides);
        if (!service) {
            return fail(service);
        }
        const int ordinal = request.at("ordinal").get<int>();
        Result<std::shared_ptr<device::Device>> device = (*service)->device(ordinal);
        if (!device) {
            return fail(device);
        }
        if (Result<void> current = (*device)->make_current(); !current) {
            return fail(current);
        }
        std::unique_ptr<Session> session(
            new Session(*std::move(table), *std::move(service), *std::move(device), request));
        Result<void> ready = session->make_ready();
        return ready ? Result<std::unique_ptr<Session>>(std::move(session)) : fail(ready);
    }

    Finding attempt(const Json& request) {
        const std::int64_t m = request.at("m").get<std::int64_t>();
        tables::Row row;
        row.operator_name = op_.name();
        row.problem = operators::essential(op_, operators::without_demands(op_, problem_));
        row.target = *tables::parse_target(target_);
        row.buckets = {bucket_from(request.at("bucket"))};
        row.provenance.document = kProvenance;
        if (const Result<void> read = table_.set({row}).and_then([&] { return service_->reload(); }); !read) {
            return failed(read.error());
        }
        auto plan = service_->prepare(ordinal_, op_, problem_);
        if (!plan) {
            return failed(plan.error().error);
        }
        return attempt(*plan, m, request);
    }

  private:
    Session(CandidateTable table, std::unique_ptr<service::Service> service,
            std::shared_ptr<device::Device> device, const Json& request)
        : table_(std::move(table)),
          service_(std::move(service)),
          device_(std::move(device)),
          ordinal_(request.at("ordinal").get<int>()),
          op_(*operators::find_operator(request.at("operator").get<std::string>())),
          problem_(problem_from(request.at("problem"))),
          target_(request.at("target").get<std::string>()),
          max_m_(request.at("max_m").get<std::int64_t>()),
          seed_(request.at("seed").get<std::uint64_t>()),
          arrays_(service::make_case(op_.typed(problem_), max_m_, seed_)) {}

    // What is timed, or counted.
    Result<void> make_ready() {
        std::shared_ptr<const service::TrialCase> typical =
            service::make_typical_case(op_.typed(problem_), max_m_, seed_);
        const bool is_simulated = device_->info().simulated;
        if (typical == nullptr && is_simulated) {
            return {};  // the check's first launch is counted
        }
        const auto put = [](auto& member, auto made) -> Result<void> {
            if (!made) {
                return fail(made);
            }
            member = *std::move(made);
            return {};
        };
        return is_simulated ? put(counter_, LaunchCounter::create(device_, typical))
                            : put(timer_, ReplayTimer::create(device_, typical ? typical : arrays_));
    }

    Finding attempt(const std::shared_ptr<const service::Plan>& plan, std::int64_t m, const Json& request) {
        const service::PlanBucket& bucket = *plan->bucket_for(m);
        if (const auto& complaints = bucket.loaded()->over_budget; !complaints.empty()) {
            return failed(
                {ErrorCode::load_failed, Stage::load, fmt::format("{}", fmt::join(complaints, "; "))});
        }
        Result<std::unique_ptr<service::Trial>> trial = service::Trial::create(plan, arrays_);
        if (!trial) {
            return failed(trial.error());
        }
        const Result<service::TrialResult> result = (*trial)->run(m);
        if (!result) {
            return failed(result.error());
        }
        Finding finding;
        finding.error = result->error;
        finding.bound = result->bound;
        const double allowed = request.at("error_bound").get<double>() * result->bound;
        if (!result->passed || !(result->error <= allowed)) {
            finding.status = Status::wrong;
            finding.message = result->passed ? fmt::format("expected an error of at most {:g}, found {:g}",
                                                           allowed, result->error)
                                             : result->remark;
            return finding;
        }
        const Result<void> valued = device_->info().simulated ? value_by_model(*plan, *result, finding)
                                                              : value_by_time(*plan, m, request, finding);
        if (!valued) {
            return failed(valued.error());
        }
        finding.status = Status::ok;
        return finding;
    }

    Result<void> value_by_model(const service::Plan& plan, const service::TrialResult& result,
                                Finding& finding) {
        const Result<std::vector<device::ExecutionCounts>> counts =
            counter_ == nullptr ? result.launches : counter_->count(plan, result.m);
        if (!counts) {
            return tl::unexpected<Error>(counts.error());
        }
        const Result<std::vector<KernelWork>> work = kernel_work(*service_, *result.bucket, *counts);
        if (!work) {
            return tl::unexpected<Error>(work.error());
        }
        finding.cost = model_cost(*work);
        finding.us = finding.cost->us;
        return {};
    }

    Result<void> value_by_time(const service::Plan& plan, std::int64_t m, const Json& request,
                               Finding& finding) {
        Result<std::vector<double>> samples = timer_->time(plan, m, request.at("warmup").get<std::int64_t>(),
                                                           request.at("iters").get<std::int64_t>());
        if (!samples) {
            return fail(samples);
        }
        for (double& us : *samples) {
            us = std::round(us * 1e3) / 1e3;
        }
        finding.us = median(*samples);
        finding.samples_us = *std::move(samples);
        return {};
    }

    CandidateTable table_;
    const std::unique_ptr<service::Service> service_;
    const std::shared_ptr<device::Device> device_;
    const int ordinal_;
    const operators::Operator& op_;
    const operators::Problem problem_;
    const std::string target_;
    const std::int64_t max_m_;
    const std::uint64_t seed_;
    const std::shared_ptr<const service::TrialCase> arrays_;  // for the check
    std::unique_ptr<LaunchCounter> counter_;                  // on the simulator, of a typical case
    std::unique_ptr<ReplayTimer> timer_;                      // on a real device
};

// The answer to one request; throws where that is of another form.
Json answer(const service::Overrides& overrides, const Json& request, std::unique_ptr<Session>& session) {
    if (const auto begin = request.find("begin"); begin != request.end()) {
        Result<std::unique_ptr<Session>> begun = Session::begin(overrides, *begin);
        if (!begun) {
            return {{"failure", begun.error().message}};
        }
        session = *std::move(begun);
        return {{"ready", true}};
    }
    if (session == nullptr) {
        throw std::invalid_argument("expected a begin first");
    }
    Json reply = Json::object();
    add_finding(reply, session->attempt(request.at("try")));
    return reply;
}

}  // namespace

int serve_trials(const service::Overrides& overrides, int parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) {
        return 0;
    }
    std::unique_ptr<Session> session;
    for (std::string line; std::getline(std::cin, line);) {
        Json reply;
        try {
            reply = answer(overrides, Json::parse(line), session);
        } catch (const std::exception& exception) {
            reply = {{"failure", exception.what()}};
        }
        std::cout << reply.dump(-1, ' ', false, Json::error_handler_t::replace) << std::endl;
    }
    return 0;
}

}  // namespace kiln::tune
