// Where requests are answered: by worker processes, or inside this one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/compile/compiler.hpp"
#include "runtime/compile/pool.hpp"
#include "runtime/compile/protocol.hpp"

namespace kiln::compile {

// Thread safe.
class Exchange {
  public:
    virtual ~Exchange() = default;

    // The answer, which may be of any kind, ReplyKind::failed among them; an error where there is none.
    // `generation` names the toolchain that the caller knows: no other one may answer.
    [[nodiscard]] virtual Result<Reply> compile(const CompileRequest& request,
                                                const std::string& generation) = 0;
    [[nodiscard]] virtual Result<Reply> disassemble(ByteView code_object, const std::string& subject,
                                                    const std::string& generation) = 0;
    // As Compiler::stop().
    virtual void stop() noexcept = 0;
    // What doctor says of it.
    [[nodiscard]] virtual std::vector<Compiler::Finding> findings() const = 0;
};

[[nodiscard]] std::unique_ptr<Exchange> make_worker_exchange(PoolConfig config);

}  // namespace kiln::compile
