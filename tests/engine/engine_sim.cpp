#include "tests/engine/engine.hpp"
#include "tests/engine/library.hpp"

namespace kiln::test::engine {

namespace {

const Library& hip() {
    static const Library& library = *new Library(KILN_SIM_LIBRARY);
    return library;
}

constexpr int kToDevice = 1, kToHost = 2;

}  // namespace

const char* device() {
    return "sim";
}

const char* target() {
    return "gfx950";
}

const char* template_file() {
    return "linear/small_m.gfx950.hip";
}

std::string constants(int max_m, int variant) {
    return R"({"tiles_n": 1, "waves": )" + std::to_string(variant) + R"(, "lane_rows": )" +
           std::to_string(max_m) + R"(, "blocks_ahead": 1})";
}

const char* variant_name() {
    return "waves";
}

int num_devices() {
    int count = 0;
    hip().require("hipGetDeviceCount", &count);
    return count;
}

std::string why_none() {
    return {};
}

void set_device(int ordinal) {
    hip().require("hipSetDevice", ordinal);
}

int current_device() {
    int ordinal = -1;
    hip().require("hipGetDevice", &ordinal);
    return ordinal;
}

int last_error() {
    return hip().call("hipPeekAtLastError");
}

int synchronize() {
    return hip().call("hipDeviceSynchronize");
}

void* allocate(std::size_t bytes) {
    void* memory = nullptr;
    hip().require("hipMalloc", &memory, bytes);
    return memory;
}

void release(void* memory) {
    hip().require("hipFree", memory);
}

void fill(void* memory, unsigned char value, std::size_t bytes) {
    hip().require("hipMemset", memory, static_cast<int>(value), bytes);
    hip().require("hipDeviceSynchronize");
}

void copy_in(void* memory, const void* source, std::size_t bytes) {
    hip().require("hipMemcpy", memory, source, bytes, kToDevice);
}

void copy_out(void* destination, const void* memory, std::size_t bytes) {
    hip().require("hipMemcpy", destination, memory, bytes, kToHost);
}

void* create_stream() {
    void* stream = nullptr;
    hip().require("hipStreamCreateWithFlags", &stream, 1U);
    return stream;
}

void destroy_stream(void* stream) {
    hip().require("hipStreamDestroy", stream);
}

int synchronize_stream(void* stream) {
    return hip().call("hipStreamSynchronize", stream);
}

void begin_capture(void* stream, CaptureMode mode) {
    hip().require("hipStreamBeginCapture", stream, static_cast<int>(mode));
}

void* end_capture(void* stream) {
    void* graph = nullptr;
    void* executable = nullptr;
    hip().require("hipStreamEndCapture", stream, &graph);
    hip().require("hipGraphInstantiate", &executable, graph, static_cast<void*>(nullptr),
                  static_cast<char*>(nullptr), std::size_t{0});
    hip().require("hipGraphDestroy", graph);
    return executable;
}

void replay(void* graph, void* stream) {
    hip().require("hipGraphLaunch", graph, stream);
}

void destroy_graph(void* graph) {
    hip().require("hipGraphExecDestroy", graph);
}

}  // namespace kiln::test::engine
