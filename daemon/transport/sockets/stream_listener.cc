#include "daemon/transport/sockets/stream_listener.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"

namespace mets::transport {

absl::StatusOr<StreamListener> StreamListener::Listen(SocketPlace place) {
  METS_RETURN_IF_ERROR(ClearSocketPath(place.path));
  StreamListener listener(
      UniqueFd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
  if (!listener.socket_.ok()) return ErrnoToStatus(errno, "socket");
  METS_ASSIGN_OR_RETURN(listener.file_,
                        ipc::SocketFile::Bind(listener.fd(), place.path));
  // Nobody can connect before listen: the mode holds from the first moment.
  METS_RETURN_IF_ERROR(ApplyAccess(place.path, place.access));
  if (listen(listener.fd(), SOMAXCONN) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("listen at ", place.path));
  }
  listener.place_ = std::move(place);
  return listener;
}

StreamListener StreamListener::Adopt(UniqueFd socket) {
  fcntl(socket.get(), F_SETFL, O_NONBLOCK);
  return StreamListener(std::move(socket));
}

}  // namespace mets::transport
