// Four edited rows move M = 16, 32, 64 and 128 of one model to sorted experts while a process runs: what is
// compiled, what is not, and that launches go on. On the simulated gfx950, through the whole service, with
// the model's own dimensions.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "runtime/operators/mxmoe_reference.hpp"
#include "runtime/service/service.hpp"
#include "tests/service/fused_moe_arrays.hpp"
#include "tests/service/mxmoe_rows.hpp"

using namespace kiln::service;
using kiln::operators::fused_moe;
using kiln::operators::FusedMoeArrays;
using kiln::operators::FusedMoeProblem;
using kiln::test::FusedMoeDeviceArrays;
using kiln::test::MoeShape;
using kiln::test::well;

namespace {

constexpr std::uint64_t kSeed = 20261130;
constexpr MoeShape kModel{4096, 512, 512, 10};
constexpr MoeShape kOtherPart{4096, 256, 512, 10};
constexpr MoeShape kWithShared{4096, 512, 513, 11};

Problem problem_of(const MoeShape& shape) {
    return well(kiln::operators::complete(fused_moe(), {{"hidden", shape.hidden},
                                                        {"intermediate", shape.intermediate},
                                                        {"experts", shape.experts},
                                                        {"slots", shape.slots}}));
}

std::string small_m(const std::vector<std::int64_t>& edges) {
    std::vector<std::string> buckets(edges.size());
    std::ranges::transform(edges, buckets.begin(), &kiln::test::small_m_bucket);
    return fmt::format("{}", fmt::join(buckets, ",\n"));
}

// The couples that are published for these four M.
std::string moved() {
    std::string buckets = kiln::test::mxmoe_bucket(16, 16, 1, 1, 0, 0);
    for (const std::int64_t max_m : {32, 64, 128}) {
        buckets += ",\n" + kiln::test::mxmoe_bucket(max_m, 16, 1, 1, 0, 1);
    }
    return buckets;
}

// A case of the model whose ids name one expert, so that it is quick: the rest of the 512 is never read.
FusedMoeArrays one_expert(std::int64_t m) {
    const FusedMoeProblem one{kModel.hidden, kModel.intermediate, 1, kModel.slots, false, false};
    FusedMoeArrays host = kiln::operators::make_fused_moe_case(one, m, kSeed);
    host.problem.experts = kModel.experts;
    for (std::int32_t& id : host.ids) {
        id = id < one.experts ? id : -1;  // what was beyond it would name an expert now
    }
    return host;
}

// A thread that launches a plan on a stream of its own, some times for each go_on(): the last of them while
// the test itself goes on.
class Running {
  public:
    Running(std::shared_ptr<const Plan> plan, const FusedMoeArrays& host)
        : plan_(std::move(plan)),
          m_(host.m),
          arrays_(FusedMoeDeviceArrays::make(*plan_, host)),
          reference_(kiln::operators::fused_moe_reference(host)),
          thread_([this] { run(); }) {}
    ~Running() {
        stop_ = true;
        turns_.release();
        thread_.join();
    }
    // Until it has launched once more, and seen what came out.
    void go_on() {
        const unsigned before = launches_;
        turns_.release(kTurns);
        for (unsigned now = before; now < before + 2; now = launches_) {
            launches_.wait(now);
        }
    }
    [[nodiscard]] unsigned failures() const { return failures_; }

  private:
    void run() {
        kiln::device::Device& device = plan_->device();
        const auto stream = device.create_stream();
        failures_ += !device.make_current() || !stream;
        std::vector<std::uint16_t> out(reference_.size());
        for (turns_.acquire(); !stop_; turns_.acquire()) {
            const bool launched =
                stream && launch<FusedMoeProblem>(*plan_, *stream, m_, arrays_.args()) == KILN_OK &&
                device.synchronize(*stream) &&
                device.copy_to_host(std::as_writable_bytes(std::span(out)), arrays_.out.get(), *stream);
            failures_ +=
                !launched || !kiln::operators::compare_fused_moe(out, reference_, m_, kModel.hidden).passed();
            ++launches_;
            launches_.notify_all();
        }
        failures_ += !stream || !device.destroy_stream(*stream);
    }

