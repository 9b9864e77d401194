// kiln's side of tools/bench/gpu, and the limit: a process that is told what to do a line at a time, and
// answers each line with one JSON document. An engine would look the same to kiln: it knows kiln.hpp and the
// driver.
//
//     device                  -> {"name", "processor", "l2_bytes", ...}
//     problem N K MAX_M [DIR] -> {"copies": ...}; weights from DIR/w and DIR/w_scale, else random
//     case M [DIR]            -> {"kernel", "launches", "bytes", "read"}; x from DIR/x, one result to DIR/out
//     round kiln|read SAMPLES -> {"us": [...]}: microseconds a launch
//     launch ROUNDS           -> nanoseconds a launch: the plan's and the driver's own
//
// A line that can not be done is answered with {"error": ...}. Two things are for a process of their own:
//
//     bench_gpu first-use N K M
//     bench_gpu prepare N K [N K ...]
#include <cstdlib>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tools/bench/gpu.d/service_costs.hpp"

namespace {

using kiln::bench::Problem;
namespace cuda = kiln::bench::cuda;

class Session {
  public:
    nlohmann::json answer(const std::string& line) {
        std::istringstream words(line);
        const auto command = next<std::string>(words, "a command");
        if (command == "device") {
            return device();
        }
        if (command == "problem") {
            return problem(words);
        }
        if (command == "case") {
            return one_case(words);
        }
        if (command == "round") {
            return round(words);
        }
        if (command == "launch") {
            return kiln::bench::launch_cost(plan(), rotation(), m_, next<int>(words, "rounds"));
        }
        throw std::runtime_error("unknown command: " + command);
    }

  private:
    template <class T>
    static T next(std::istringstream& words, const char* what) {
        T value{};
        if (!(words >> value)) {
            throw std::runtime_error(std::string("expected ") + what);
        }
        return value;
    }

    static nlohmann::json device() {
        const cuda::Gpu& gpu = cuda::Gpu::instance();
        return {{"name", gpu.name()},
                {"processor", gpu.processor()},
                {"driver", gpu.driver_version()},
                {"multiprocessors", gpu.num_multiprocessors()},
                {"l2_bytes", gpu.l2_bytes()}};
    }

    nlohmann::json problem(std::istringstream& words) {
        Problem wanted;
        wanted.n = next<std::int64_t>(words, "N");
        wanted.k = next<std::int64_t>(words, "K");
        max_m_ = next<std::int64_t>(words, "MAX_M");
        forget_case();
        rotation_.reset();
        plan_.reset();
        rotation_ = std::make_unique<kiln::bench::Rotation>(wanted, max_m_);
        if (std::string folder; words >> folder) {
            rotation_->load_weights(folder);
        }
        if (!service_) {
            service_ = kiln::bench::open_service();
        }
        plan_ = kiln::bench::prepare(*service_, wanted);
        if (!read_) {
            read_ = std::make_unique<kiln::bench::StreamingRead>();
        }
        return {{"copies", rotation_->num_copies()}};
    }

    nlohmann::json one_case(std::istringstream& words) {
        forget_case();
        m_ = next<std::int64_t>(words, "M");
        if (m_ < 1 || m_ > max_m_) {
            throw std::runtime_error("M out of the range of the problem");
        }
        std::string folder;
        words >> folder;
        if (!folder.empty()) {
            rotation().load_activations(std::filesystem::path(folder) / "x", m_);
        }
        rotation().poison_results();
        of_kiln_ = rotation().graph_of(plan(), m_);
        of_kiln_->replay(0);
        if (!folder.empty()) {
            rotation().store_results(std::filesystem::path(folder) / "out", m_);
        }
        const auto shape = rotation().best_read(*read_, m_);
        of_read_ = rotation().graph_of(*read_, shape, m_);
        const char* const kernel = plan().kernel_name(m_);
        return {{"kernel", kernel != nullptr ? kernel : ""},
                {"launches", rotation().num_launches(m_)},
                {"bytes", rotation().problem().bytes(m_)},
                {"read", shape.text()}};
    }

    nlohmann::json round(std::istringstream& words) {
        const auto what = next<std::string>(words, "kiln or read");
        const auto samples = next<int>(words, "samples");
        const auto& graph = what == "kiln" ? of_kiln_ : of_read_;
        if (!graph || (what != "kiln" && what != "read")) {
            throw std::runtime_error("expected a case, then kiln or read");
        }
        auto times = graph->replay(samples);
        for (double& time : times) {
            time *= 1000.0 / rotation().num_launches(m_);
        }
        return {{"us", times}};
    }

    const kiln::Plan<kiln::Linear>& plan() const {
        if (!plan_) {
            throw std::runtime_error("expected a problem first");
        }
        return *plan_;
    }
    kiln::bench::Rotation& rotation() {
        if (!rotation_ || !plan_) {
            throw std::runtime_error("expected a problem first");
        }
        return *rotation_;
    }
    // Graphs go before the plan whose kernels they hold.
    void forget_case() {
        of_kiln_.reset();
        of_read_.reset();
        m_ = 0;
    }

    std::optional<kiln::Service> service_;
    std::unique_ptr<kiln::bench::StreamingRead> read_;
    std::unique_ptr<kiln::bench::Rotation> rotation_;
    std::optional<kiln::Plan<kiln::Linear>> plan_;
    std::optional<cuda::CapturedGraph> of_kiln_;
    std::optional<cuda::CapturedGraph> of_read_;
    std::int64_t max_m_ = 0;
    std::int64_t m_ = 0;
};

template <class Work>
nlohmann::json answer_of(Work work) {
    try {
        return work();
    } catch (const std::exception& error) {
        return {{"error", error.what()}};
    }
}

int serve() {
    Session session;
    for (std::string line; std::getline(std::cin, line);) {
        std::cout << answer_of([&] { return session.answer(line); }).dump() << std::endl;
    }
    return 0;
}

// Prints the answer; what it is not able to do is an answer too, and a failure.
int answer_once(const nlohmann::json& answer) {
    std::cout << answer.dump() << std::endl;
    return answer.contains("error") ? 1 : 0;
}

int usage() {
    std::cerr
        << "usage: bench_gpu [first-use N K M | prepare N K [N K ...]]    (tools/bench/gpu starts it)\n";
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.empty()) {
        return serve();
    }
    std::vector<std::int64_t> numbers;
    for (std::size_t i = 1; i < words.size(); ++i) {
        numbers.push_back(std::atoll(words[i].c_str()));
    }
    if (words[0] == "first-use" && numbers.size() == 3) {
        return answer_once(answer_of([&] {
            return kiln::bench::first_use(Problem{numbers[0], numbers[1]}, numbers[2]);
        }));
    }
    if (words[0] == "prepare" && !numbers.empty() && numbers.size() % 2 == 0) {
        std::vector<Problem> problems;
        for (std::size_t i = 0; i < numbers.size(); i += 2) {
            problems.push_back(Problem{numbers[i], numbers[i + 1]});
        }
        return answer_once(answer_of([&] { return kiln::bench::prepare_all(problems); }));
    }
    return usage();
}
