#include "check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "bf16.hpp"

namespace engine {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

double relative_l2(std::span<const std::uint16_t> found, std::span<const std::uint16_t> expected) {
    double squares = 0, difference = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double e = bf16_to_float(expected[i]), f = bf16_to_float(found[i]);
        squares += e * e;
        difference += (f - e) * (f - e);
    }
    // Not a number where one of them has one.
    const double ratio = std::sqrt(difference / squares);
    return ratio >= 0 ? ratio : kNever;
}

double largest_difference(std::span<const float> found, std::span<const float> expected) {
    double largest = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        const double difference = std::abs(double{found[i]} - expected[i]);
        largest = difference >= 0 ? std::max(largest, difference) : kNever;
    }
    return largest;
}

// Of one token.
double choice_deviation(std::span<const std::int32_t> ids, std::span<const float> logits) {
    std::vector<bool> chosen(kExperts);
    double worst = kNever;
    for (const std::int32_t id : ids.first(kTopK)) {
        if (id < 0 || id >= kExperts || chosen[static_cast<std::size_t>(id)]) {
            return kNever;
        }
        chosen[static_cast<std::size_t>(id)] = true;
        worst = std::min(worst, double{logits[static_cast<std::size_t>(id)]});
    }
    if (ids[kTopK] != kExperts) {
        return kNever;  // the shared expert's place
    }
    double best = -kNever;
    for (std::size_t e = 0; e < chosen.size(); ++e) {
        best = chosen[e] ? best : std::max(best, double{logits[e]});
    }
    return std::max(0.0, best - worst);
}

// The part of token number `token`, of so many elements each.
template <class T>
std::span<const T> of_token(const std::vector<T>& values, std::size_t token, std::size_t count) {
    return std::span(values).subspan(token * count, count);
}

}  // namespace

Checker::Checker(const Engine& engine)
    : engine_(&engine), all_plain_(engine.gpu(), engine.plain()), arrays_(engine.gpu(), engine.model()) {}

Deviation Checker::compare(const std::vector<std::uint16_t>& hidden,
                           const std::vector<std::uint16_t>& result) const {
    const std::size_t m = hidden.size() / kHidden;
    const std::vector<Routing>& routing = engine_->arrays().routing;
    arrays_.set_input(hidden);
    enqueue_followed_step(engine_->model(), engine_->plain(), all_plain_, arrays_, routing, engine_->stream(),
                          static_cast<std::int64_t>(m));
    engine_->gpu().synchronise(engine_->stream());

    Deviation deviation;
    const auto expected = arrays_.normed.read<std::uint16_t>(hidden.size());
    for (std::size_t token = 0; token < m; ++token) {
        deviation.hidden = std::max(deviation.hidden, relative_l2(of_token(result, token, kHidden),
                                                                  of_token(expected, token, kHidden)));
    }
    for (std::size_t layer = 0; layer < routing.size(); ++layer) {
        const auto ids = routing[layer].ids.read<std::int32_t>(m * kSlots);
        const auto logits = arrays_.routing[layer].logits.read<float>(m * kAllExperts);
        deviation.weights = std::max(
            deviation.weights, largest_difference(routing[layer].weights.read<float>(m * kSlots),
                                                  arrays_.routing[layer].weights.read<float>(m * kSlots)));
        for (std::size_t token = 0; token < m; ++token) {
            deviation.choice = std::max(
                deviation.choice,
                choice_deviation(of_token(ids, token, kSlots), of_token(logits, token, kAllExperts)));
        }
    }
    return deviation;
}

}  // namespace engine