    static constexpr std::ptrdiff_t kTurns = 5;

    const std::shared_ptr<const Plan> plan_;
    const std::int64_t m_;
    const FusedMoeDeviceArrays arrays_;
    const std::vector<std::uint16_t> reference_;
    std::atomic<bool> stop_{false};
    std::counting_semaphore<> turns_{0};
    std::atomic<unsigned> launches_{0}, failures_{0};
    std::thread thread_;
};

struct Engine {
    kiln::test::Scratch scratch;
    std::unique_ptr<Service> service;

    Engine() {
        edit(small_m({4, 8, 16, 32, 64}));
        setenv("KILN_CACHE_DIR", scratch.cache().c_str(), 1);  // the look-alike's listings go there too
        Overrides overrides = kiln::test::overrides_in(scratch);
        overrides.device = "sim";
        overrides.shapes_path = (scratch.folder() / "mine.json").string();
        auto settings = well(read_settings(overrides, process_environment()));
        settings.driver.sim_library = KILN_SIM_LIBRARY;
        service = well(Service::open(std::move(settings)));
    }
    // The model's row, then one that no edit touches, then `more`.
    void edit(const std::string& buckets, const std::string& more = "") const {
        scratch.write("mine.json",
                      kiln::test::moe_table(kiln::test::moe_row(kModel, buckets) + ",\n" +
                                            kiln::test::moe_row(kWithShared, small_m({4, 8})) + more));
    }
    [[nodiscard]] std::shared_ptr<const Plan> prepare(const MoeShape& shape) const {
        auto plan = service->prepare(0, fused_moe(), problem_of(shape));
        REQUIRE_MESSAGE(plan, plan.error().error.message);
        return *std::move(plan);
    }
    [[nodiscard]] Explanation explain(const MoeShape& shape, std::int64_t m) const {
        auto explanation = service->explain(fused_moe(), problem_of(shape), m, service->settings().target);
        REQUIRE_FALSE(explanation.refusal);
        return explanation;
    }
    // Everything that any row of this many experts and slots comes to, shipped ones included.
    [[nodiscard]] std::vector<std::string> requests_with_shared() const {
        std::vector<kiln::Error> errors;
        std::vector<std::string> requests;
        const Problem some{{"experts", kWithShared.experts}, {"slots", kWithShared.slots}};
        for (const auto& one : service->matching({&fused_moe(), some, {}}, errors)) {
            requests.push_back(one.request_document);
        }
        CHECK(errors.empty());
        return requests;
    }
};

std::vector<std::string> keys(const Explanation& explanation) {
    std::vector<std::string> all;
    for (const auto& kept : explanation.kept) {
        REQUIRE(kept.key);
        all.push_back(kept.key->digest().hex());
    }
    return all;
}

// What happened since the last call.
class Since {
  public:
    explicit Since(const Service& service) : service_(service), before_(service.statistics()) {}
    // "compiled 4, found 2, loaded 4"
    std::string operator()() {
        const Statistics now = service_.statistics();
        std::string text =
            fmt::format("compiled {}, found {}, loaded {}", now.compiles - before_.compiles,
                        now.cache_hits + now.memory_hits - before_.cache_hits - before_.memory_hits,
                        now.loads - before_.loads);
        before_ = now;
        return text;
    }

  private:
    const Service& service_;
    Statistics before_;
};

}  // namespace

