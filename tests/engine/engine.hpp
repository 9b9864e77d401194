// What an engine does with its driver itself, for tests that are about kiln and not about a vendor: memory,
// current device, streams and graphs. A program links one of the implementations: kiln_test_engine_sim, the
// simulator's HIP, or kiln_test_engine_cuda.
//
// The driver is bound by the first call, never before. A call that fails ends the process and says which, but
// for those that return the driver's value, 0 for success: they are for programs that end meanwhile.
#pragma once

#include <cstddef>
#include <string>

namespace kiln::test::engine {

// What tables, templates and the configuration call it.
const char* device();         // for kiln_config::device
const char* target();         // of a row: "gfx950"
const char* template_file();  // "linear/small_m.gfx950.hip"
// Constants of linear/small_m, JSON, of a bucket that ends at `max_m`: variants 1 and 2 are for K = 256,
// variant 1 for K = 128 too, and variant 3 is for neither, which variant_name() is blamed for.
std::string constants(int max_m, int variant);
const char* variant_name();

// 0, and why_none() says why, where the driver or its device is missing.
int num_devices();
std::string why_none();

void set_device(int ordinal);
int current_device();
// What the driver keeps as the calling thread's last error; 0 where it keeps none.
int last_error();
int synchronize();

// Of the current device. Fills and copies are complete when they return.
void* allocate(std::size_t bytes);
void release(void* memory);
void fill(void* memory, unsigned char value, std::size_t bytes);
void copy_in(void* memory, const void* source, std::size_t bytes);
void copy_out(void* destination, const void* memory, std::size_t bytes);

// A stream that does not wait for the default one.
void* create_stream();
void destroy_stream(void* stream);
int synchronize_stream(void* stream);

enum class CaptureMode { global = 0, thread_local_ = 1, relaxed = 2 };
void begin_capture(void* stream, CaptureMode mode);
// An executable graph.
void* end_capture(void* stream);
void replay(void* graph, void* stream);
void destroy_graph(void* graph);

}  // namespace kiln::test::engine
