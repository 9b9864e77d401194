// kiln-decode-layer [M...]: a decode layer of Qwen3.5-397B on the first device, stage after stage, each fed
// with what the one before it left on the device and checked against float64 of exactly that.
//
// What stands between the stages is an engine's: attention, for which the first columns of in_proj's result
// stand in, and the residual with its norm, which the host computes here.
//
// Exit codes: 0 all is right; 1 a stage is not; 2 bad usage; 3 something could not be run.
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "runtime/formats/bf16.hpp"
#include "tools/demo.d/stages.hpp"

namespace kiln::demo {

namespace {

using service::DeviceArray;

constexpr std::int64_t kHidden = 4096, kExperts = 512, kTopK = 10;
constexpr std::uint64_t kSeed = 11;

// One rank's part of the layer.
struct Variant {
    std::string_view name;
    std::int64_t in_proj, qkv_proj;  // columns of their results
    std::int64_t out_proj;           // columns that it takes
    std::int64_t intermediate;
    bool fp8;
};
constexpr Variant kVariants[] = {
    {"mxfp4 TP4", 5120, 4608, 2048, 256, false},
    {"fp8 TP4", 5120, 4608, 2048, 256, true},
    {"fp8 TP8", 2560, 2560, 1024, 128, true},
};

std::vector<std::uint16_t> make_rows(std::int64_t m) {
    std::mt19937_64 random(kSeed);
    std::normal_distribution<float> normal;
    std::vector<std::uint16_t> rows(static_cast<std::size_t>(m * kHidden));
    for (std::uint16_t& value : rows) {
        value = formats::float_to_bf16(normal(random));
    }
    return rows;
}

// x + y, each row brought to a root mean square of 1.
std::vector<std::uint16_t> add_and_norm(const std::vector<std::uint16_t>& x, const Bytes& y) {
    std::vector<std::uint16_t> rows(x.size());
    std::memcpy(rows.data(), y.data(), y.size());
    constexpr auto kColumns = static_cast<std::size_t>(kHidden);
    for (std::size_t row = 0; row < rows.size(); row += kColumns) {
        double squares = 0;
        std::vector<double> sums(kColumns);
        for (std::size_t i = 0; i < kColumns; ++i) {
            sums[i] = double{formats::bf16_to_float(x[row + i])} + formats::bf16_to_float(rows[row + i]);
            squares += sums[i] * sums[i];
        }
        const double scale = 1 / std::sqrt(squares / static_cast<double>(kColumns) + 1e-6);
        for (std::size_t i = 0; i < kColumns; ++i) {
            rows[row + i] = formats::float_to_bf16(static_cast<float>(sums[i] * scale));
        }
    }
    return rows;
}

struct Layer {
    Projection in_proj, qkv_proj, out_proj;
    Router router;
    FusedMoe experts;

    static Result<Layer> create(service::Service& service, const Variant& variant) {
        auto in_proj = Projection::create(service, "in_proj", variant.in_proj, kHidden, kSeed + 1);
        auto qkv_proj = Projection::create(service, "qkv_proj", variant.qkv_proj, kHidden, kSeed + 2);
        auto out_proj = Projection::create(service, "out_proj", kHidden, variant.out_proj, kSeed + 3);
        if (!in_proj || !qkv_proj || !out_proj) {
            return fail(!in_proj ? in_proj : !qkv_proj ? qkv_proj : out_proj);
        }
        auto router = Router::create(service, {kHidden, kExperts, kTopK, 1}, kSeed + 4);
        if (!router) {
            return fail(router);
        }
        auto experts = FusedMoe::create(
            service, {kHidden, variant.intermediate, kExperts + 1, kTopK + 1, variant.fp8}, kSeed + 5);
        if (!experts) {
            return fail(experts);
        }
        return Layer{*std::move(in_proj), *std::move(qkv_proj), *std::move(out_proj), *std::move(router),
                     *std::move(experts)};
    }

