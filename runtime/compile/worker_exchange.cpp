#include "runtime/compile/exchange.hpp"

namespace kiln::compile {
namespace {

class WorkerExchange final : public Exchange {
  public:
    explicit WorkerExchange(PoolConfig config)
        : worker_(config.worker.worker), loader_(config.worker.toolchain.loader), pool_(std::move(config)) {}

    Result<Reply> compile(const CompileRequest& request, const std::string& generation) override {
        return pool_.exchange([&](std::uint64_t sequence) { return encode_compile(sequence, request); },
                              request.name, generation);
    }

    Result<Reply> disassemble(ByteView code_object, const std::string& subject,
                              const std::string& generation) override {
        return pool_.exchange(
            [&](std::uint64_t sequence) { return encode_disassemble(sequence, code_object); }, subject,
            generation);
    }

    void stop() noexcept override { pool_.stop(); }

    std::vector<Compiler::Finding> findings() const override {
        std::vector<Compiler::Finding> list{{"worker", worker_.string()}};
        if (!loader_.empty()) {
            list.push_back({"loader", loader_.string()});
        }
        return list;
    }

  private:
    const std::filesystem::path worker_;
    const std::filesystem::path loader_;
    Pool pool_;
};

}  // namespace

std::unique_ptr<Exchange> make_worker_exchange(PoolConfig config) {
    return std::make_unique<WorkerExchange>(std::move(config));
}

}  // namespace kiln::compile
