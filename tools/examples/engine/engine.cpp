#include "engine.hpp"

namespace engine {

namespace {

kiln::Service open_service(const Options& options) {
    auto service = kiln::Service::open({.shapes_path = options.table.c_str()});
    if (!service) {
        throw Error(service.failure().message);
    }
    return service;
}

}  // namespace

Engine::Engine(const Options& options) : device_ordinal_(options.device), service_(open_service(options)) {
    std::int32_t count = 0;
    kiln::Failure why;
    if (!service_.device_count(count, &why)) {
        throw Error(why.message);
    }
    if (const auto status = service_.device_info(device_ordinal_, info_); !status) {
        throw Error("device " + std::to_string(device_ordinal_) + " of " + std::to_string(count) + ": " +
                    status.text());
    }
    gpu_ = Gpu::open(device_ordinal_, info_.target);
    stream_ = gpu_->create_stream();
    plain_ = std::make_unique<Plain>(*gpu_, options.kernels, info_.target);
    model_ = std::make_unique<Model>(make_model(*gpu_, options.seed));
    arrays_ = std::make_unique<Activations>(*gpu_, *model_);
    operators_ = std::make_unique<Operators>(service_, device_ordinal_, *model_, *gpu_, *plain_, stream_);
}

Engine::~Engine() {
    drop_graphs();
}

Engine::Captured Engine::capture(std::int64_t m) const {
    gpu_->begin_capture(stream_);
    Served served = enqueue_step(*operators_, *model_, *plain_, *arrays_, stream_, m);
    return {gpu_->end_capture(stream_), std::move(served)};
}

void Engine::drop_graphs() {
    for (const auto& [m, captured] : graphs_) {
        gpu_->destroy(captured.graph);
    }
    graphs_.clear();
}

std::vector<std::uint16_t> Engine::step(const std::vector<std::uint16_t>& hidden) {
    const auto m = static_cast<std::int64_t>(hidden.size()) / kHidden;
    auto found = graphs_.find(m);
    if (found == graphs_.end()) {
        found = graphs_.emplace(m, capture(m)).first;
    }
    arrays_->set_input(hidden);
    gpu_->replay(found->second.graph, stream_);
    gpu_->synchronise(stream_);
    return arrays_->normed.read<std::uint16_t>(hidden.size());
}

std::string Engine::reload() {
    kiln::Failure why;
    if (!service_.reload(&why)) {
        return why.message;
    }
    std::unique_ptr<Operators> next;
    try {
        next = std::make_unique<Operators>(service_, device_ordinal_, *model_, *gpu_, *plain_, stream_);
    } catch (const Error& error) {
        return error.what();
    }
    // Graphs go before the plans whose kernels they launch.
    drop_graphs();
    operators_ = std::move(next);
    return {};
}

}  // namespace engine