    // The stages that ran, up to the first that could not.
    Result<void> run(const std::shared_ptr<device::Device>& device, std::int64_t m,
                     std::vector<Outcome>& outcomes) {
        const auto keep = [&outcomes](Outcome outcome) { outcomes.push_back(std::move(outcome)); };
        const std::vector<std::uint16_t> x = make_rows(m);
        const Result<DeviceArray> input = DeviceArray::upload(device, std::as_bytes(std::span(x)));
        if (!input) {
            return tl::unexpected(input.error());
        }
        const Rows rows{input->get(), kHidden};
        Result<Bytes> attended = in_proj.run(m, rows)
                                     .map(keep)
                                     .and_then([&] { return qkv_proj.run(m, rows); })
                                     .map(keep)
                                     .and_then([&] { return out_proj.run(m, in_proj.result()); })
                                     .map(keep)
                                     .and_then([&] {
                                         return download(*device, out_proj.result().data,
                                                         static_cast<std::size_t>(m * kHidden) * 2);
                                     });
        if (!attended) {
            return fail(attended);
        }
        const std::vector<std::uint16_t> normed = add_and_norm(x, *attended);
        const Result<DeviceArray> second = DeviceArray::upload(device, std::as_bytes(std::span(normed)));
        if (!second) {
            return tl::unexpected(second.error());
        }
        const Rows middle{second->get(), kHidden};
        return router.run(m, middle)
            .map(keep)
            .and_then([&] { return experts.run(m, middle, router); })
            .map(keep);
    }
};

void print(const Variant& variant, std::int64_t m, const Outcome& outcome) {
    const std::string cost = outcome.counts
                                 ? fmt::format("{:>8} k instructions", outcome.counts->instructions / 1000)
                                 : std::string();
    fmt::print("{:<10} M={:<3} {:<10} {:<8} error {:<9.2g} bound {:<7g} {}  {}\n", variant.name, m,
               outcome.stage, outcome.passed ? "ok" : "FAILED", outcome.error, outcome.bound, cost,
               outcome.kernel);
    std::fflush(stdout);
}

// Whether all stages are right.
Result<bool> run_all(const std::vector<std::int64_t>& values) {
    Result<std::unique_ptr<service::Service>> service = service::Service::open();
    if (!service) {
        return tl::unexpected(service.error());
    }
    const Result<std::shared_ptr<device::Device>> device = (*service)->device(0);
    if (!device) {
        return tl::unexpected(device.error());
    }
    fmt::print("{}, {}\n", (*device)->info().name, (*device)->info().target);
    bool passed = true;
    for (const Variant& variant : kVariants) {
        Result<Layer> layer = Layer::create(**service, variant);
        if (!layer) {
            return tl::unexpected(layer.error());
        }
        for (const std::int64_t m : values) {
            std::vector<Outcome> outcomes;
            const Result<void> done = layer->run(*device, m, outcomes);
            for (const Outcome& outcome : outcomes) {
                print(variant, m, outcome);
                passed = passed && outcome.passed;
            }
            if (!done) {
                return tl::unexpected(done.error());
            }
        }
    }
    return passed;
}

// 0 where the text is no number of tokens that every stage serves.
std::int64_t parse_tokens(std::string_view text) {
    constexpr std::int64_t kMost = 8;  // the router's
    std::int64_t m = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), m);
    return error == std::errc() && end == text.data() + text.size() && m >= 1 && m <= kMost ? m : 0;
}

}  // namespace

}  // namespace kiln::demo

int main(int argc, char** argv) {
    std::vector<std::int64_t> values;
    for (int i = 1; i < argc; ++i) {
        values.push_back(kiln::demo::parse_tokens(argv[i]));
        if (values.back() == 0) {
            std::fprintf(stderr, "usage: kiln-decode-layer [M...], each from 1 to 8; found %s\n", argv[i]);
            return 2;
        }
    }
    if (values.empty()) {
        values = {1, 8};
    }
    const kiln::Result<bool> passed = kiln::demo::run_all(values);
    if (!passed) {
        std::fprintf(stderr, "kiln-decode-layer: %s\n", passed.error().message.c_str());
        return 3;
    }
    return *passed ? 0 : 1;
}
