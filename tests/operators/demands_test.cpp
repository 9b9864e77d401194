#include "runtime/operators/demands.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <fmt/format.h>

using namespace kiln;
using namespace kiln::operators;

namespace {

// linear, but with a template of which the constant "atomic" says whether it is deterministic, and a demand.
class Varying final : public KernelTemplate {
  public:
    std::string_view id() const override { return "linear/varying"; }
    std::string_view processor() const override { return "gfx950"; }
    std::vector<tables::RowFault> check(const Problem&, const Bucket&) const override { return {}; }
    std::string kernel_name(const Problem&, const Bucket&) const override { return "kiln_varying"; }
    bool is_deterministic(const Problem&, const Bucket& bucket) const override {
        return bucket.constants.find("atomic")->second == 0;
    }
    const KernargBlock& kernargs() const override { return linear_kernargs(); }
    std::vector<KernelLaunch> kernels(const Problem&, const Bucket&) const override { return {}; }
    std::vector<std::pair<std::string, std::int64_t>> constants(const Problem&,
                                                                const Bucket&) const override {
        return {};
    }
    std::vector<std::string> options() const override { return {}; }
    std::string probe() const override { return {}; }
};

class Demanding final : public Operator {
  public:
    std::string_view name() const override { return "linear"; }
    std::span<const Field> fields() const override { return fields_; }
    std::span<const Template* const> templates() const override { return templates_; }
    Answer<void> judge(const Problem&) const override { return {}; }
    TypedProblem typed(const Problem&) const override { return LinearProblem{}; }
    Result<std::vector<Bucket>> derive(const Problem&, const tables::Target&) const override {
        return std::vector<Bucket>{};
    }

  private:
    Field fields_[2] = {{"n", "columns", std::nullopt}, {kDeterministic, "the same bits", 0, {}, true}};
    Varying varying_;
    const Template* templates_[1] = {&varying_};
};

struct Demands {
    Demanding op;
    tables::Row row;

    Demands() {
        row.problem = problem(0);
        row.target = {"gfx950", {}};
        for (const auto& [max_m, atomic] :
             std::vector<std::pair<std::int64_t, std::int64_t>>{{16, 0}, {128, 1}, {128, 0}, {256, 1}}) {
            row.buckets.push_back({max_m, "linear/varying", {{"atomic", atomic}}});
        }
    }
    static Problem problem(std::int64_t deterministic) {
        return {{"n", std::int64_t{16}}, {"deterministic", deterministic}};
    }
    // "16 128a", with an "a" where it is not deterministic.
    [[nodiscard]] std::string served(std::int64_t deterministic) const {
        std::string text;
        for (const Bucket& bucket : serving(op, row, problem(deterministic)).buckets) {
            text += fmt::format("{}{}{}", text.empty() ? "" : " ", bucket.max_m,
                                bucket.constants.find("atomic")->second == 1 ? "a" : "");
        }
        return text;
    }
};

}  // namespace

TEST_CASE_FIXTURE(Demands, "demands: a bucket that varies is passed over, and nothing else changes") {
    CHECK(served(0) == "16 128a 256a");
    CHECK(served(1) == "16 128");
    CHECK(serving(op, row, problem(1)).problem == problem(1));
    row.buckets.erase(row.buckets.begin() + 2);
    CHECK(served(1) == "16");
    row.buckets.erase(row.buckets.begin());
    CHECK(served(1).empty());
}

TEST_CASE_FIXTURE(Demands, "demands: the reason names the template") {
    CHECK_FALSE(why_passed_over(op, problem(0), row.target, row.buckets[1]));
    CHECK_FALSE(why_passed_over(op, problem(1), row.target, row.buckets[0]));
    CHECK(why_passed_over(op, problem(1), row.target, row.buckets[1]) ==
          "linear/varying with these constants is not deterministic, which the problem demands");
}

TEST_CASE_FIXTURE(Demands, "demands: a table is asked for the problem without them") {
    CHECK(without_demands(op, problem(1)) == problem(0));
    Problem asked = *complete(fused_moe(), {{"hidden", std::int64_t{256}},
                                            {"intermediate", std::int64_t{256}},
                                            {"experts", std::int64_t{8}},
                                            {"slots", std::int64_t{2}},
                                            {"deterministic", std::int64_t{1}}});
    CHECK(without_demands(fused_moe(), asked) != asked);
    tables::Row of_a_demand;
    of_a_demand.operator_name = "fused_moe";
    of_a_demand.problem = asked;
    of_a_demand.target = {"gfx950", {}};
    const auto faults = check_row(of_a_demand);
    REQUIRE(faults.size() == 1);
    CHECK(faults.front().pointer == "/problem/deterministic");
}
