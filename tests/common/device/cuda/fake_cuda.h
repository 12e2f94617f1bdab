// FakeCuda: the driver's functions over ordinary memory.
#ifndef METS_TESTS_COMMON_DEVICE_CUDA_FAKE_CUDA_H_
#define METS_TESTS_COMMON_DEVICE_CUDA_FAKE_CUDA_H_

#include <functional>
#include <string>

#include "common/device/cuda/cuda_api.h"

namespace mets {

// One device of 1 GiB, UUID kFakeCudaDevice. Allocations are memfds, mapped at
// the addresses where a GPU would have them; it checks what the driver checks
// (whole mappings, access set, a current context, registered memory) and counts
// what has not been given back. The functions have no object to work on, so
// there is one fake in the process.
namespace fake_cuda {

inline constexpr char kDevice[] = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f";

// A table of the fake's functions.
const CudaApi& Api();

// Forgets plans and errors. What is there stays.
void Reset();

// The `nth` call of `function` ("cuMemMap") from now on gives `result`.
void Fail(const std::string& function, CUresult result, int nth = 1);
// The next copy to run fails, and with it everything in the context.
void FailNextCopy(CUresult result);
// Work waits in its stream until Run, or until somebody waits for the stream,
// instead of being done at once.
void Delay();
// Does that many pieces of work that wait, or all.
void Run(int pieces = 1 << 30);
// Puts work on a stream that is done at its next Release, and calls `work`
// then. Other streams go on, unless they wait for it.
void Occupy(CUstream stream, std::function<void()> work = nullptr);
void Release(CUstream stream);
// The stream captures a graph from now on, or does not any more.
void Capture(CUstream stream, bool captures);

// What was made and not given back, such as "2 chunks 1 stream"; "" when
// nothing.
std::string Left();
// Calls of `function` so far.
int Calls(const std::string& function);

}  // namespace fake_cuda
}  // namespace mets

#endif  // METS_TESTS_COMMON_DEVICE_CUDA_FAKE_CUDA_H_
