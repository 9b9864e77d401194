// The public form of tuned configurations for fused_moe: a CSV file with a row for each problem and token
// count.
//
//   gfx,cu_num,token,model_dim,inter_dim,expert,topk,act_type,dtype,q_dtype_a,q_dtype_w,q_type,use_g1u1,
//   doweight_stage1,                                                              the key
//   block_m,ksplit,us1,kernelName1,err1,us2,kernelName2,err2,us,run_1stage,xbf16,flat,tflops,bw
//
// Columns stand in any order; others than these are kept. Who looks a row up asks with the next power of two
// of M for `token`, up to kMaxToken.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/tables/fault.hpp"
#include "runtime/tables/target.hpp"

namespace kiln::tuned_config {

inline constexpr std::array<std::string_view, 28> kColumns = {
    "gfx",      "cu_num", "token",      "model_dim",   "inter_dim", "expert",   "topk",
    "act_type", "dtype",  "q_dtype_a",  "q_dtype_w",   "q_type",    "use_g1u1", "doweight_stage1",
    "block_m",  "ksplit", "us1",        "kernelName1", "err1",      "us2",      "kernelName2",
    "err2",     "us",     "run_1stage", "xbf16",       "flat",      "tflops",   "bw"};
inline constexpr std::size_t kNumKeyColumns = 14;
inline constexpr std::int64_t kMaxToken = 32768;

// What a row's times are. Two rows compare only where it is the same word.
//   end_to_end     us2 is 0: one time, that of the whole sequence, stands in us1 (and in us)
//   sum_of_stages  us is us1 + us2: each stage was timed alone
//   unclear        neither, within what rounding explains
//   none           no time at all
// That files hold both kinds and that they do not compare is publicly stated; the rule that tells them apart
// is ours, read off the rows: a stage that ran has a time, so a zero there says that it was not timed alone.
enum class Timing { end_to_end, sum_of_stages, unclear, none };
[[nodiscard]] std::string_view to_text(Timing timing);

struct FormRow {
    std::size_t line = 0;
    std::vector<std::string> cells;  // by Form::columns, as they were written

    tables::Target target;
    std::optional<std::int64_t> cu_num;  // an empty cell: of any number
    std::int64_t token = 0, model_dim = 0, inter_dim = 0, expert = 0, topk = 0;
    std::string act_type, dtype, q_dtype_a, q_dtype_w, q_type;
    bool use_g1u1 = false, doweight_stage1 = false;

    std::int64_t block_m = 0, ksplit = 0;
    std::string kernel1, kernel2;
    std::optional<double> us1, us2, us, err1, err2;  // an error is a ratio: "1.1%" is 0.011
    bool run_1stage = false;
    Timing timing = Timing::none;

    // Everything of the key but the token: rows for one problem on one device.
    [[nodiscard]] std::string group() const;
};

struct Form {
    std::vector<std::string> columns;  // of the file, in its order
    std::vector<std::string> missing;  // of kColumns, those that a file may do without
    std::vector<std::string> unknown;  // kept, and of no meaning here
    std::vector<FormRow> rows;
    std::vector<tables::Fault> faults;  // every one; with any the rows are not to be used
};

// A file needs the key's columns, block_m and the kernels' names. Faults: what read_csv() finds; columns
// twice or missing; cells that are no number, or one out of range; a key twice.
[[nodiscard]] Form read_form(std::string_view source, std::string_view text);

}  // namespace kiln::tuned_config
