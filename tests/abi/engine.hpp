// A part of a program that embeds kiln on its own account, as a plug-in does. It is compiled twice, against
// two versions of kiln, into two shared libraries of one process.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace kiln_abi_test {

struct Settings {
    std::string cache_dir;
    std::string shapes_path;
    std::string disable;
};

struct Arrays {
    const void* x;
    std::int64_t ldx;
    const void* w;
    const float* w_scale;
    void* out;
};

struct Counted {
    std::uint64_t compiles, hits, declines;
};

class Engine {
  public:
    virtual ~Engine() = default;
    // Of the headers that it was compiled against, and of the libkiln that its calls reach.
    virtual std::string compiled_against() = 0;
    virtual std::string calls() = 0;
    // Where its calls of an inline function of kiln.hpp go.
    virtual const void* inline_code() = 0;
    // Empty, or why there is no plan of linear n x k on device 0.
    virtual std::string prepare(std::int64_t n, std::int64_t k) = 0;
    // A kiln_status.
    virtual std::int32_t launch(void* stream, std::int64_t m, const Arrays& arrays) = 0;
    virtual Counted counted() = 0;
    // Takes the log of its kiln from now on, at `level`.
    virtual void listen(const char* level) = 0;
    virtual std::vector<std::string> heard() = 0;
};

using MakeEngine = std::unique_ptr<Engine>(const Settings& settings);
MakeEngine make_engine_of_this;
MakeEngine make_engine_of_next;

}  // namespace kiln_abi_test
