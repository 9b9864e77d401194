#include "runtime/tuned_config/form.hpp"

#include "tests/tuned_config/support.hpp"

using namespace kiln::tuned_config;

namespace {

using Lines = std::vector<std::string>;

Timing timing(const char* us1, const char* us2, const char* us) {
    const auto form = read_form("t.csv", header() + row_text({{"us1", us1}, {"us2", us2}, {"us", us}}));
    REQUIRE(form.rows.size() == 1);
    return form.rows.front().timing;
}

}  // namespace

TEST_CASE("FormReadsEveryColumn") {
    const auto form = read_form("t.csv", header() + row_text());
    CHECK(form.faults.empty());
    CHECK(form.missing.empty());
    CHECK(form.unknown.empty());
    REQUIRE(form.rows.size() == 1);
    const auto& row = form.rows.front();
    CHECK(row.line == 2);
    CHECK(row.target.text() == "gfx950");
    CHECK(row.cu_num == 256);
    CHECK(row.token == 16);
    CHECK(row.model_dim == 4096);
    CHECK(row.inter_dim == 512);
    CHECK(row.expert == 512);
    CHECK(row.topk == 10);
    CHECK(row.q_type == "QuantType.per_1x32");
    CHECK(row.use_g1u1);
    CHECK(!row.doweight_stage1);
    CHECK(row.block_m == 16);
    CHECK(row.us == 92.1512);
    CHECK(row.err1 == doctest::Approx(0.011));
    CHECK(row.cells.size() == kColumns.size());
    CHECK(row.cells.back() == "2750.25");
}

TEST_CASE("FormTakesColumnsInAnyOrderAndNamesThoseThatAreMissingOrUnknown") {
    const auto form =
        read_form("t.csv",
                  "token,_tag,kernelName2,kernelName1,block_m,doweight_stage1,use_g1u1,q_type,q_dtype_"
                  "w,q_dtype_a,dtype,act_type,topk,expert,inter_dim,model_dim,cu_num,gfx\n"
                  "16,x,b,a,16,False,True,t,w,a,d,s,10,512,512,4096,,gfx950:xnack-\n");
    REQUIRE_MESSAGE(form.faults.empty(), kiln::tables::to_error(form.faults).message);
    REQUIRE(form.rows.size() == 1);
    CHECK(form.unknown == Lines{"_tag"});
    CHECK(form.missing ==
          Lines{"ksplit", "us1", "err1", "us2", "err2", "us", "run_1stage", "xbf16", "flat", "tflops", "bw"});
    CHECK(form.rows[0].token == 16);
    CHECK(form.rows[0].cu_num == std::nullopt);
    CHECK(form.rows[0].use_g1u1);
    CHECK(form.rows[0].kernel2 == "b");
    CHECK(form.rows[0].timing == Timing::none);

    CHECK(
        faults_of("gfx,tokens\ngfx950,1\n") ==
        Lines{
            "t.csv:1:1: the document: expected the columns cu_num, token, model_dim, inter_dim, expert, "
            "topk, "
            "act_type, dtype, q_dtype_a, q_dtype_w, q_type, use_g1u1, doweight_stage1, block_m, kernelName1, "
            "kernelName2, found the unknown columns tokens"});
    CHECK(faults_of(header().insert(0, "us,")).front() ==
          "t.csv:1:177: the document: expected each column once, found a second \"us\"");
    CHECK(faults_of("").front() == "t.csv:1:1: the document: expected a header and rows, found nothing");
    CHECK(read_form("t.csv", header()).rows.empty());
}

TEST_CASE("FormFaultsNameLineColumnAndCell") {
    const std::string one_to_max = "expected a whole number from 1 to 2147483647, found ";
    const auto fault = [](const Cells& cells) {
        const auto faults = faults_of(header() + row_text() + row_text(cells));
        REQUIRE(faults.size() == 1);
        return faults.front();
    };
    CHECK(fault({{"token", "0"}}) == "t.csv:3:12: token: " + one_to_max + "\"0\"");
    CHECK(fault({{"token", "2147483648"}}) == "t.csv:3:12: token: " + one_to_max + "\"2147483648\"");
    CHECK(fault({{"token", "99999999999999999999"}}).starts_with("t.csv:3:12: token: " + one_to_max));
    CHECK(fault({{"token", "16.0"}}) == "t.csv:3:12: token: " + one_to_max + "\"16.0\"");
    CHECK(fault({{"token", " 16"}}) == "t.csv:3:12: token: " + one_to_max + "\" 16\"");
    CHECK(fault({{"token", ""}}) == "t.csv:3:12: token: " + one_to_max + "none");
    CHECK(fault({{"token", "32"}, {"cu_num", "-1"}}) == "t.csv:3:8: cu_num: " + one_to_max + "\"-1\"");
    CHECK(fault({{"token", "32"}, {"gfx", "MI355X"}}) ==
          "t.csv:3:1: gfx: expected a processor, such as gfx950, found \"MI355X\"");
    CHECK(fault({{"token", "32"}, {"dtype", ""}}) == "t.csv:3:51: dtype: expected a value, found none");
    CHECK(fault({{"token", "32"}, {"use_g1u1", "yes"}})
              .ends_with(": use_g1u1: expected 0, 1, False or True, found \"yes\""));
    for (const char* time : {"fast", "-1", "inf", "nan", "1us", "1,5"}) {
        CHECK(fault({{"token", "32"}, {"us", time}})
                  .find(": us: expected a time in microseconds, 0 or more, found \"") != std::string::npos);
    }
    CHECK(fault({{"token", "32"}, {"err2", "1.1%%"}})
              .ends_with(": err2: expected an error, 0 or more, as a ratio or with %, found \"1.1%%\""));
    // All of them, not the first.
    CHECK(faults_of(header() + row_text({{"token", "x"}, {"topk", "y"}}) + row_text({{"us", "z"}})).size() ==
          3);
}

TEST_CASE("FormHasAKeyOnce") {
    CHECK(faults_of(header() + row_text() + "\n" + row_text({{"us", "1"}, {"use_g1u1", "True"}})) ==
          Lines{"t.csv:4:12: token: expected one row for a key, found a second one for token 16 (the first "
                "stands in "
                "line 2)"});
    for (const char* column : {"cu_num", "token", "model_dim", "inter_dim", "expert", "topk"}) {
        CHECK(faults_of(header() + row_text() + row_text({{column, "77"}})).empty());
    }
}

TEST_CASE("FormTellsSumsOfStagesFromWholeSequences") {
    CHECK(timing("85.6523", "0.0", "85.6523") == Timing::end_to_end);
    CHECK(timing("60.883", "0", "60.883") == Timing::end_to_end);
    CHECK(timing("13.9857", "8.1962", "22.1819") == Timing::sum_of_stages);
    CHECK(timing("13.9857", "8.1962", "22.182") == Timing::sum_of_stages);  // rounded
    CHECK(timing("13.9857", "8.1962", "23.0") == Timing::unclear);
    CHECK(timing("13.9857", "0", "23.0") == Timing::unclear);
    CHECK(timing("", "", "23.0") == Timing::end_to_end);
    CHECK(timing("0", "0", "0") == Timing::none);
    CHECK(timing("", "", "") == Timing::none);

    std::map<Timing, int> counts;
    for (const auto& row : read_form("public.csv", public_rows()).rows) {
        ++counts[row.timing];
    }
    CHECK(counts == std::map<Timing, int>{{Timing::end_to_end, 15}, {Timing::sum_of_stages, 51}});
}
