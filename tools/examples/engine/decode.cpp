#include "decode.hpp"

namespace engine {

namespace {

constexpr std::size_t kBf16 = 2;

// `route` is called with the index of a layer when its normed hidden states are ready, and gives the ids that
// it chose; the weights are in that layer's routing.
template <class Route>
void enqueue(const Operators& operators, const Model& model, Plain& plain, const Activations& arrays,
             Stream stream, std::int64_t m, Served& served, const Route& route) {
    const auto& [residual, update, normed, projected, mixed, routing] = arrays;
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        const Layer& layer = model.layers[i];
        plain.add_norm(stream, m, residual, update, normed);
        operators.linear(stream, m, layer.in, normed, projected, served);
        plain.mix(stream, m, projected, layer.in.n, mixed);
        operators.linear(stream, m, layer.out, mixed, update, served);
        plain.add_norm(stream, m, residual, update, normed);
        const Buffer& ids = route(i);
        operators.experts(stream, m, layer.experts, normed, ids, routing[i].weights, update, served);
    }
    plain.add_norm(stream, m, residual, update, normed);
}

}  // namespace

Activations::Activations(Gpu& gpu, const Model& model)
    : residual(gpu, kMostTokens * kHidden * kBf16),
      update(gpu, kMostTokens * kHidden * kBf16),
      normed(gpu, kMostTokens * kHidden * kBf16),
      projected(gpu, kMostTokens * kGatedDeltaColumns * kBf16),
      mixed(gpu, kMostTokens * kMixed * kBf16) {
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
        routing.emplace_back(gpu);
    }
}

void Activations::set_input(const std::vector<std::uint16_t>& hidden) const {
    residual.write(hidden);
    update.write(std::vector<std::uint16_t>(hidden.size(), 0));
}

Served enqueue_step(const Operators& operators, const Model& model, Plain& plain, const Activations& arrays,
                    Stream stream, std::int64_t m) {
    Served served;
    enqueue(operators, model, plain, arrays, stream, m, served, [&](std::size_t i) -> const Buffer& {
        const Routing& routing = arrays.routing[i];
        operators.route(stream, m, model.layers[i], arrays.normed, routing, served);
        return routing.ids;
    });
    return served;
}

void enqueue_followed_step(const Model& model, Plain& plain, const Operators& all_plain,
                           const Activations& arrays, const std::vector<Routing>& followed, Stream stream,
                           std::int64_t m) {
    Served all_declined;
    enqueue(all_plain, model, plain, arrays, stream, m, all_declined, [&](std::size_t i) -> const Buffer& {
        const Routing& mine = arrays.routing[i];
        plain.logits(stream, m, model.layers[i], arrays.normed, mine.logits);
        plain.weigh(stream, m, mine.logits, followed[i].ids, mine.weights);
        return followed[i].ids;
    });
}

}  // namespace engine
