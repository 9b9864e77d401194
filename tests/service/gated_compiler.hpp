// The real compiler behind a gate: a test says when compiles may go on, and which kernels are refused. What
// it compiled for one test it gives to the next without a worker.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "runtime/compile/compiler.hpp"
#include "runtime/service/service.hpp"

namespace kiln::test {

// Shared by a test and the compiler that it hands in. Thread safe.
class Gate {
  public:
    void close() {
        change([this] { open_ = false; });
    }
    void open() {
        change([this] { open_ = true; });
    }
    void stop() {
        change([this] { stopped_ = true; });
    }
    // A kernel whose constants.h has this in it is refused.
    void refuse(std::string part) {
        change([&] { refused_.insert(std::move(part)); });
    }
    void wait_for_compiles(unsigned number) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return inside_ >= number; });
    }
    [[nodiscard]] unsigned most_at_once() {
        const std::lock_guard lock(mutex_);
        return most_;
    }

    // What a compile does before it starts.
    [[nodiscard]] Result<void> enter(const compile::CompileRequest& request) {
        std::unique_lock lock(mutex_);
        most_ = std::max(most_, ++inside_);
        changed_.notify_all();
        changed_.wait(lock, [this] { return open_ || stopped_; });
        --inside_;
        if (stopped_) {
            return fail(ErrorCode::worker_failed, Stage::compile, "stopped");
        }
        for (const compile::Header& header : request.headers) {
            for (const std::string& part : refused_) {
                if (header.text.find(part) != std::string::npos) {
                    return fail(ErrorCode::compile_failed, Stage::compile, "refused: " + part);
                }
            }
        }
        return {};
    }

  private:
    template <class Change>
    void change(const Change& make) {
        {
            const std::lock_guard lock(mutex_);
            make();
        }
        changed_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    // Protected by mutex_.
    bool open_ = true, stopped_ = false;
    unsigned inside_ = 0, most_ = 0;
    std::set<std::string> refused_;
};

class GatedCompiler final : public compile::Compiler {
  public:
    explicit GatedCompiler(std::shared_ptr<Gate> gate) : gate_(std::move(gate)) {
        auto made = compile::Compiler::create({});
        REQUIRE_MESSAGE(made, made.error().message);
        real_ = *std::move(made);
    }

    Result<compile::CompilerIdentity> identity(std::string_view target) override {
        return real_->identity(target);
    }
    Result<compile::CompileResult> compile(const compile::CompileRequest& request) override {
        if (Result<void> entered = gate_->enter(request); !entered) {
            return fail(entered);
        }
        // One at a time: the gate has counted who came.
        static std::mutex mutex;
        static std::map<std::string, compile::CompileResult> compiled;
        const std::lock_guard lock(mutex);
        std::string key = request.target + request.source;
        for (const compile::Header& header : request.headers) {
            key += header.text;
        }
        const auto known = compiled.find(key);
        if (known != compiled.end()) {
            return known->second;
        }
        Result<compile::CompileResult> result = real_->compile(request);
        if (result) {
            compiled.emplace(std::move(key), *result);
        }
        return result;
    }
    Result<void> probe(const std::string& target) override { return real_->probe(target); }
    Result<std::string> disassemble(ByteView code_object) override { return real_->disassemble(code_object); }
    std::vector<Finding> findings() const override { return real_->findings(); }
    void stop() noexcept override {
        gate_->stop();
        real_->stop();
    }

  private:
    const std::shared_ptr<Gate> gate_;
    std::unique_ptr<compile::Compiler> real_;
};

}  // namespace kiln::test
