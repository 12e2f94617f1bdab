// CudaEvents: a pool of the driver's events.
#ifndef METS_COMMON_DEVICE_CUDA_CUDA_EVENTS_H_
#define METS_COMMON_DEVICE_CUDA_CUDA_EVENTS_H_

#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/device/cuda/cuda_api.h"

namespace mets {

// An event comes back to the pool when the last one who knows it has let go,
// so that nobody waits for what it was recorded for next.
//
// Thread-safe. Take is called in the device's context, and so is the
// destructor. Events must not outlive the pool.
class CudaEvents {
 public:
  explicit CudaEvents(const CudaApi& api) : api_(api) {}
  CudaEvents(const CudaEvents&) = delete;
  CudaEvents& operator=(const CudaEvents&) = delete;
  ~CudaEvents();

  // A point in a stream, once it has been recorded.
  using Event = std::shared_ptr<CUevent_st>;
  absl::StatusOr<Event> Take();

  // Waits for the event; its result. Sleeps between looks. (The driver's own
  // way spins, unless the event is made with CU_EVENT_BLOCKING_SYNC; but with
  // some tens of such events recorded and not passed, it blocks who adds work.)
  CUresult Wait(CUevent event) const;

 private:
  void Put(CUevent event);

  const CudaApi& api_;
  absl::Mutex mutex_;
  std::vector<CUevent> free_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets

#endif  // METS_COMMON_DEVICE_CUDA_CUDA_EVENTS_H_
