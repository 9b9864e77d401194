// How a function of the shared headers is marked, so that host code (tests) can include them too.
#pragma once

#if defined(__HIP__) || defined(__CUDACC__)
#define KILN_DEVICE __device__ __forceinline__
#else
#define KILN_DEVICE inline
#endif
