// RequestTable: requests for memory that are under way.
#ifndef METS_CLIENT_SRC_REQUEST_TABLE_H_
#define METS_CLIENT_SRC_REQUEST_TABLE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/src/chunk_importer.h"
#include "client/src/device.h"

namespace mets::client {

// Sends requests, waits for their answers, and sends them again on the next
// stream when one breaks. Thread-safe.
class RequestTable {
 public:
  using Send = std::function<void(v1::ClientMessage)>;

  // `send` is called under the table's mutex; it must not block.
  RequestTable(ChunkImporter& importer, Send send)
      : importer_(importer), send_(std::move(send)) {}

  // See Uplink::Acquire.
  absl::StatusOr<Grant> Acquire(Device& device,
                                const std::vector<Bytes>& ranges,
                                absl::Time deadline, Waiting waiting);

  // From the stream's reader. An answer that nobody waits for any more is
  // given back.
  void OnGranted(const v1::Granted& granted);
  void OnDenied(const v1::Denied& denied);

  // The stream has ended: what it granted and nobody has taken is void.
  void OnBroken();
  // Stream `generation` takes requests: those that wait are sent.
  void OnOpen(uint64_t generation);
  // There will be no stream any more.
  void OnEnded(absl::Status why);

 private:
  struct Request {
    Device* device;
    std::vector<Bytes> ranges;
    absl::Time deadline;
    Waiting waiting;
    bool sent = false;
    bool granted = false;
    v1::Granted grant;
    absl::Status denied;
  };

  void SendRequest(uint64_t id, Request& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Waits for an answer; OK when it is in `request`.
  absl::Status AwaitAnswer(Request& request, absl::Time start)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The request's end without a grant: withdraws it if it is unanswered.
  absl::Status GiveUp(const Request& request, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t Remove(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SayWaiting(const Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ChunkImporter& importer_;
  const Send send_;
  absl::Mutex mutex_;
  absl::CondVar answered_;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  bool said_waiting_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status ended_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, std::shared_ptr<Request>> requests_
      ABSL_GUARDED_BY(mutex_);
  // Withdrawn requests whose answer has not come: id → device.
  std::map<uint64_t, std::string> late_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_REQUEST_TABLE_H_
