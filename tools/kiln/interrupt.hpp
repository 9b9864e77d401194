// SIGINT (Ctrl-C) and SIGTERM.
//
// By default either ends the program at once, with exit code 130: the store is consistent at every instant,
// and compile workers end when this process does. With --json, a document that says so is printed. A command
// that has results to keep asks for a grace.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace kiln::cli {

// To be called once, before anything else runs.
void catch_interrupts(bool json);

// To be called before the command's one document is printed: a first signal from here on lets it arrive.
void let_output_arrive();

// While one lives, the first signal is a request: stop() becomes true, and `on_request` is called once, on a
// thread of its own. The command then ends what it does, prints what it has, and returns
// ExitCode::interrupted. A second signal ends the program at once. At most one lives at a time.
class Grace {
  public:
    explicit Grace(std::function<void()> on_request);
    ~Grace();
    Grace(const Grace&) = delete;
    Grace& operator=(const Grace&) = delete;

    [[nodiscard]] const std::atomic<bool>& stop() const { return stop_; }
    [[nodiscard]] bool requested() const { return stop_.load(); }

  private:
    void wait();

    const std::function<void()> on_request_;
    std::atomic<bool> stop_{false};
    int pipe_[2] = {-1, -1};  // the handler writes, the thread reads
    std::thread thread_;
};

}  // namespace kiln::cli
