// ShareTable: requests for shares that are under way.
#ifndef METS_CLIENT_SRC_SHARE_TABLE_H_
#define METS_CLIENT_SRC_SHARE_TABLE_H_

#include <cstdint>
#include <functional>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "client/src/chunk_importer.h"
#include "client/src/device.h"
#include "mets/v1/session.pb.h"

namespace mets::client {

// Sends requests, waits for their answers, and sends them again on the next
// stream when one breaks: only so is it known what became of them. Thread-safe.
class ShareTable {
 public:
  using Send = std::function<void(v1::ClientMessage)>;
  using Take = std::function<absl::Status(const v1::ShareAnswer&)>;

  // `send` and what `take` does are called under the table's mutex; `send` must
  // not block.
  ShareTable(ChunkImporter& importer, Send send)
      : importer_(importer), send_(std::move(send)) {}

  // See Uplink::AskForShare.
  absl::Status Ask(Device& device, v1::ClientMessage message, Take take);

  // From the stream's reader.
  void OnAnswer(const v1::ShareAnswer& answer);

  // The stream has ended: answers that nobody has taken are void.
  void OnBroken();
  // A stream takes requests: those that wait are sent.
  void OnOpen(uint64_t epoch);
  // There will be no stream any more.
  void OnEnded(absl::Status why);

 private:
  struct Request {
    v1::ClientMessage message;
    uint64_t epoch = 0;  // In which it was sent; 0: not yet.
    bool answered = false;
    v1::ShareAnswer answer;
  };

  // A new daemon does not know chunks of an earlier one.
  bool Stale(const Request& request) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendRequest(Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AwaitAnswer(const Request& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  ChunkImporter& importer_;
  const Send send_;
  absl::Mutex mutex_;
  absl::CondVar changed_;
  uint64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status ended_ ABSL_GUARDED_BY(mutex_);
  std::map<uint64_t, Request> requests_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_SHARE_TABLE_H_
