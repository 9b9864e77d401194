// What a worker needs of the resource limits that it inherits from its host, known to both of them: the
// worker raises soft limits to it, the host names the hard ones that are in the way when a worker fails.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <string>

namespace kiln::compile {

struct Need {
    int resource;
    const char* name;
    rlim_t least;
    rlim_t unit;  // that a person reads it in
    const char* unit_name;
};

constexpr Need kNeeds[] = {
    {RLIMIT_AS, "RLIMIT_AS", RLIM_INFINITY, 1 << 20, "MiB"},
    {RLIMIT_DATA, "RLIMIT_DATA", RLIM_INFINITY, 1 << 20, "MiB"},
    {RLIMIT_STACK, "RLIMIT_STACK", 8 << 20, 1 << 10, "KiB"},  // a parser recurses
    {RLIMIT_CPU, "RLIMIT_CPU", RLIM_INFINITY, 1, "seconds"},
    {RLIMIT_FSIZE, "RLIMIT_FSIZE", 256 << 20, 1 << 10, "KiB"},  // comgr's temporary files
    {RLIMIT_NOFILE, "RLIMIT_NOFILE", 256, 1, "descriptors"},
    {RLIMIT_NPROC, "RLIMIT_NPROC", 4096, 1, "processes"},
};

// The hard limits of this process that are below what a worker needs and that it can therefore not raise:
// "RLIMIT_CPU of 1 seconds, RLIMIT_FSIZE of 0 KiB"; empty where there is none. `memory_limit` is what the
// worker will bound itself to.
[[nodiscard]] std::string limits_in_the_way(std::uint64_t memory_limit);

}  // namespace kiln::compile
