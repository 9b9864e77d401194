// The error that every room hands back, and the expected type that carries it.
//
// No room throws across its interface: a function that can fail returns Result<T>. Exceptions of the
// libraries we use are caught where they are raised and become an Error there.
#pragma once

#include <string>
#include <utility>

#include <tl/expected.hpp>

namespace kiln {

// What kind of thing went wrong. The values are part of the C ABI (kiln_error_code): never change them.
enum class ErrorCode : int {
    invalid_argument = 1,  // the caller passed something that can not be meant
    bad_input = 2,         // a file, a command line or an environment variable is malformed
    not_found = 3,         // a thing that was named does not exist
    environment = 4,       // the machine lacks something: a library, a worker, a folder, a permission
    io = 5,                // the operating system refused to read or write
    damaged = 6,           // bytes that we wrote no longer verify
    compile_failed = 7,    // the compiler judged the source and refused it
    worker_failed = 8,     // the compile worker crashed, hung or talked nonsense
    load_failed = 9,       // the driver, or our own check of the metadata, refused a code object
    launch_failed = 10,    // the driver refused a launch
    device_failed = 11,    // any other call of the device failed, an earlier asynchronous error among them
    internal = 12,         // a promise of our own code was broken
};

// Where in the life of a request it went wrong. Part of the C ABI (kiln_stage): never change the values.
enum class Stage : int {
    configure = 1,
    table = 2,
    cache = 3,
    compile = 4,
    load = 5,
    launch = 6,
    device = 7,
};

struct Error {
    ErrorCode code = ErrorCode::internal;
    Stage stage = Stage::configure;
    std::string message;  // what was expected, what was found, and where
};

template <class T>
using Result = tl::expected<T, Error>;

// Result<void> failure and Result<T> failure in one word: return fail(ErrorCode::io, Stage::cache, "...").
[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, Stage stage, std::string message) {
    return tl::unexpected<Error>(Error{code, stage, std::move(message)});
}

// Passes the error of one result on as the error of another.
template <class T>
[[nodiscard]] tl::unexpected<Error> fail(Result<T>& result) {
    return tl::unexpected<Error>(std::move(result.error()));
}

}  // namespace kiln
