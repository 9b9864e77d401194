#include "runtime/operators/operator.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

using namespace kiln::operators;
using Words = std::vector<std::string>;

namespace {

Problem linear_problem(const Words& words) {
    const auto problem = parse_problem(linear(), words);
    REQUIRE(problem);
    return *problem;
}

std::string error_of(const Words& words) {
    const auto problem = parse_problem(linear(), words);
    REQUIRE(!problem);
    CHECK(problem.error().code == kiln::ErrorCode::bad_input);
    return problem.error().message;
}

bool mentions(const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a problem in words takes its defaults") {
    const Problem problem = linear_problem({"n=4608", "k=4096"});
    CHECK(std::get<std::int64_t>(problem.at("n")) == 4608);
    CHECK(std::get<std::string>(problem.at("x_type")) == "bf16");
    CHECK(std::get<std::int64_t>(problem.at("bias")) == 0);
    CHECK(problem.size() == linear().fields().size());
    CHECK(format_problem(linear(), problem) == "n=4608 k=4096");
    CHECK(problem == linear_problem({"k=4096", "x_type=bf16", "n=4608"}));
}

TEST_CASE("a problem is written back with what differs from the defaults") {
    CHECK(format_problem(linear(), linear_problem({"n=16", "k=128", "bias=1", "w_layout=row_major"})) ==
          "n=16 k=128 w_layout=row_major bias=1");
}

TEST_CASE("malformed words say what was expected and what was found") {
    CHECK(mentions(error_of({"n=16"}), "field k"));
    CHECK(mentions(error_of({"n=16", "k=128", "size=3"}), "size"));
    CHECK(mentions(error_of({"n=16", "k=12x"}), "expected an integer, found \"12x\""));
    CHECK(mentions(error_of({"n=16", "k=128", "x_type=float"}), "expected one of bf16"));
    CHECK(mentions(error_of({"n=16", "k=128", "x_type="}), "found nothing"));
    CHECK(mentions(error_of({"n", "k=128"}), "FIELD=VALUE"));
    CHECK(mentions(error_of({"n=16", "n=32", "k=128"}), "found twice"));
    CHECK(mentions(error_of({"n=16", "k=99999999999999999999"}), "expected an integer"));
}

TEST_CASE("a filter matches every value of a field that it leaves out") {
    const auto filter = parse_filter(linear(), Words{"k=4096"});
    REQUIRE(filter);
    CHECK(matches(*filter, linear_problem({"n=4608", "k=4096"})));
    CHECK(matches(*filter, linear_problem({"n=5120", "k=4096"})));
    CHECK_FALSE(matches(*filter, linear_problem({"n=4096", "k=2048"})));
    CHECK(matches(Problem{}, linear_problem({"n=4096", "k=2048"})));
}

TEST_CASE("each guard of linear declines with its own reason, and names the problem") {
    const auto reason = [](const char* word) {
        const auto judged = linear().judge(linear_problem({"n=4608", "k=4096", word}));
        REQUIRE(!judged);
        CHECK(mentions(judged.error().error.message, word));
        return judged.error().decline;
    };
    CHECK(reason("x_type=fp16") == KILN_DECLINE_X_TYPE);
    CHECK(reason("x_quantised=1") == KILN_DECLINE_X_QUANTISED);
    CHECK(reason("x_inner_stride=2") == KILN_DECLINE_X_INNER_STRIDE);
    CHECK(reason("w_type=e4m3fnuz") == KILN_DECLINE_W_TYPE);
    CHECK(reason("w_layout=row_major") == KILN_DECLINE_W_LAYOUT);
    CHECK(reason("w_scale_type=bf16") == KILN_DECLINE_W_SCALE_TYPE);
    CHECK(reason("w_scale_granularity=per_tensor") == KILN_DECLINE_W_SCALE_SHAPE);
    CHECK(reason("w_scale_strided=1") == KILN_DECLINE_W_SCALE_STRIDE);
    CHECK(reason("out_type=fp32") == KILN_DECLINE_OUT_TYPE);
    CHECK(reason("bias=1") == KILN_DECLINE_BIAS);
    CHECK(linear().judge(linear_problem({"n=4608", "k=4096"})));
}

TEST_CASE("dimensions that the layouts do not allow decline") {
    for (const Words& words :
         {Words{"n=4600", "k=4096"}, {"n=4608", "k=4032"}, {"n=0", "k=4096"}, {"n=16", "k=-128"}}) {
        const auto judged = linear().judge(linear_problem(words));
        REQUIRE(!judged);
        CHECK(judged.error().decline == KILN_DECLINE_DIMENSIONS);
        CHECK(judged.error().status() == KILN_DECLINE_DIMENSIONS);
    }
}

TEST_CASE("every reason to decline has words of its own") {
    std::set<std::string> names, texts;
    for (const DeclineWords& words : all_declines()) {
        CHECK(decline_name(words.value) == std::string(words.name));
        CHECK(decline_text(words.value) == std::string(words.text));
        names.insert(words.name);
        texts.insert(words.text);
    }
    CHECK(names.size() == all_declines().size());
    CHECK(texts.size() == all_declines().size());
    CHECK(decline_name(12345) == std::string("unknown"));
    CHECK(decline_text(0) == std::string("unknown reason"));
}
