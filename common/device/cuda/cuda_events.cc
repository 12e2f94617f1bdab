#include "common/device/cuda/cuda_events.h"

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"

namespace mets {
namespace {

// Small copies end within the first looks.
constexpr int kLooksBeforeSleep = 100;
constexpr absl::Duration kSleep = absl::Microseconds(20);

}  // namespace

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
    METS_RETURN_IF_ERROR(api_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  }
  return Event(event, [this](CUevent e) { Put(e); });
}

CUresult CudaEvents::Wait(CUevent event) const {
  CUresult result;
  for (int looks = 0;
       (result = api_.cuEventQuery.call(event)) == CUDA_ERROR_NOT_READY;
       ++looks) {
    if (looks >= kLooksBeforeSleep) absl::SleepFor(kSleep);
  }
  return result;
}

void CudaEvents::Put(CUevent event) {
  absl::MutexLock lock(&mutex_);
  free_.push_back(event);
}

}  // namespace mets
