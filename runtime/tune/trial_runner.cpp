#include "runtime/tune/trial_runner.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "runtime/tune/record_json.hpp"

namespace kiln::tune {

namespace {

// Inputs and a reference in float64 of a large problem take their time, on a busy machine too.
constexpr std::chrono::minutes kBeginLimit(10);

}  // namespace

Result<bool> TrialRunner::begin() {
    Result<std::unique_ptr<TrialProcess>> process = TrialProcess::start(settings_.command);
    if (!process) {
        return fail(process);
    }
    const Json request = {{"begin",
                           {{"operator", settings_.subject.operator_name},
                            {"problem", to_json(settings_.subject.problem)},
                            {"target", settings_.subject.target},
                            {"max_m", settings_.subject.m},
                            {"seed", settings_.seed},
                            {"ordinal", settings_.ordinal}}}};
    const Reply reply = (*process)->exchange(
        request.dump(), std::max<std::chrono::milliseconds>(kBeginLimit, settings_.timeout), settings_.stop);
    const auto refused = [&](std::string_view what) {
        return fail(
            ErrorCode::environment, Stage::launch,
            fmt::format("a process that tries candidates of {} {}: {}", settings_.subject.operator_name,
                        tables::to_text(settings_.subject.problem), what));
    };
    switch (reply.how) {
        case Reply::How::stopped:
            return false;
        case Reply::How::late:
            return refused("no answer");
        case Reply::How::ended:
            return refused(reply.text);
        case Reply::How::answered:
            break;
    }
    const Json answer = Json::parse(reply.text, nullptr, false);
    if (answer.is_discarded() || !answer.contains("ready")) {
        return refused(answer.is_object() ? answer.value("failure", reply.text) : reply.text);
    }
    process_ = *std::move(process);
    return true;
}

Finding TrialRunner::finding_of(const Reply& reply) const {
    Finding finding;
    if (reply.how == Reply::How::late) {
        finding.status = Status::hung;
        finding.message =
            fmt::format("no answer within {:g} s", std::chrono::duration<double>(settings_.timeout).count());
        return finding;
    }
    finding.status = Status::crashed;
    finding.message = fmt::format("the process that tried it {}", reply.text);
    if (reply.how == Reply::How::answered) {
        try {
            return finding_from(Json::parse(reply.text));
        } catch (const std::exception&) {
            finding.status = Status::failed;
            finding.message = reply.text;
        }
    }
    return finding;
}

Result<std::optional<Finding>> TrialRunner::attempt(std::int64_t m, const tables::Bucket& bucket,
                                                    std::int64_t warmup, std::int64_t iters) {
    const Json request = {{"try",
                           {{"m", m},
                            {"bucket", to_json(bucket)},
                            {"error_bound", settings_.error_bound},
                            {"warmup", warmup},
                            {"iters", iters}}}};
    while (true) {
        const bool is_fresh = process_ == nullptr;
        if (is_fresh) {
            const Result<bool> begun = begin();
            if (!begun) {
                return tl::unexpected<Error>(begun.error());
            }
            if (!*begun) {
                return std::nullopt;
            }
        }
        const Reply reply = process_->exchange(request.dump(), settings_.timeout, settings_.stop);
        if (reply.how == Reply::How::stopped) {
            process_.reset();
            return std::nullopt;
        }
        Finding finding = finding_of(reply);
        if (finding.status == Status::ok) {
            return finding;
        }
        process_.reset();
        // What another candidate left behind is not this one's fault. One that hangs is not given the time
        // twice.
        if (is_fresh || finding.status == Status::hung) {
            return finding;
        }
    }
}

}  // namespace kiln::tune
