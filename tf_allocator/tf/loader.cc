// libmets_tensorflow.so: what TF_PLUGGABLE_DEVICE_LIBRARY_PATH names. It links
// nothing of TensorFlow, finds out which version is running, and opens the
// plug-in that was built for it, libmets_tensorflow-MAJOR.MINOR.so, or, for one
// with CUDA, libmets_tensorflow-MAJOR.MINOR-cuda.so, which lies beside it.
//
// METS_DISABLE=1: it does nothing. No plug-in for this version: one line on
// stderr, and TensorFlow runs without METS; with METS_REQUIRED=1 the process
// ends (status 1).
#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "client/include/mets/mets.h"
#include "client/loader/own_folder.h"

namespace mets {
namespace {

using StatsFunction = int (*)(mets_stats_t*);

bool Set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' && std::string(value) != "0";
}

// A function that only a TensorFlow with CUDA has:
// tensorflow::BaseGPUDevice::Compute.
constexpr char kCudaFunction[] =
    "_ZN10tensorflow13BaseGPUDevice7ComputeEPNS_8OpKernelEPNS_15"
    "OpKernelContextE";

// Major and minor version of the TensorFlow that is loaded, with "-cuda" behind
// them where it has CUDA; "" when there is none.
std::string RunningVersion() {
  void* library = dlopen("libtensorflow_cc.so.2", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return "";
  using VersionFunction = const char* (*)();
  auto version =
      reinterpret_cast<VersionFunction>(dlsym(library, "TF_Version"));
  if (version == nullptr) return "";
  const bool cuda = dlsym(library, kCudaFunction) != nullptr;
  const std::string full = version();
  return full.substr(0, full.find('.', full.find('.') + 1)) +
         (cuda ? "-cuda" : "");
}

StatsFunction Refuse(const std::string& why) {
  std::fprintf(stderr, "METS: %s; %s\n", why.c_str(),
               Set("METS_REQUIRED") ? "METS_REQUIRED is set, so it ends here"
                                    : "TensorFlow goes on without METS");
  if (Set("METS_REQUIRED")) _exit(1);
  return nullptr;
}

StatsFunction Load() {
  if (Set("METS_DISABLE")) return nullptr;
  const std::string version = RunningVersion();
  if (version.empty()) return Refuse("no TensorFlow is loaded here");
  const std::string folder = OwnFolder();
  const std::string path = (folder.empty() ? "." : folder) +
                           "/libmets_tensorflow-" + version + ".so";
  if (access(path.c_str(), R_OK) != 0) {
    return Refuse("this is TensorFlow " + version +
                  ", and the plug-in was not built for it (there is no " +
                  path + ")");
  }
  void* plugin = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (plugin == nullptr) {
    return Refuse(std::string("cannot load the plug-in: ") + dlerror());
  }
  return reinterpret_cast<StatsFunction>(dlsym(plugin, "mets_tf_impl_stats"));
}

const StatsFunction g_stats = Load();

}  // namespace
}  // namespace mets

// Fills `stats` (its `size` set by the caller) with the process's numbers.
// Returns 0, or -1 when METS is not used: for programs that want to show them
// (Python: ctypes).
extern "C" METS_EXPORT int mets_tf_stats(mets_stats_t* stats) {
  return mets::g_stats == nullptr ? -1 : mets::g_stats(stats);
}
