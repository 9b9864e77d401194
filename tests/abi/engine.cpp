#include "tests/abi/engine.hpp"

#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "kiln/kiln.hpp"

namespace kiln_abi_test {
namespace {

class Embedder : public Engine {
  public:
    explicit Embedder(const Settings& settings)
        : service_(kiln::Service::open({.cache_dir = settings.cache_dir.c_str(),
                                        .shapes_path = settings.shapes_path.c_str(),
                                        .device = "sim",
                                        .disable = settings.disable.c_str()})) {}

    std::string compiled_against() override {
        return std::to_string(KILN_VERSION_MAJOR) + "." + std::to_string(KILN_VERSION_MINOR) + "." +
               std::to_string(KILN_VERSION_PATCH);
    }
    std::string calls() override { return kiln_version(); }
    const void* inline_code() override { return reinterpret_cast<const void*>(&kiln::Service::open); }
    std::string prepare(std::int64_t n, std::int64_t k) override {
        plan_ = service_.prepare(0, kiln::Linear{.n = n, .k = k});
        return *plan_ ? std::string() : plan_->failure().message;
    }
    std::int32_t launch(void* stream, std::int64_t m, const Arrays& arrays) override {
        return plan_->launch(stream, m, {arrays.x, arrays.ldx, arrays.w, arrays.w_scale, arrays.out}).value();
    }
    Counted counted() override {
        const kiln_statistics statistics = service_.statistics();
        return {statistics.compiles, statistics.cache_hits, statistics.declines};
    }
    void listen(const char* level) override {
        taker_.emplace([this](kiln::LogLevel, std::string_view line) {
            const std::lock_guard lock(mutex_);
            lines_.emplace_back(line);
        });
        if (!kiln::set_log(level)) {
            lines_.emplace_back("the level was refused");
        }
    }
    std::vector<std::string> heard() override {
        const std::lock_guard lock(mutex_);
        return std::exchange(lines_, {});
    }

  private:
    std::mutex mutex_;
    std::vector<std::string> lines_;  // under the mutex
    std::optional<kiln::LogTaker> taker_;
    kiln::Service service_;
    std::optional<kiln::Plan<kiln::Linear>> plan_;
};

}  // namespace

std::unique_ptr<Engine> KILN_TEST_MAKE_ENGINE(const Settings& settings) {
    return std::make_unique<Embedder>(settings);
}

}  // namespace kiln_abi_test
