// OrderWorker: the thread that follows the daemon's orders.
#ifndef METS_CLIENT_SRC_ORDER_WORKER_H_
#define METS_CLIENT_SRC_ORDER_WORKER_H_

#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "client/src/descriptor_inbox.h"
#include "client/src/device.h"
#include "client/src/extent_registrar.h"
#include "mets/v1/session.pb.h"

namespace mets::client {

// Follows orders one after the other, so that gRPC's threads never move bytes
// and one buffer is never moved by two orders. Thread-safe.
class OrderWorker {
 public:
  using FindDevices = std::function<std::vector<Device*>()>;

  OrderWorker(DescriptorInbox& inbox, ExtentRegistrar& extents, Uplink& uplink,
              FindDevices devices);
  ~OrderWorker();

  // Queues an order of the present stream.
  void Post(v1::DaemonMessage order);
  // The stream has ended: forgets its orders, and returns when the one under
  // way has stopped. What it has done by then is in the next snapshot.
  void Abandon();
  // Ends the thread.
  void Stop();

 private:
  void Run();
  void Follow(const v1::DaemonMessage& order);
  void Evict(const v1::Evict& order);
  // Numbers of the order's candidates, as they are to be tried.
  static std::vector<int> Sequence(Device& device, const v1::Evict& order);
  void EvictSome(Device& device, const v1::Evict& order,
                 const std::vector<int>& sequence, bool wanted, Bytes* freed,
                 v1::OrderDone* done);
  absl::Status AwaitDescriptors(uint64_t fd_seq);
  absl::Status RegisterExtents(Device& device, const v1::Slot& slot);
  void Plan(const v1::Plan& order);
  void Trim(const v1::Trim& order);
  void Forget(const v1::ForgetChunks& order);
  void Answer(v1::OrderDone done);
  void Unsupported(uint64_t order_id, uint64_t epoch, const char* what);
  bool abandoned();

  DescriptorInbox& inbox_;
  ExtentRegistrar& extents_;
  Uplink& uplink_;
  const FindDevices devices_;
  absl::Mutex mutex_;
  std::deque<v1::DaemonMessage> queue_ ABSL_GUARDED_BY(mutex_);
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool abandon_ ABSL_GUARDED_BY(mutex_) = false;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_ORDER_WORKER_H_
