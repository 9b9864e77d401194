// How a function of the shared headers is marked, so that host code (tests) can include them too.
#pragma once

#if defined(__HIP__) || defined(__CUDACC__)
#define KILN_DEVICE __device__ __forceinline__
// Of those that a constant is made with, which a compiler counts as the host's.
#define KILN_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define KILN_DEVICE inline
#define KILN_HOST_DEVICE inline
#endif
