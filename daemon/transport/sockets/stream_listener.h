// StreamListener: a socket at which gRPC's clients connect.
#ifndef METS_DAEMON_TRANSPORT_SOCKETS_STREAM_LISTENER_H_
#define METS_DAEMON_TRANSPORT_SOCKETS_STREAM_LISTENER_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/base/unique_fd.h"
#include "common/ipc/socket_file.h"
#include "daemon/transport/sockets/socket_files.h"

namespace mets::transport {

// Where a socket file is made, and for whom.
struct SocketPlace {
  std::string path;
  SocketAccess access;
};

// A listening socket, non-blocking, and its file. Move-only.
class StreamListener {
 public:
  // Makes one. A socket file that nobody listens on is replaced;
  // ALREADY_EXISTS, naming the path, when somebody does.
  static absl::StatusOr<StreamListener> Listen(SocketPlace place);
  // Takes over a socket that listens already; its file is somebody else's.
  static StreamListener Adopt(UniqueFd socket);

  int fd() const { return socket_.get(); }
  const SocketPlace& place() const { return place_; }
  // As of SocketFile; never when the socket was adopted.
  bool IsLost() { return file_.IsLost(); }

 private:
  explicit StreamListener(UniqueFd socket) : socket_(std::move(socket)) {}

  UniqueFd socket_;
  ipc::SocketFile file_;
  SocketPlace place_;
};

}  // namespace mets::transport

#endif  // METS_DAEMON_TRANSPORT_SOCKETS_STREAM_LISTENER_H_
