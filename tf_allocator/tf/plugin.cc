// What runs when the plug-in for one TensorFlow version is loaded, and what it
// shows to others.
#include <memory>
#include <string>

#include "client/loader/own_folder.h"
#include "tensorflow/core/framework/device_factory.h"
#include "tf_allocator/tf/cpu_factory.h"

namespace mets {
namespace {

// Above ThreadPoolDevice's own factory, which has 60 (70 for others' CPUs).
constexpr int kPriority = 75;

bool Register() {
  tensorflow::DeviceFactory::Register(
      "CPU", std::make_unique<CpuFactory>(OwnFolder()), kPriority,
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
