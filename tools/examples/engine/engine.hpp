// A decoding engine around kiln: a model, kiln's service with its plans, and one captured graph for each
// batch size that came up.
#pragma once

#include <cstdint>
#include <kiln/kiln.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "decode.hpp"
#include "gpu.hpp"
#include "model.hpp"
#include "operators.hpp"
#include "plain.hpp"

namespace engine {

struct Options {
    std::string kernels;  // folder with the engine's own kernels, one file for each processor
    std::string table;    // the shape table that goes before all others
    int device = 0;
    unsigned seed = 1;  // of the weights
};

class Engine {
  public:
    // Opens the service, loads the model and prepares every plan: afterwards no step compiles or loads.
    explicit Engine(const Options& options);
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;
    ~Engine();

    // One step of hidden.size() / kHidden tokens. Captures a graph where the batch size is new, and runs it.
    std::vector<std::uint16_t> step(const std::vector<std::uint16_t>& hidden);
    [[nodiscard]] bool has_graph(std::int64_t m) const { return graphs_.contains(m); }
    // What served the operators of that batch size's graph; there is one.
    [[nodiscard]] const Served& served(std::int64_t m) const { return graphs_.at(m).served; }

    // Takes an edited table: kiln reads it, new plans are made, and each batch size is captured again when it
    // comes up next. Empty; else why the engine goes on with the plans and graphs that it has: the table has
    // a fault, or a kernel that it asks for can not be had.
    std::string reload();

    // What the last step of m tokens computed on, for those who check it.
    [[nodiscard]] const Activations& arrays() const { return *arrays_; }
    [[nodiscard]] const Model& model() const { return *model_; }
    [[nodiscard]] Gpu& gpu() const { return *gpu_; }
    [[nodiscard]] Plain& plain() const { return *plain_; }
    [[nodiscard]] Stream stream() const { return stream_; }
    [[nodiscard]] const kiln_device_info& device() const { return info_; }
    [[nodiscard]] kiln_statistics statistics() const { return service_.statistics(); }

  private:
    struct Captured {
        Graph graph;
        Served served;
    };
    [[nodiscard]] Captured capture(std::int64_t m) const;
    void drop_graphs();

    int device_ordinal_;
    kiln::Service service_;
    kiln_device_info info_{};
    std::unique_ptr<Gpu> gpu_;
    Stream stream_ = nullptr;
    std::unique_ptr<Plain> plain_;
    std::unique_ptr<Model> model_;
    std::unique_ptr<Activations> arrays_;
    std::unique_ptr<Operators> operators_;
    std::map<std::int64_t, Captured> graphs_;
};

}  // namespace engine
