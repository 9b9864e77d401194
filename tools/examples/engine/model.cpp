#include "model.hpp"

#include <cmath>
#include <kiln/formats.hpp>

#include "random.hpp"

namespace engine {

namespace {

void require(kiln::Status status, const kiln::Failure& why) {
    if (!status) {
        throw Error(why.message);
    }
}

// Results of about the size of the inputs.
ProjectionWeights make_projection(Gpu& gpu, Random& random, std::int64_t n, std::int64_t k) {
    constexpr std::int64_t kBlock = 128;
    constexpr float kTypicalCode = 259;  // of uniform values that were scaled to a maximum of 448
    kiln::Failure why;
    const std::vector<std::uint16_t> values = random.make_bf16(n * k, 1);
    std::vector<std::uint8_t> codes(values.size()), shuffled(values.size());
    std::vector<float> of_rows(values.size() / kBlock);
    require(kiln::quantise_1x128({values.data(), n, k, k}, codes.data(), of_rows.data(), &why), why);
    require(
        kiln::shuffle_weights(codes.data(), {1, n, k}, kiln::RowOrder::as_they_are, shuffled.data(), &why),
        why);
    std::vector<float> scales(static_cast<std::size_t>((n + kBlock - 1) / kBlock * (k / kBlock)));
    for (float& scale : scales) {
        scale = (1 + random.next(0.25F)) / (kTypicalCode * std::sqrt(static_cast<float>(k)));
    }
    return {n, k, Buffer::of(gpu, shuffled), Buffer::of(gpu, scales)};
}

struct Mxfp4 {
    std::vector<std::uint8_t> codes, scales;
};

// [kAllExperts, rows, k], shuffled.
Mxfp4 make_mxfp4(Random& random, std::int64_t rows, std::int64_t k) {
    constexpr std::int64_t kGroup = 32;
    kiln::Failure why;
    const std::int64_t all = kAllExperts * rows;
    const std::vector<std::uint16_t> values = random.make_bf16(all * k, 1 / std::sqrt(static_cast<float>(k)));
    std::vector<std::uint8_t> codes(values.size() / 2), scales(values.size() / kGroup);
    require(kiln::quantise_1x32({values.data(), all, k, k}, kiln::Dtype::e2m1, kiln::AmaxFloor::none,
                                codes.data(), scales.data(), &why),
            why);
    const kiln::ByteMatrix of_codes{kAllExperts, rows, k / 2}, of_scales{kAllExperts, rows, k / kGroup};
    Mxfp4 made{std::vector<std::uint8_t>(codes.size()),
               std::vector<std::uint8_t>(static_cast<std::size_t>(kiln::shuffled_scales_bytes(of_scales)))};
    require(
        kiln::shuffle_weights(codes.data(), of_codes, kiln::RowOrder::as_they_are, made.codes.data(), &why),
        why);
    require(
        kiln::shuffle_scales(scales.data(), of_scales, kiln::RowOrder::as_they_are, made.scales.data(), &why),
        why);
    return made;
}

ExpertWeights make_experts(Gpu& gpu, Random& random) {
    const Mxfp4 w13 = make_mxfp4(random, 2 * kIntermediate, kHidden);
    const Mxfp4 w2 = make_mxfp4(random, kHidden, kIntermediate);
    return {Buffer::of(gpu, w13.codes), Buffer::of(gpu, w13.scales), Buffer::of(gpu, w2.codes),
            Buffer::of(gpu, w2.scales)};
}

Layer make_layer(Gpu& gpu, Random& random, std::int64_t columns) {
    // Logits with a standard deviation of 2: some experts are clearly better than others.
    const float deviation = 2 / std::sqrt(static_cast<float>(kHidden));
    return {make_projection(gpu, random, columns, kHidden), make_projection(gpu, random, kHidden, kMixed),
            Buffer::of(gpu, random.make_bf16(kExperts * kHidden, deviation)),
            Buffer::of(gpu, random.make_bf16(kHidden, deviation)), make_experts(gpu, random)};
}

}  // namespace

Model make_model(Gpu& gpu, unsigned seed) {
    Random random(seed);
    Model model;
    for (const std::int64_t columns :
         {kGatedDeltaColumns, kGatedDeltaColumns, kGatedDeltaColumns, kAttentionColumns}) {
        model.layers.push_back(make_layer(gpu, random, columns));
    }
    return model;
}

}  // namespace engine
