// SocketFile: the file by which a socket of this process is found.
#ifndef METS_COMMON_IPC_SOCKET_FILE_H_
#define METS_COMMON_IPC_SOCKET_FILE_H_

#include <sys/types.h>
#include <sys/un.h>

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace mets::ipc {

// INVALID_ARGUMENT, with the numbers, when the path is too long.
absl::StatusOr<sockaddr_un> SocketAddress(const std::string& path);

// Owns the file that binding a socket has made. Move-only; it removes the file
// at its end, unless that is somebody else's by then.
class SocketFile {
 public:
  // None.
  SocketFile() = default;
  // Binds `socket` to `path`, where nothing may be. INVALID_ARGUMENT when the
  // path is too long, else the system's reason.
  static absl::StatusOr<SocketFile> Bind(int socket, const std::string& path);
  SocketFile(SocketFile&& other) noexcept { *this = std::move(other); }
  SocketFile& operator=(SocketFile&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(inode_, other.inode_);
    return *this;
  }
  ~SocketFile();

  // Whether somebody has removed it and nothing is in its place: nobody finds
  // the socket any more. Said once; there is none from then on.
  bool IsLost();

 private:
  std::string path_;  // Empty: none.
  ino_t inode_ = 0;
};

}  // namespace mets::ipc

#endif  // METS_COMMON_IPC_SOCKET_FILE_H_
