#include "common/ipc/socket_file.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "common/base/errno_status.h"
#include "common/base/status_macros.h"

namespace mets::ipc {

absl::StatusOr<sockaddr_un> SocketAddress(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(
        absl::StrCat("socket path ", path, " is too long: ", path.size(),
                     " characters, at most ", sizeof(address.sun_path) - 1,
                     " are possible; choose a directory with a shorter path"));
  }
  path.copy(address.sun_path, path.size());
  return address;
}

absl::StatusOr<SocketFile> SocketFile::Bind(int socket,
                                            const std::string& path) {
  METS_ASSIGN_OR_RETURN(const sockaddr_un address, SocketAddress(path));
  if (bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) !=
      0) {
    return ErrnoToStatus(errno, absl::StrCat("bind ", path));
  }
  SocketFile file;
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) {
    return ErrnoToStatus(errno, absl::StrCat("stat ", path));
  }
  file.path_ = path;
  file.inode_ = info.st_ino;
  return file;
}

SocketFile::~SocketFile() {
  struct stat info;
  if (path_.empty() || lstat(path_.c_str(), &info) != 0) return;
  if (info.st_ino == inode_) unlink(path_.c_str());
}

bool SocketFile::IsLost() {
  struct stat info;
  if (path_.empty() || lstat(path_.c_str(), &info) == 0) return false;
  if (errno != ENOENT && errno != ENOTDIR) return false;
  // What comes next at this path may have the same inode.
  path_.clear();
  return true;
}

}  // namespace mets::ipc
