// What runs when the plug-in for one TensorFlow version is loaded, and what it
// shows to others.
#include <dlfcn.h>

#include <memory>
#include <string>

#include "tensorflow/core/framework/device_factory.h"
#include "tf_allocator/tf/cpu_factory.h"

namespace mets {
namespace {

// Above ThreadPoolDevice's own factory, which has 60 (70 for others' CPUs).
constexpr int kPriority = 75;

std::string OwnFolder() {
  Dl_info info;
  static const char here = 0;
  if (dladdr(&here, &info) == 0 || info.dli_fname == nullptr) return "";
  const std::string path = info.dli_fname;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

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
