// TestClient: a client of metsd that does exactly what a test says.
#ifndef METS_TESTS_DAEMON_APP_TEST_CLIENT_H_
#define METS_TESTS_DAEMON_APP_TEST_CLIENT_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "common/ipc/descriptor_channel.h"
#include "mets/v1/session.pb.h"

namespace mets {

// Blocking; nothing takes longer than 20 s. For one thread.
class TestClient {
 public:
  explicit TestClient(std::string run_dir);
  ~TestClient();

  // fd.sock: Hello and Welcome. Replaces an earlier connection.
  absl::Status ConnectDescriptors();
  void CloseDescriptors() { channel_.reset(); }
  ipc::DescriptorChannel& channel() { return *channel_; }
  const std::string& token() const { return token_; }
  uint64_t epoch() const { return epoch_; }

  // session.sock: a new stream; an earlier one is cancelled.
  void OpenStream();
  bool Send(const v1::ClientMessage& message);
  // The next message; nullopt when the stream has ended.
  std::optional<v1::DaemonMessage> Read();
  // Reads until a message of this kind comes; an empty one when the stream
  // ends first.
  v1::DaemonMessage ReadUntil(v1::DaemonMessage::MessageCase kind);
  // Ends the stream, drops what is unread, and returns the daemon's status.
  absl::Status Finish();
  void Cancel();

  // A Hello with the token of the descriptor socket.
  v1::ClientMessage Hello(const std::string& job) const;

  // All of it: descriptors, stream, Hello, Welcome, host0 attached.
  void Join(const std::string& job);

  // Asks for one range and waits for the answer.
  v1::DaemonMessage Acquire(uint64_t request, uint64_t bytes,
                            uint32_t wait_ms = 1000);

 private:
  struct Stream;

  const std::string run_dir_;
  std::optional<ipc::DescriptorChannel> channel_;
  std::string token_;
  uint64_t epoch_ = 0;
  std::unique_ptr<Stream> stream_;
};

}  // namespace mets

#endif  // METS_TESTS_DAEMON_APP_TEST_CLIENT_H_
