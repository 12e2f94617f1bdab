// Who gives out the GPUs' memory in this process.
#ifndef METS_TF_ALLOCATOR_TF_GPU_GPU_PROCESS_STATE_H_
#define METS_TF_ALLOCATOR_TF_GPU_GPU_PROCESS_STATE_H_

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tensorflow/core/common_runtime/gpu/gpu_process_state.h"
#include "tf_allocator/tf/gpu/gpu_allocator.h"

namespace mets {

// TensorFlow's own, except that each GPU which the daemon has gets memory of
// METS. A GPU that it has not, and all when there is no daemon, keep
// TensorFlow's allocator, and one line says so. A limit that the program sets
// (of a logical device, or a fraction) is kept. In a process with several GPUs,
// logical ones too, all buffers are held, because copies between them are not
// seen. Thread-safe.
class GpuProcessState : public tensorflow::GPUProcessState {
 public:
  // Makes one the process's, with libmets in `folder`. False when TensorFlow
  // has made its own already, or there is no NVIDIA driver.
  static bool Install(const std::string& folder);

  // Null when the GPU is not METS'.
  static GpuAllocator* AllocatorOf(tsl::TfDeviceId id);
  // Why some GPU is not METS'; "" when all are.
  static std::string error();

  tensorflow::Allocator* GetGPUAllocator(
      const tensorflow::GPUOptions& options, tsl::TfDeviceId id,
      size_t total_bytes, const std::vector<tsl::TfDeviceId>& peers) override;

 private:
  explicit GpuProcessState(std::string folder) : folder_(std::move(folder)) {}
  GpuAllocator* Make(tsl::TfDeviceId id, uint64_t limit_bytes);
  void HoldIfSeveral();

  const std::string folder_;
  std::mutex mutex_;
  std::map<int, GpuAllocator*> allocators_;  // Null: not METS'.
  std::string error_;
};

}  // namespace mets

#endif  // METS_TF_ALLOCATOR_TF_GPU_GPU_PROCESS_STATE_H_
