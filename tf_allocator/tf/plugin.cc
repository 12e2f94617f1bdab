// What runs when the plug-in for one TensorFlow version is loaded, and what it
// shows to others.
#include <memory>
#include <string>

#include "client/loader/own_folder.h"
#include "tensorflow/core/framework/device_factory.h"
#include "tf_allocator/tf/cpu_factory.h"
#include "tf_allocator/tf/process_memory.h"
#ifdef METS_TF_CUDA
#include "tf_allocator/tf/gpu/gpu_factory.h"
#include "tf_allocator/tf/gpu/gpu_process_state.h"
#endif

namespace mets {
namespace {

// Above TensorFlow's own factories, which have 60 (70 for others' CPUs) and
// 210.
constexpr int kCpuPriority = 75;

bool UsesNoGpus(const tensorflow::SessionOptions&) { return false; }

#ifdef METS_TF_CUDA

constexpr int kGpuPriority = 215;

CpuFactory::UsesGpus RegisterGpus() {
  if (!GpuProcessState::Install(OwnFolder())) return UsesNoGpus;
  tensorflow::DeviceFactory::Register("GPU", std::make_unique<GpuFactory>(),
                                      kGpuPriority,
                                      /*is_pluggable_device=*/false);
  return GpuFactory::Uses;
}

#else

CpuFactory::UsesGpus RegisterGpus() { return UsesNoGpus; }

#endif

bool Register() {
  const CpuFactory::UsesGpus uses_gpus = RegisterGpus();
  tensorflow::DeviceFactory::Register(
      "CPU", std::make_unique<CpuFactory>(OwnFolder(), uses_gpus), kCpuPriority,
      /*is_pluggable_device=*/false);
  return true;
}

const bool g_registered = Register();

}  // namespace
}  // namespace mets

extern "C" METS_EXPORT int mets_tf_impl_stats(mets_stats_t* stats) {
  mets::DeviceMemory* memory = mets::ProcessMemory();
  return memory != nullptr && memory->Stats(stats) ? 0 : -1;
}

// A training step begins.
extern "C" METS_EXPORT void mets_tf_impl_step() {
  mets::DeviceMemory* memory = mets::ProcessMemory();
  if (memory != nullptr) memory->StepBegins();
}
