#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"
#include "common/ipc/descriptor_channel.h"

namespace mets::ipc {
namespace {

constexpr int kBacklog = 128;

// Removes a socket file that nobody listens on.
absl::Status RemoveStaleSocket(const std::string& path) {
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return absl::OkStatus();
    return ErrnoToStatus(errno, absl::StrCat("stat ", path));
  }
  if (!S_ISSOCK(info.st_mode)) {
    return absl::AlreadyExistsError(
        absl::StrCat(path, " exists and is no socket; remove it"));
  }
  absl::StatusOr<DescriptorChannel> other = DescriptorChannel::Connect(path);
  if (other.ok() || !absl::IsUnavailable(other.status())) {
    return absl::AlreadyExistsError(absl::StrCat(
        path,
        " is in use: another metsd listens there; stop it or choose "
        "another --run-dir"));
  }
  if (unlink(path.c_str()) != 0 && errno != ENOENT) {
    return ErrnoToStatus(errno, absl::StrCat("remove ", path));
  }
  return absl::OkStatus();
}

}  // namespace

DescriptorListener::DescriptorListener(UniqueFd socket, std::string path,
                                       SocketFile file)
    : socket_(std::move(socket)),
      path_(std::move(path)),
      file_(std::move(file)) {}

DescriptorListener DescriptorListener::Adopt(UniqueFd socket,
                                             std::string path) {
  fcntl(socket.get(), F_SETFL, O_NONBLOCK);
  return DescriptorListener(std::move(socket), std::move(path), SocketFile());
}

absl::StatusOr<DescriptorListener> DescriptorListener::Listen(
    const std::string& path, mode_t mode) {
  METS_RETURN_IF_ERROR(RemoveStaleSocket(path));
  UniqueFd socket(
      ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.ok()) return ErrnoToStatus(errno, "socket");
  METS_ASSIGN_OR_RETURN(SocketFile file, SocketFile::Bind(socket.get(), path));
  DescriptorListener listener(std::move(socket), path, std::move(file));
  // Nobody can connect before listen: the mode holds from the first moment.
  if (chmod(path.c_str(), mode) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("chmod ", path));
  }
  if (listen(listener.fd(), kBacklog) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("listen at ", path));
  }
  return listener;
}

absl::StatusOr<DescriptorChannel> DescriptorListener::Accept() {
  int fd;
  do {
    fd = accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  } while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
  if (fd >= 0) return DescriptorChannel(UniqueFd(fd));
  return ErrnoToStatus(errno, absl::StrCat("accept at ", path_));
}

}  // namespace mets::ipc
