// The fake driver's state, and its functions on streams and events.
#ifndef METS_TESTS_COMMON_DEVICE_CUDA_FAKE_CUDA_STATE_H_
#define METS_TESTS_COMMON_DEVICE_CUDA_FAKE_CUDA_STATE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "common/device/cuda/cuda_api.h"

// What the handles of cuda.h point to here.
struct CUstream_st {
  std::deque<std::function<bool()>> tasks;  // False: it cannot be done yet.
  uint64_t submitted = 0;
  uint64_t completed = 0;
  uint64_t occupied = 0;  // Calls of Occupy, and those that Release has ended.
  uint64_t released = 0;
  bool captures = false;
};
struct CUevent_st {
  CUstream stream = nullptr;
  uint64_t point = 0;
  float time = 0;  // Milliseconds.
};
struct CUctx_st {};

namespace mets::fake_cuda {

struct Mapping {
  size_t size;
  int fd;
  bool accessible = false;
};
struct Plan {
  int calls = 0;
  std::map<int, CUresult> failures;  // By number of the call.
};

struct State {
  std::recursive_mutex mutex;
  std::map<std::string, Plan> plans;
  bool delay = false;
  CUresult next_copy = CUDA_SUCCESS;
  CUresult context_error = CUDA_SUCCESS;
  uint64_t next_handle = 1;
  std::map<CUmemGenericAllocationHandle, int> chunks;  // Descriptors.
  std::map<CUdeviceptr, size_t> reservations;
  std::map<CUdeviceptr, Mapping> mappings;
  std::map<char*, size_t> registered;
  std::set<CUstream> streams;
  float clock = 0;
  std::set<CUevent> events;
  int contexts = 0;
  CUctx_st context;
};

State& S();
inline thread_local int in_context = 0;

// Begins a call: counts it, and gives the error that is planned.
CUresult Begin(const char* function);

#define FAKE_BEGIN(function)                             \
  std::lock_guard<std::recursive_mutex> lock(S().mutex); \
  if (const CUresult planned = Begin(#function)) return planned

// In calls that need a context, behind FAKE_BEGIN.
#define FAKE_CHECK_CONTEXT()                              \
  if (in_context == 0) return CUDA_ERROR_INVALID_CONTEXT; \
  if (S().context_error != CUDA_SUCCESS) return S().context_error

// Puts a copy into a stream.
CUresult Copy(void* to, const void* from, size_t size, CUstream stream);

namespace functions {

CUresult cuStreamCreate(CUstream* stream, unsigned flags);
CUresult cuStreamDestroy(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
CUresult cuEventCreate(CUevent* event, unsigned flags);
CUresult cuEventDestroy(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventQuery(CUevent event);
CUresult cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to);

}  // namespace functions
}  // namespace mets::fake_cuda

#endif  // METS_TESTS_COMMON_DEVICE_CUDA_FAKE_CUDA_STATE_H_
