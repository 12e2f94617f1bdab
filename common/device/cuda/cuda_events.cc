#include "common/device/cuda/cuda_events.h"

#include "common/base/status_macros.h"

namespace mets {

CudaEvents::~CudaEvents() {
  absl::MutexLock lock(&mutex_);
  for (CUevent event : free_) api_.cuEventDestroy(event).IgnoreError();
}

absl::StatusOr<CudaEvents::Event> CudaEvents::Take() {
  CUevent event = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (!free_.empty()) {
      event = free_.back();
      free_.pop_back();
    }
  }
  if (event == nullptr) {
    METS_RETURN_IF_ERROR(api_.cuEventCreate(
        &event, CU_EVENT_DISABLE_TIMING | CU_EVENT_BLOCKING_SYNC));
  }
  return Event(event, [this](CUevent e) { Put(e); });
}

void CudaEvents::Put(CUevent event) {
  absl::MutexLock lock(&mutex_);
  free_.push_back(event);
}

}  // namespace mets