TEST_CASE_FIXTURE(Engine,
                  "mxmoe: four rows are edited under a running process, and only what changed is compiled") {
    INFO("seed ", kSeed);
    Since since(*service);
    const auto before = prepare(kModel);
    CHECK(since() == "compiled 5, found 0, loaded 5");
    const auto with_shared = prepare(kWithShared);
    CHECK(since() == "compiled 2, found 0, loaded 2");
    CHECK(before->bucket_for(128) == nullptr);
    CHECK(before->bucket_for(16)->template_id == "fused_moe/small_m");
    Running engine(before, one_expert(16));
    engine.go_on();
    const auto kept_keys = std::vector{keys(explain(kModel, 4)), keys(explain(kModel, 8)),
                                       keys(explain(kWithShared, 4)), keys(explain(kWithShared, 8))};
    const auto requests = requests_with_shared();
    CHECK(requests.size() > 2);
    since();

    edit(small_m({4, 8}) + ",\n" + moved());
    well(service->reload());
    engine.go_on();
    CHECK(since() == "compiled 0, found 0, loaded 0");
    const auto after = prepare(kModel);
    // A sort, a first product and two second ones; 4 and 8 are what they were.
    CHECK(since() == "compiled 4, found 2, loaded 4");
    engine.go_on();
    CHECK(kept_keys == std::vector{keys(explain(kModel, 4)), keys(explain(kModel, 8)),
                                   keys(explain(kWithShared, 4)), keys(explain(kWithShared, 8))});
    CHECK(requests_with_shared() == requests);
    CHECK(prepare(kWithShared));
    CHECK(since() == "compiled 0, found 2, loaded 0");

    // The new plan chooses by M; the old one still launches what it was made with.
    const std::map<std::int64_t, std::string> served = {{4, "fused_moe/small_m"}, {8, "fused_moe/small_m"},
                                                        {9, "fused_moe/mxmoe"},   {16, "fused_moe/mxmoe"},
                                                        {17, "fused_moe/mxmoe"},  {128, "fused_moe/mxmoe"}};
    for (const auto& [m, template_id] : served) {
        CAPTURE(m);
        CHECK(after->bucket_for(m)->template_id == template_id);
        CHECK(explain(kModel, m).bucket->template_id == template_id);
    }
    CHECK(after->max_m() == 128);
    const FusedMoeArrays host = one_expert(17);
    const auto arrays = FusedMoeDeviceArrays::make(*after, host);
    const auto plain = kiln::operators::fused_moe_reference(host, 8);
    const auto quantised = kiln::operators::mxmoe_reference(host);
    well(after->device().make_current());
    for (const std::int64_t m : {8, 16, 17}) {
        CAPTURE(m);
        REQUIRE(launch<FusedMoeProblem>(*after, nullptr, m, arrays.args()) == KILN_OK);
        const auto out = FusedMoeDeviceArrays::read<std::uint16_t>(
            *after, arrays.out, static_cast<std::size_t>(m * kModel.hidden));
        CHECK((m == 8 ? kiln::operators::compare_fused_moe(out, plain, m, kModel.hidden).passed()
                      : kiln::operators::compare_mxmoe(out, quantised, m, kModel.hidden).passed()));
    }
    engine.go_on();

    // Of another part of the model no new sort is compiled, and the operator moe_sort has it too.
    edit(small_m({4, 8}) + ",\n" + moved(), ",\n" + kiln::test::moe_row(kOtherPart, moved()));
    well(service->reload());
    since();
    const auto other = prepare(kOtherPart);
    CHECK(since() == "compiled 3, found 1, loaded 3");
    const auto sort = service->explain(
        kiln::operators::moe_sort(),
        well(kiln::operators::parse_problem(
            kiln::operators::moe_sort(),
            std::vector<std::string>{"experts=512", "slots=10", "block_m=16", "hidden=4096"})),
        16, service->settings().target);
    REQUIRE_FALSE(sort.refusal);
    CHECK(sort.kept.front().cached);
    CHECK(keys(sort).front() == keys(explain(kModel, 16)).front());
    CHECK(keys(sort).front() == keys(explain(kOtherPart, 128)).front());
    engine.go_on();
    CHECK(engine.failures() == 0);
}
