// Returner: brings back what has left a device as a quantum begins.
#ifndef METS_CLIENT_SRC_RETURNER_H_
#define METS_CLIENT_SRC_RETURNER_H_

#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace mets::client {

class Device;

// For programs that announce ops: these bring back what they need, but one
// after the other, and the bus is idle in between.
//
// One thread, which begins with the first quantum. Thread-safe. The destructor
// waits for what is under way.
class Returner {
 public:
  explicit Returner(Device& device) : device_(device) {}
  ~Returner();
  Returner(const Returner&) = delete;
  Returner& operator=(const Returner&) = delete;

  // Does not block.
  void Begin();

 private:
  void Run();

  Device& device_;
  absl::Mutex mutex_;
  bool asked_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_RETURNER_H_
