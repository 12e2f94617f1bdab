// ExtentRegistrar: makes swap extents known to the devices.
#ifndef METS_CLIENT_SRC_EXTENT_REGISTRAR_H_
#define METS_CLIENT_SRC_EXTENT_REGISTRAR_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "client/src/descriptor_inbox.h"

namespace mets::client {

class Device;

// Registering an extent takes tens of milliseconds on a GPU, so that each is
// registered in the background once its descriptor has come; who needs one
// before that registers it itself, and goes first. Thread-safe. Borrows the
// inbox.
class ExtentRegistrar {
 public:
  using FindDevices = std::function<std::vector<Device*>()>;

  ExtentRegistrar(DescriptorInbox& inbox, FindDevices devices);
  ~ExtentRegistrar();

  // The extent's descriptor is in the inbox.
  void Announce(uint64_t id);
  // OK once `device` knows the extent. NOT_FOUND: its descriptor has not come.
  absl::Status Register(Device& device, uint64_t id);
  // The inbox and all devices forget it.
  void Forget(uint64_t id);
  // Extents that have been announced are worth nothing: another epoch begins.
  void Reset();
  // Ends the thread.
  void Stop();

 private:
  void Run();
  absl::Status RegisterNow(Device& device, uint64_t id);
  // One at a time: waits for it, before the background does.
  void Begin();
  void End();

  DescriptorInbox& inbox_;
  const FindDevices devices_;
  absl::Mutex mutex_;
  std::deque<uint64_t> announced_ ABSL_GUARDED_BY(mutex_);
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_EXTENT_REGISTRAR_H_
