// Streams, events and what runs on them.
#include <cstring>
#include <thread>
#include <utility>

#include "tests/common/device/cuda/fake_cuda.h"
#include "tests/common/device/cuda/fake_cuda_state.h"

namespace mets::fake_cuda {
namespace {

// As far as it can be done now.
void RunUpTo(CUstream stream, uint64_t point) {
  while (stream->completed < point && stream->tasks.front()()) {
    stream->tasks.pop_front();
    ++stream->completed;
  }
}

void Submit(CUstream stream, std::function<bool()> task) {
  stream->tasks.push_back(std::move(task));
  ++stream->submitted;
  if (!S().delay) RunUpTo(stream, stream->submitted);
}

// What waited for a stream may be done now.
void RunAll() {
  for (bool progress = true; progress;) {
    progress = false;
    for (CUstream stream : S().streams) {
      const uint64_t before = stream->completed;
      RunUpTo(stream, stream->submitted);
      progress |= stream->completed != before;
    }
  }
}

}  // namespace

CUresult Copy(void* to, const void* from, size_t size, CUstream stream) {
  Submit(stream, [=] {
    if (S().next_copy != CUDA_SUCCESS) {
      S().context_error = std::exchange(S().next_copy, CUDA_SUCCESS);
    }
    if (S().context_error == CUDA_SUCCESS) std::memcpy(to, from, size);
    S().clock += 1;
    return true;
  });
  return CUDA_SUCCESS;
}

void Delay() {
  std::lock_guard<std::recursive_mutex> lock(S().mutex);
  S().delay = true;
}

void Run(int pieces) {
  std::lock_guard<std::recursive_mutex> lock(S().mutex);
  for (CUstream stream : S().streams) {
    while (!stream->tasks.empty() && pieces > 0) {
      const uint64_t before = stream->completed;
      RunUpTo(stream, before + 1);
      if (stream->completed == before) break;
      --pieces;
    }
  }
}

void Occupy(CUstream stream, std::function<void()> work) {
  std::lock_guard<std::recursive_mutex> lock(S().mutex);
  Submit(stream, [stream, work = std::move(work), n = ++stream->occupied] {
    if (stream->released < n) return false;
    if (work != nullptr) work();
    return true;
  });
}

void Release(CUstream stream) {
  std::lock_guard<std::recursive_mutex> lock(S().mutex);
  stream->released = stream->occupied;
  if (!S().delay) RunAll();
}

void Capture(CUstream stream, bool captures) {
  std::lock_guard<std::recursive_mutex> lock(S().mutex);
  stream->captures = captures;
}

namespace functions {

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  FAKE_BEGIN(cuStreamCreate);
  FAKE_CHECK_CONTEXT();
  if (flags != CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  *stream = new CUstream_st;
  S().streams.insert(*stream);
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy(CUstream stream) {
  FAKE_BEGIN(cuStreamDestroy);
  if (S().streams.erase(stream) == 0) return CUDA_ERROR_INVALID_HANDLE;
  delete stream;
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream stream) {
  {
    FAKE_BEGIN(cuStreamSynchronize);
    FAKE_CHECK_CONTEXT();
  }
  for (;; std::this_thread::yield()) {
    std::lock_guard<std::recursive_mutex> lock(S().mutex);
    RunUpTo(stream, stream->submitted);
    if (stream->completed == stream->submitted) return S().context_error;
  }
}
CUresult cuStreamQuery(CUstream stream) {
  FAKE_BEGIN(cuStreamQuery);
  FAKE_CHECK_CONTEXT();
  if (stream->captures) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  RunUpTo(stream, stream->submitted);
  return stream->completed == stream->submitted ? CUDA_SUCCESS
                                                : CUDA_ERROR_NOT_READY;
}
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  FAKE_BEGIN(cuStreamIsCapturing);
  *status = stream->captures ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                             : CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned) {
  FAKE_BEGIN(cuStreamWaitEvent);
  FAKE_CHECK_CONTEXT();
  Submit(stream, [other = event->stream, point = event->point] {
    RunUpTo(other, point);
    return other->completed >= point;
  });
  return CUDA_SUCCESS;
}
CUresult cuEventCreate(CUevent* event, unsigned) {
  FAKE_BEGIN(cuEventCreate);
  FAKE_CHECK_CONTEXT();
  *event = new CUevent_st;
  S().events.insert(*event);
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event) {
  FAKE_BEGIN(cuEventDestroy);
  if (S().events.erase(event) == 0) return CUDA_ERROR_INVALID_HANDLE;
  delete event;
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  FAKE_BEGIN(cuEventRecord);
  FAKE_CHECK_CONTEXT();
  *event = {stream, stream->submitted, S().clock};
  return CUDA_SUCCESS;
}
CUresult cuEventQuery(CUevent event) {
  FAKE_BEGIN(cuEventQuery);
  FAKE_CHECK_CONTEXT();
  return event->stream->completed >= event->point ? CUDA_SUCCESS
                                                  : CUDA_ERROR_NOT_READY;
}
CUresult cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) {
  for (CUevent event : {from, to}) {
    const CUresult passed = functions::cuEventQuery(event);
    if (passed != CUDA_SUCCESS) return passed;
  }
  *milliseconds = to->time - from->time;
  return CUDA_SUCCESS;
}

}  // namespace functions
}  // namespace mets::fake_cuda
