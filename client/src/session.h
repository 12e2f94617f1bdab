// Session: the process's session with metsd.
#ifndef METS_CLIENT_SRC_SESSION_H_
#define METS_CLIENT_SRC_SESSION_H_

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/src/chunk_importer.h"
#include "client/src/connection.h"
#include "client/src/descriptor_inbox.h"
#include "client/src/device.h"
#include "client/src/env.h"
#include "client/src/order_worker.h"
#include "client/src/request_table.h"
#include "client/src/share_table.h"
#include "client/src/uplink.h"

namespace mets::client {

// Keeps a connection to metsd for as long as the process lives: a thread
// connects, reads messages, and when the stream breaks connects again and says
// what the process holds. Ops, cached allocations and frees go on meanwhile;
// requests wait.
//
// Thread-safe. Created once per process and not destroyed while devices are in
// use; Stop ends its threads before the process ends.
class Session : public Uplink {
 public:
  // Blocks for at most 10 s. Errors as Connection::Open.
  static absl::StatusOr<std::unique_ptr<Session>> Start(Settings settings);
  ~Session() override;

  const Settings& settings() const { return settings_; }

  // Attaches a device, or returns the one attached before. Blocks for at most
  // 10 s. `id` empty: the daemon's first. NOT_FOUND names the known ones.
  absl::StatusOr<Device*> OpenDevice(std::string id, bool ops_seen);

  void Stop();

  // Breaks the stream, as a network fault would. For tests.
  void BreakForTest();

  // Uplink.
  void Send(v1::ClientMessage message) override;
  absl::StatusOr<Grant> Acquire(Device& device,
                                const std::vector<Bytes>& ranges,
                                absl::Time deadline, Waiting waiting) override;
  absl::Status AskForShare(
      Device& device, v1::ClientMessage message,
      std::function<absl::Status(const v1::ShareAnswer&)> take) override {
    return shares_.Ask(device, std::move(message), std::move(take));
  }
  uint64_t generation() const override { return generation_.load(); }
  uint64_t epoch() const override { return epoch_.load(); }

 private:
  struct Attachment {
    std::unique_ptr<Device> device;  // Null until the daemon has answered.
    bool ops_seen = true;
    bool answered = false;
    v1::DeviceReady ready;
    // Said before there was a device.
    std::optional<v1::Gate> gate;
    std::optional<v1::SetLimits> limits;
  };

  explicit Session(Settings settings);

  void Run();
  // After a connection has failed or broken: true when there will be no other.
  bool EndsSession(const absl::Status& status);
  // One connection: until it breaks. FAILED_PRECONDITION: the daemon refuses.
  absl::Status RunConnection();
  absl::Status Resume(Connection& connection, bool new_epoch,
                      uint64_t old_epoch);
  void SendSnapshots(bool first);
  void Dispatch(v1::DaemonMessage message);
  void OnDeviceReady(const v1::DeviceReady& ready);
  void OnRecord(const v1::Record& record);
  void OnSetLimits(const v1::SetLimits& limits);
  void OnRegrant(const v1::Regrant& regrant);
  void OnGate(const v1::Gate& gate);
  void OnDescriptors(ipc::Fds fds);
  void OnBroken();
  // What the daemon said of a gate before there was a device.
  struct FirstGate {
    std::optional<v1::Gate> order;
    uint64_t generation = 0;  // Of the stream that it came by.
  };
  absl::StatusOr<Device*> Attach(std::string id, bool ops_seen,
                                 FirstGate* gate);
  absl::StatusOr<Device*> MakeDevice(Attachment& attachment)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Device*> Devices();
  // False: the session stops.
  bool PollGatesUntilReport();
  void Report();

  const Settings settings_;
  DescriptorInbox inbox_;
  ExtentRegistrar extents_;
  ChunkImporter importer_;
  RequestTable requests_;
  ShareTable shares_;
  std::atomic<uint64_t> generation_{0};
  std::atomic<uint64_t> epoch_{0};

  absl::Mutex mutex_;
  std::shared_ptr<Connection> connection_ ABSL_GUARDED_BY(mutex_);
  bool connected_once_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status ended_ ABSL_GUARDED_BY(mutex_);  // Not OK: for good.
  std::string token_ ABSL_GUARDED_BY(mutex_);
  v1::Welcome welcome_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Attachment> attachments_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<OrderWorker> orders_;
  std::thread supervisor_;
  std::thread reporter_;
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_SESSION_H_
