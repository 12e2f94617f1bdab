// SocketAcceptor: hands the connections of listening sockets to a gRPC server.
#ifndef METS_DAEMON_TRANSPORT_SOCKETS_SOCKET_ACCEPTOR_H_
#define METS_DAEMON_TRANSPORT_SOCKETS_SOCKET_ACCEPTOR_H_

#include <grpcpp/grpcpp.h>
#include <sys/types.h>

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "daemon/transport/sockets/event_loop.h"
#include "daemon/transport/sockets/stream_listener.h"

namespace mets::transport {

// What gRPC cannot do: accept from sockets that systemd has bound, rest and go
// on when there are no descriptors left (gRPC closes a socket for good then),
// bound how many connections a user has, so that none takes the descriptors of
// all, and listen anew where somebody has removed the socket's file.
//
// A connection for which there is no room is closed without a word: who comes
// by fd.sock first is told there (CheckRoom).
//
// One thread, which never blocks on a peer. The server is borrowed and must
// outlive it.
class SocketAcceptor {
 public:
  struct Options {
    size_t max_connections_per_user = 0;
    // Told the path of a socket that is lost, and once it is there again.
    std::function<void(const std::string&)> on_lost, on_renewed;
  };

  // Fails when the process has no descriptors left.
  static absl::StatusOr<std::unique_ptr<SocketAcceptor>> Start(
      Options options, std::vector<StreamListener> listeners,
      grpc::Server& server);
  ~SocketAcceptor();

  // For one more connection of a user through the listener of that number.
  // Waits for the acceptor's thread: not to be called there. Thread-safe.
  // RESOURCE_EXHAUSTED, for the user, when there is none.
  absl::Status CheckRoom(size_t listener, uid_t uid);

  SocketAcceptor(const SocketAcceptor&) = delete;
  SocketAcceptor& operator=(const SocketAcceptor&) = delete;

 private:
  using User = std::pair<size_t, uid_t>;  // By listener: pods and tenants may
                                          // well have the same uid.
  // A connection that gRPC has: it is there as long as its descriptor is the
  // same socket.
  struct Connection {
    User user;
    ino_t inode;
  };

  SocketAcceptor(Options options, std::vector<StreamListener> listeners,
                 grpc::Server& server, std::unique_ptr<EventLoop> loop);

  absl::Status Watch(size_t number);
  void OnTick();
  bool Renew(size_t number);
  void AcceptAll(size_t number);
  void Adopt(UniqueFd socket, size_t number);
  bool HasRoom(const User& user) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(int fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetClosed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Options options_;
  grpc::Server& server_;
  // What follows belongs to the loop's thread.
  std::vector<StreamListener> listeners_;
  std::set<size_t> resting_;  // Listeners that are not watched now.
  std::set<size_t> lost_;     // That nobody finds.

  absl::Mutex mutex_;
  absl::flat_hash_map<int, Connection> connections_
      ABSL_GUARDED_BY(mutex_);  // By descriptor.
  absl::flat_hash_map<User, size_t> per_user_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<EventLoop> loop_;  // Last: stopped first.
};

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_SOCKETS_SOCKET_ACCEPTOR_H_
