// SocketAcceptor: hands the connections of a listening socket to a gRPC server.
#ifndef METS_DAEMON_TRANSPORT_SOCKETS_SOCKET_ACCEPTOR_H_
#define METS_DAEMON_TRANSPORT_SOCKETS_SOCKET_ACCEPTOR_H_

#include <grpcpp/grpcpp.h>

#include <memory>

#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"
#include "daemon/transport/sockets/event_loop.h"

namespace mets::transport {

// For a socket that somebody else has bound (systemd): gRPC binds only by
// itself. One thread, which never blocks on a peer. The server is borrowed and
// must outlive it.
class SocketAcceptor {
 public:
  // `socket` listens. Fails when the process has no descriptors left.
  static absl::StatusOr<std::unique_ptr<SocketAcceptor>> Start(
      UniqueFd socket, grpc::Server& server);
  ~SocketAcceptor();
  SocketAcceptor(const SocketAcceptor&) = delete;
  SocketAcceptor& operator=(const SocketAcceptor&) = delete;

 private:
  SocketAcceptor(UniqueFd socket, grpc::Server& server,
                 std::unique_ptr<EventLoop> loop);

  absl::Status Watch();
  void AcceptAll();

  const UniqueFd socket_;
  grpc::Server& server_;
  bool rests_ = false;  // Of the loop's thread: not watched now.
  const std::unique_ptr<EventLoop> loop_;  // Last: stopped first.
};

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_SOCKETS_SOCKET_ACCEPTOR_H_
