// Connection: one connection to metsd, from connect to break.
#ifndef METS_CLIENT_SRC_CONNECTION_H_
#define METS_CLIENT_SRC_CONNECTION_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/ipc/descriptor_channel.h"
#include "mets/v1/session.grpc.pb.h"
#include "mets/v1/session.pb.h"

namespace mets::client {

// The descriptor channel and the stream, with a thread that receives
// descriptors and one that writes messages. The caller's thread reads.
//
// Read is for one thread; the other functions for any. Errors end the
// connection: Read returns false then.
class Connection {
 public:
  // `on_fds` is called by the descriptor thread, for each message, before it is
  // acknowledged. Blocks for some seconds at most. NOT_FOUND, UNAVAILABLE:
  // nobody there; PERMISSION_DENIED; FAILED_PRECONDITION: refused.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(
      const std::string& run_dir, std::function<void(ipc::Fds)> on_fds);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const std::string& token() const { return token_; }
  uint64_t epoch() const { return epoch_; }

  // Sends Hello and waits for Welcome, for at most 10 s.
  // FAILED_PRECONDITION: refused, with the daemon's text.
  absl::StatusOr<v1::Welcome> Handshake(v1::Hello hello);

  // Blocks; false when the stream has ended.
  bool Read(v1::DaemonMessage* message);
  // Queues; never blocks.
  void Send(v1::ClientMessage message);
  // After what is queued, tells the daemon that nothing follows; it then ends
  // the stream. Does not block.
  void FinishWriting();
  // Ends it, so that Read returns false. Idempotent.
  void Close();

 private:
  using Stream = grpc::ClientReaderWriter<v1::ClientMessage, v1::DaemonMessage>;

  Connection(ipc::DescriptorChannel channel, UniqueFd stream_socket,
             std::function<void(ipc::Fds)> on_fds);
  // Ends the stream; for the reading thread.
  grpc::Status Finish();
  void ReceiveDescriptors();
  void Write();

  ipc::DescriptorChannel channel_;
  const std::function<void(ipc::Fds)> on_fds_;
  std::string token_;
  uint64_t epoch_ = 0;
  int stream_fd_;
  std::shared_ptr<grpc::Channel> grpc_channel_;
  grpc::ClientContext context_;
  std::unique_ptr<Stream> stream_;
  bool finished_ = false;  // Of the reading thread.
  std::atomic<bool> welcomed_{false};
  std::atomic<bool> closed_{false};

  absl::Mutex mutex_;
  std::deque<v1::ClientMessage> outbox_ ABSL_GUARDED_BY(mutex_);
  bool stop_writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool finish_writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread writer_;
  std::thread receiver_;
};

}  // namespace mets::client

#endif  // METS_CLIENT_SRC_CONNECTION_H_
